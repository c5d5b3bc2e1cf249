"""JSON files that people can read: one line for each entry, and seals that show changes."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bandanna._core.types import JSON, BandannaError, InputError, StateFileError

BINARY: int = getattr(os, "O_BINARY", 0)
"""Without it Windows would change the ends of lines in files that are opened by their handle."""


@contextmanager
def errors_as(what: str, kind: type[BandannaError] = InputError) -> Iterator[None]:
    """Say of an error of the system what could not be done, in an error of ours."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}.") from None


def to_text(data: JSON) -> str:
    """Write one line for each entry."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_toml(path: Path) -> JSON:
    """Read a TOML file, or say why not."""
    import tomllib  # loaded when first used

    with errors_as(f"cannot read {path}"):
        content = path.read_bytes()
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:
        raise InputError(f"cannot read {path}: it is not a TOML file: {error}.") from None


def seal(data: object) -> str:
    """Return a hash of any JSON value, independent of spacing and order."""
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def sealed(data: JSON) -> JSON:
    """Return a document with a seal of all that is in it."""
    return {**data, "checksum": seal(data)}


def read_sealed(
    content: str | bytes, where: str, kind: str, check_version: Callable[[JSON, str], object]
) -> JSON:
    """Read a document of a kind, refusing what is not whole."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StateFileError(f"{where} is damaged: not valid JSON ({error}).") from None
    if not isinstance(data, dict) or data.get("format") != kind:
        what = kind.rpartition(" ")[2]
        raise StateFileError(f"{where} is not a saved {what}: its format is not {kind!r}.")
    check_version(data, where)
    if data.get("checksum") != seal({key: data[key] for key in data if key != "checksum"}):
        raise StateFileError(f"{where} is damaged: its checksum does not match its content.")
    return data


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all; a private one is readable by its owner only.

    Where the system allows, the content has no name until it is complete: a process killed
    midway leaves nothing behind.
    """
    data = content.encode() if isinstance(content, str) else content
    mode = 0o600 if private else 0o666
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle, named = _open_nameless(path.parent, mode)
    if handle is None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
        handle, named = os.open(temporary, flags, mode), True
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if not named:
                _give_name(file.fileno(), temporary)
                named = True
        os.replace(temporary, path)
    except BaseException:
        if named:
            temporary.unlink(missing_ok=True)
        raise


def _open_nameless(folder: Path, mode: int) -> tuple[int | None, bool]:
    """Open a file without a name, or return None where there is no such thing."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path("/proc/self/fd").is_dir():
        return None, True
    try:
        return os.open(folder, os.O_WRONLY | flag, mode), False
    except OSError:  # a file system without them; if the folder is at fault, the next try says so
        return None, True


def _give_name(handle: int, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # with a folder's handle Python follows the link that /proc has for the file
        os.link(f"/proc/self/fd/{handle}", path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
