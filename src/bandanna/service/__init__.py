"""Private decisions over HTTP."""
