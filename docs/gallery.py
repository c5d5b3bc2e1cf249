"""Run the programs of examples/gallery and keep what they draw: python docs/gallery.py."""

from __future__ import annotations

import contextlib
import runpy
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PROGRAMS = sorted((DOCS.parent / "examples" / "gallery").glob("*.py"))
PICTURES = DOCS / "images" / "gallery"


def main() -> None:
    """Run every program in an empty folder, then keep its picture, which has its name."""
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            runpy.run_path(str(program))
            drawn = Path(f"{program.stem}.svg").read_bytes()
        (PICTURES / f"{program.stem}.svg").write_bytes(drawn)
        print(program.stem, len(drawn))


if __name__ == "__main__":
    main()
