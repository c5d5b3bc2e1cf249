"""What someone else would add: each in one file, with one registration, outside the package."""
