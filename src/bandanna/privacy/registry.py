"""Every release by the name under which it is saved."""

from __future__ import annotations

from typing import Any

from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.one_bit import OneBitRelease
from bandanna.privacy.plain import PlainRelease
from bandanna.privacy.silent import SilentRelease
from bandanna.privacy.vector import VectorRelease

RELEASES: dict[str, type[Any]] = {
    release.name: release
    for release in (OneBitRelease, LaplaceRelease, PlainRelease, SilentRelease, VectorRelease)
}
