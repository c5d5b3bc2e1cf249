"""Machine code of kernels, kept on disk between processes.

Numba's own cache looks only at the file a kernel is in, not at the files its steps are in, and
keeps one pickled index for each kernel: a type that one program registers makes the next program,
which does not know it, fail. Here every signature has a file of its own, named by what the code
depends on, the content of the whole package included. An edited source file is another name, what
is registered from outside the package is never written, and what cannot be read is compiled again.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps
from numba.core.types import Array, Boolean, Number, none
from numba.core.types.containers import BaseNamedTuple, BaseTuple

from bandanna.documents import write_whole

PACKAGE = Path(__file__).parent
PLAIN = (Number, Boolean, Array, type(none))


class ForeignTypeError(TypeError):
    """A type that this package does not define."""


def sources_stamp() -> str:
    """Return a hash of every source file of the package."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        content = hashlib.sha256(source.read_bytes()).hexdigest()
        digest.update(f"{source.relative_to(PACKAGE)} {content}\n".encode())
    return digest.hexdigest()[:16]


STAMP = sources_stamp()
"""The sources as they were when this process began."""


def full_name(kind: object) -> str:
    """Return a type's name with the modules of all its parts; refuse one from outside."""
    if isinstance(kind, BaseTuple):
        parts = ", ".join(full_name(part) for part in kind.types)
        if not isinstance(kind, BaseNamedTuple):
            return f"({parts})"
        made = kind.instance_class
        if made.__module__.partition(".")[0] != __package__:
            raise ForeignTypeError(made)
        return f"{made.__module__}.{made.__qualname__}({parts})"
    if not isinstance(kind, PLAIN):
        raise ForeignTypeError(kind)
    return str(kind)


class Codegen(Protocol):
    """What Numba compiles for."""

    def magic_tuple(self) -> tuple[object, ...]:
        """Say which machine."""


class KernelCache(FunctionCache):  # type: ignore[misc]  # Numba is not typed
    """The files of one kernel."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base)

    def load_overload(self, sig: Iterable[object], target_context: object) -> object:
        """Return the machine code for a signature, or None where it must be compiled."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle may raise anything; compiling is always possible
            return None

    def save_overload(self, sig: Iterable[object], data: object) -> None:
        """Keep the machine code, if it is the package's own and the disk takes it."""
        if sources_stamp() == STAMP:  # otherwise what was compiled is no longer what is there
            with suppress(ForeignTypeError, OSError):
                super().save_overload(sig, data)

    def _index_key(self, sig: Iterable[object], codegen: Codegen) -> str:
        names = [full_name(kind) for kind in sig]
        everything = [STAMP, numba.__version__, names, codegen.magic_tuple()]
        return hashlib.sha256(repr(everything).encode()).hexdigest()[:32]


class _Files:
    """One file for each key, written whole or not at all."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def load(self, key: str) -> object:
        try:
            content = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        return pickle.loads(content)  # noqa: S301  # as trusted as the code beside it

    def save(self, key: str, data: object) -> None:
        write_whole(self._path(key), dumps(data))
        for old in self._others():
            old.unlink(missing_ok=True)

    def flush(self) -> None:
        for path in self.folder.glob(f"{self.name}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{self.name}.{STAMP}.{key}.nbc"

    def _others(self) -> Iterable[Path]:
        """Return what was compiled for this kernel from other sources."""
        kernel = self.name.rpartition("-")[0]
        every = [*self.folder.glob(f"{kernel}-*.nbc"), *self.folder.glob(f"{kernel}-*.nbi")]
        return [path for path in every if f".{STAMP}." not in path.name]
