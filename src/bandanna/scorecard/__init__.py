"""The scorecard: the one view of an experiment that a team decides from."""
