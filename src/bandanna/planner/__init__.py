"""Plans: guarantees before a run, and the same questions asked backwards."""
