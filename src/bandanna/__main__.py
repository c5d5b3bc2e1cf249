"""``python -m bandanna`` is the command line."""

from bandanna.cli import main

main()
