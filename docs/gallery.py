"""Run the programs of docs/gallery.md and keep the pictures they draw: python docs/gallery.py."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("gallery.md")
PICTURES = PAGE.parent / "images" / "gallery"


def main() -> None:
    """Run every program in an empty folder, then move what it drew."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    text = PAGE.read_text("utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for program in programs:
            exec(compile(program, PAGE.name, "exec"), {})  # noqa: S102
        for drawn in sorted(Path(folder).glob("*.svg")):
            (PICTURES / drawn.name).write_bytes(drawn.read_bytes())
            print(drawn.name, drawn.stat().st_size)


if __name__ == "__main__":
    main()
