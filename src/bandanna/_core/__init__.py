"""Plumbing that every other package uses: types, checks, the loss grid, compilation, streams."""
