"""What a device remembers between runs, so that no bit is drawn twice."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bandanna._core.documents import write_whole


class Storage(Protocol):
    """Keeps one text. When ``write`` returns, the text survives the program."""

    def read(self) -> str | None:
        """Return what was written last, or None."""

    def write(self, text: str) -> None:
        """Keep a text in place of the one before."""


class MemoryStorage:
    """For tests, and for devices that are never switched off: forgets with the program."""

    def __init__(self) -> None:
        self._text: str | None = None

    def read(self) -> str | None:
        """Return what was written last, or None."""
        return self._text

    def write(self, text: str) -> None:
        """Keep a text in place of the one before."""
        self._text = text


class FileStorage:
    """A file that its owner alone can read. One program at a time may use it."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def read(self) -> str | None:
        """Return the file's content, or None when there is no file."""
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Write the file whole or not at all, and to the disk."""
        write_whole(self._path, text, private=True)
