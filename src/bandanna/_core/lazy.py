"""Public names of a package that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def loads(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a package's ``__getattr__``; ``homes`` has the names that each module is home to.

    The package's own entry names modules in it.

    Examples
    --------
    >>> loads("bandanna", {"bandanna.spec": ("CONSTANTS",)})("CONSTANTS")
    ('paper', 'ours')
    """

    def load(name: str) -> object:
        home = next((home for home, names in homes.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        whole = home == package
        value: object = (
            import_module(f"{home}.{name}") if whole else getattr(import_module(home), name)
        )
        setattr(sys.modules[package], name, value)
        return value

    return load
