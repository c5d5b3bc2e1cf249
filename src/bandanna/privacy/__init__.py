"""Releases, the only way for private losses to leave, and what they promise.

Names are loaded when first used: the planner needs the arithmetic of noise and nothing compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandanna._core.lazy import loads

if TYPE_CHECKING:
    from bandanna.privacy.laplace import LaplaceRelease as LaplaceRelease
    from bandanna.privacy.one_bit import DeviceRelease as DeviceRelease
    from bandanna.privacy.one_bit import OneBitRelease as OneBitRelease
    from bandanna.privacy.plain import PlainRelease as PlainRelease
    from bandanna.privacy.plain import SilentRelease as SilentRelease
    from bandanna.privacy.registry import RELEASES as RELEASES
    from bandanna.privacy.release import Release as Release
    from bandanna.privacy.sums import SeededRelease as SeededRelease
    from bandanna.privacy.vector import VectorRelease as VectorRelease

_HOMES = {
    "bandanna.privacy.laplace": ("LaplaceRelease",),
    "bandanna.privacy.one_bit": ("DeviceRelease", "OneBitRelease"),
    "bandanna.privacy.plain": ("PlainRelease", "SilentRelease"),
    "bandanna.privacy.registry": ("RELEASES",),
    "bandanna.privacy.release": ("Release",),
    "bandanna.privacy.sums": ("SeededRelease",),
    "bandanna.privacy.vector": ("VectorRelease",),
}

__all__ = [name for names in _HOMES.values() for name in names]
__getattr__ = loads(__name__, _HOMES)
