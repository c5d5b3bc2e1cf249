"""Plans: guarantees before a run, the same questions asked backwards, and regimes."""
