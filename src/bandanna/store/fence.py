"""A record outside the database of how far its experiments have come.

A database that was put back from an older copy does not know what it released since: the same
losses would be released again. The record holds the last version of every experiment that was
written, and a database that is behind it is refused.

It is written after each transaction without waiting for the disk: what is missing after a power
failure makes the record too young, never the database too old.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from bandanna._core.types import StateFileError
from bandanna.store.contract import Store

HEADER = 64
SLOT = struct.Struct("<q")


class RestoredError(StateFileError):
    """The database is older than what this machine saw of it."""


class Fence:
    """The record, as a file of numbers: one slot for each experiment."""

    def __init__(self, path: Path, database: str) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            found = os.pread(self._file, HEADER, 0).rstrip(b"\0").decode("ascii", "replace")
            wanted = f"bandanna fence {database}"
            if found and found != wanted:
                raise StateFileError(f"{path} belongs to another database; give another --fence.")
            os.pwrite(self._file, wanted.encode().ljust(HEADER, b"\0"), 0)
            os.fsync(self._file)
        except OSError as error:
            raise StateFileError(f"cannot use {path}: {error.strerror}.") from None

    def seen(self, experiment: int) -> int:
        """Return the last version of an experiment that was written."""
        slot = os.pread(self._file, SLOT.size, HEADER + experiment * SLOT.size)
        return SLOT.unpack(slot)[0] if len(slot) == SLOT.size else 0

    def note(self, experiment: int, version: int) -> None:
        """Remember that a version was written."""
        if version > self.seen(experiment):
            os.pwrite(self._file, SLOT.pack(version), HEADER + experiment * SLOT.size)

    def check(self, store: Store) -> None:
        """Refuse a database that is behind the record."""
        behind = self._behind(store)
        if behind:
            raise RestoredError(
                f"the database is older than {self._path} says: {len(behind)} experiments are "
                f"behind. It was put back from a copy, and what it releases again costs privacy. "
                f"Use the newest database; or --accept-restored, and the guarantee will say so."
            )

    def accept(self, store: Store) -> set[int]:
        """Take an older database after all, charging it; returns what was charged, by number."""
        behind = {number for number, _ in self._behind(store)}
        for number in behind:
            store.charge(number, self.seen(number) + 1)
        return behind

    def sync(self) -> None:
        """Write everything to the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Write everything to the disk, and let go."""
        self.sync()
        os.close(self._file)

    def _behind(self, store: Store) -> list[tuple[int, int]]:
        # The record first: another process may go on while we look, and must not look restored.
        record = os.pread(self._file, os.fstat(self._file).st_size, HEADER)
        whole = len(record) // SLOT.size * SLOT.size
        seen = [version for (version,) in SLOT.iter_unpack(record[:whole])]
        found = [(one.number, one.version) for one in store.experiments()]
        return [row for row in found if row[0] < len(seen) and row[1] < seen[row[0]]]
