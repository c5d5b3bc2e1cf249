"""Releases, the only way for private losses to leave, and what they promise.

Names are loaded when first used: the planner needs the arithmetic of noise and nothing compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bandanna.privacy.laplace import LaplaceRelease
    from bandanna.privacy.one_bit import DeviceRelease, OneBitRelease
    from bandanna.privacy.plain import PlainRelease, SilentRelease
    from bandanna.privacy.registry import RELEASES
    from bandanna.privacy.release import Release
    from bandanna.privacy.sums import SeededRelease
    from bandanna.privacy.vector import VectorRelease

_HOMES = {
    "RELEASES": "registry",
    "DeviceRelease": "one_bit",
    "LaplaceRelease": "laplace",
    "OneBitRelease": "one_bit",
    "PlainRelease": "plain",
    "Release": "release",
    "SeededRelease": "sums",
    "SilentRelease": "plain",
    "VectorRelease": "vector",
}

__all__ = [
    "RELEASES",
    "DeviceRelease",
    "LaplaceRelease",
    "OneBitRelease",
    "PlainRelease",
    "Release",
    "SeededRelease",
    "SilentRelease",
    "VectorRelease",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bandanna.privacy' has no attribute {name!r}")
    value: object = getattr(import_module(f"bandanna.privacy.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
