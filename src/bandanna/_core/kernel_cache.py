"""Machine code of kernels, kept on disk between processes.

Numba's own cache looks only at the file a kernel is in, not at the files its steps are in, and
keeps one pickled index for each kernel: a type that one program registers makes the next program,
which does not know it, fail. Here every signature has a file of its own. Its name holds a hash of
the sources the code was compiled from: the kernel's module, the modules of the types it is compiled
for, and all that these import from this package. Editing any other file, a help text or a service
route, keeps the machine code. What is registered from outside the package is never written, and
what cannot be read is compiled again.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps
from numba.core.types import Array, Boolean, Number, none
from numba.core.types.containers import BaseNamedTuple, BaseTuple

from bandanna._core.documents import write_whole

ROOT = __package__.partition(".")[0]
PACKAGE = Path(__file__).parents[1]
PLAIN = (Number, Boolean, Array, type(none))
IMPORT = re.compile(
    rf"^\s*(?:from\s+({ROOT}[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+({ROOT}[\w.]*))",
    re.MULTILINE,
)
COMMENT = re.compile(r"#[^\n]*")


class ForeignTypeError(TypeError):
    """A type that this package does not define."""


def read_sources() -> dict[str, bytes]:
    """Return the source of every module of this package, by name."""
    sources = {}
    for path in PACKAGE.rglob("*.py"):
        parts = (ROOT, *path.relative_to(PACKAGE).with_suffix("").parts)
        sources[".".join(part for part in parts if part != "__init__")] = path.read_bytes()
    return sources


SOURCES = read_sources()
"""The sources as they were when this process began: what its code is made from."""


STEPS: dict[str, set[str]] = {}
"""For modules that define types: the modules with the steps that are chosen by those types."""


def note_step(kind: type, step: Callable[..., object]) -> None:
    """Note that compiled code which meets a type contains a step."""
    STEPS.setdefault(kind.__module__, set()).add(step.__module__)


@cache
def _imported(module: str) -> frozenset[str]:
    """Return the modules of this package that a module imports, and the package it is in."""
    imported = {module.rpartition(".")[0]}
    for origin, names, plain in IMPORT.findall(SOURCES[module].decode("utf-8")):
        imported.add(origin or plain)
        for name in COMMENT.sub("", names).strip("()").split(","):
            imported.add(f"{origin}.{name.partition(' as ')[0].strip()}")
    return frozenset(imported & SOURCES.keys() - {ROOT})


def closure(modules: Iterable[str]) -> set[str]:
    """Return modules and all that they import from this package, at any depth."""
    reached: set[str] = set()
    ahead = list(modules)
    while ahead:
        module = ahead.pop()
        if module in SOURCES and module not in reached:
            reached.add(module)
            ahead.extend(_imported(module) | STEPS.get(module, set()))
    return reached


def stamp_of(modules: Iterable[str]) -> str:
    """Return a hash of the sources that modules were made from, imports included."""
    digest = hashlib.sha256()
    for module in sorted(closure(modules)):
        content = hashlib.sha256(SOURCES[module]).hexdigest()
        digest.update(f"{module} {content}\n".encode())
    return digest.hexdigest()[:16]


def modules_in(kind: object) -> set[str]:
    """Return the modules that define the parts of a type."""
    if not isinstance(kind, BaseTuple):
        return set()
    modules = {module for part in kind.types for module in modules_in(part)}
    if isinstance(kind, BaseNamedTuple):
        modules.add(kind.instance_class.__module__)
    return modules


def full_name(kind: object) -> str:
    """Return a type's name with the modules of all its parts; refuse one from outside."""
    if isinstance(kind, BaseTuple):
        parts = ", ".join(full_name(part) for part in kind.types)
        if not isinstance(kind, BaseNamedTuple):
            return f"({parts})"
        made = kind.instance_class
        if made.__module__.partition(".")[0] != ROOT:
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
        self._module = function.__module__
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base)

    def load_overload(self, sig: Iterable[object], target_context: object) -> object:
        """Return the machine code for a signature, or None where it must be compiled."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle may raise anything; compiling is always possible
            return None

    def save_overload(self, sig: Iterable[object], data: object) -> None:
        """Keep the machine code, if it is the package's own and the disk takes it."""
        if read_sources() == SOURCES:  # otherwise it may have been compiled from a mixture
            with suppress(ForeignTypeError, OSError):
                super().save_overload(sig, data)

    def _modules(self, sig: Iterable[object]) -> set[str]:
        return {self._module}.union(*(modules_in(kind) for kind in sig))

    def _index_key(self, sig: Iterable[object], codegen: Codegen) -> tuple[str, str]:
        """Return a hash of the signature and machine, and one of the sources."""
        names = [full_name(kind) for kind in sig]
        everything = [numba.__version__, names, codegen.magic_tuple()]
        key = hashlib.sha256(repr(everything).encode()).hexdigest()[:32]
        return key, stamp_of(self._modules(sig))


class _Files:
    """One file for each signature, written whole or not at all; older sources' are removed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name.rpartition("-")[0]  # without the line of the kernel, which edits move

    def load(self, key: tuple[str, str]) -> object:
        try:
            content = self._path(*key).read_bytes()
        except FileNotFoundError:
            return None
        return pickle.loads(content)  # noqa: S301  # as trusted as the code beside it

    def save(self, key: tuple[str, str], data: object) -> None:
        path = self._path(*key)
        write_whole(path, dumps(data))
        for old in self.folder.glob(self._path(key[0], "*").name):
            if old != path:
                old.unlink(missing_ok=True)

    def flush(self) -> None:
        for path in self.folder.glob(f"{self.name}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, signature: str, stamp: str) -> Path:
        return self.folder / f"{self.name}.{signature}.{stamp}.nbc"
