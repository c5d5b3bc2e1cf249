"""Saved policies as files: versioned JSON, complete, readable, and refused when damaged.

A file that was resumed is marked: whatever was open in it must not be released twice.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeVar

from bandanna._core import checks
from bandanna._core.documents import BINARY, errors_as, read_sealed, sealed, to_text, write_whole
from bandanna._core.types import JSON, DecisionError, StateFileError, without_frames
from bandanna.policy.codec import VERSION, check_version
from bandanna.version import __version__

Resumed = TypeVar("Resumed")

FORMAT = "bandanna policy"
PRIVATE = "open_batches holds raw feedback: keep this file as private as the feedback itself"


def write_state(path: Path, policy: JSON) -> None:
    """Write a policy to a file, whole or not at all."""
    head = {"format": FORMAT, "version": VERSION, "software": __version__, "privacy": PRIVATE}
    with errors_as(f"cannot write {path}", StateFileError):
        write_whole(path, to_text(sealed(head | policy)), private=True)
        marker(path.resolve()).unlink(missing_ok=True)


def read_state(path: Path) -> JSON:
    """Read what ``write_state`` wrote, refusing what is not whole."""
    with errors_as(f"cannot read {path}", StateFileError):
        content = path.read_bytes()
    return read_sealed(content, str(path), FORMAT, check_version)


def read_with(path: str | Path, resume: Callable[[Path, JSON], Resumed]) -> Resumed:
    """Let ``resume`` go on from a file; an error takes nothing of its content along."""
    source = Path(path)
    try:
        return resume(source, read_state(source))
    except BaseException as error:
        raise without_frames(error) from None


def marker(path: Path) -> Path:
    """Return the file beside a saved policy that says how often it was resumed."""
    return path.with_name(f"{path.name}.resumed")


def claim(path: Path, checksum: str, *, again: bool) -> int:
    """Mark a file as resumed; returns how often it was before.

    The mark lies beside the file, so it holds on this machine and not for copies elsewhere. Of
    processes that load at the same moment one is the first: a lock on the mark lets them look at it
    one after the other.
    """
    try:
        with locked(marker(path)) as mark:
            before = _times(mark.read(), checksum)
            if before and not again:
                raise StateFileError(
                    f"{path} has been resumed before ({before} times): whatever was open in it "
                    f"would be released again. Save again and load that; or pass again=True, and "
                    f"the guarantee will say {before + 1} times epsilon."
                )
            mark.seek(0)
            mark.write(json.dumps({"checksum": checksum, "times": before + 1}).encode())
            mark.truncate()
            mark.flush()
            os.fsync(mark.fileno())
    except OSError as error:
        raise StateFileError(
            f"cannot mark {path} as resumed: {error.strerror or error}. Without the mark it could "
            f"be resumed twice unnoticed; load it from a folder that can be written to."
        ) from None
    return before


def claim_within(
    source: Path,
    data: JSON,
    promised: Callable[[int], float],
    *,
    epsilon: float | None,
    again: bool,
) -> None:
    """Mark a file as resumed, unless its policy then promises less than was asked for.

    ``promised`` takes how often the file was resumed before, and returns the epsilon that holds
    after that many; it is called last with the number that stands.
    """
    file, checksum = source.resolve(), str(data["checksum"])
    least = math.inf if epsilon is None else checks.epsilon(epsilon)
    guarantee = promised(resumed_before(file, checksum) if again else 0)
    if guarantee > least:
        raise StateFileError(
            f"{source} holds a policy with epsilon {guarantee:g}, which promises less than the "
            f"{least:g} asked for."
        )
    promised(claim(file, checksum, again=again))


def resumed_before(path: Path, checksum: str) -> int:
    """Return how often a file was resumed, without marking it."""
    beside = marker(path)
    return _times(beside.read_bytes(), checksum) if beside.exists() else 0


def _times(mark: bytes, checksum: str) -> int:
    """Return how often a mark says that the file with this checksum was resumed."""
    if not mark:
        return 0
    try:
        read = json.loads(mark)
        return int(read["times"]) if read["checksum"] == checksum else 0
    except (ValueError, LookupError, TypeError):
        return 1  # unreadable: it was written for something


def locked(path: Path) -> BinaryIO:
    """Open a file that is ours alone until it is closed; made if it is not there."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | BINARY
    file = os.fdopen(os.open(path, flags, 0o600), "r+b")
    try:
        import fcntl
    except ImportError:  # Windows: the first byte, which may lie beyond the end, stands for all
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


class OneProcess:
    """What belongs to one process: a copy of it would release its open batches a second time.

    It is refused after a fork, and neither copied nor pickled.
    """

    _process: int

    def _belong_here(self) -> None:
        self._process = os.getpid()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise DecisionError(
                "this policy belongs to the process that made or loaded it; in a forked copy its "
                "open batches would be released twice. Keep one process, or save and load."
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a policy cannot be copied or pickled: its open batches would be released twice. "
            "Use save and load to move it, rehearse for a fresh one."
        )
