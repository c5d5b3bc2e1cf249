"""The one door through which private losses leave, and what it promises."""

from __future__ import annotations

from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.one_bit import OneBitRelease
from bandanna.privacy.plain import PlainRelease
from bandanna.privacy.release import Release, SeededRelease

RELEASES: dict[str, type[Release]] = {
    release.name: release for release in (OneBitRelease, LaplaceRelease, PlainRelease)
}
"""Every release by the name under which it is saved."""

__all__ = [
    "RELEASES",
    "LaplaceRelease",
    "OneBitRelease",
    "PlainRelease",
    "Release",
    "SeededRelease",
]
