"""Every release by the name under which it is saved, and every mechanism by its certificate's."""

from __future__ import annotations

from typing import TypeVar

from bandanna._core.types import InputError
from bandanna.privacy.epochs import EPOCH_MECHANISMS
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.log_release import LogMechanism
from bandanna.privacy.mechanism import Mechanism
from bandanna.privacy.metrics import MetricsMechanism
from bandanna.privacy.one_bit import DeviceRelease, OneBitRelease
from bandanna.privacy.plain import PlainRelease, SilentRelease
from bandanna.privacy.presence import PresenceMechanism
from bandanna.privacy.ratio import RatioMechanism
from bandanna.privacy.release import Release
from bandanna.privacy.vector import VectorRelease

RELEASES: dict[str, type[Release]] = {}
MECHANISMS: dict[str, type[Mechanism]] = {}

Kind = TypeVar("Kind", bound=type[Release])


def register(release: Kind) -> Kind:
    """Make a release known, with the mechanisms it may promise: it can be saved and certified."""
    mechanisms = {mechanism.name: mechanism for mechanism in release.mechanisms}
    for table, names in ((RELEASES, {release.name}), (MECHANISMS, set(mechanisms))):
        for name in sorted(names & set(table)):
            raise InputError(f"there is a {name!r} already; give yours another name.")
    RELEASES[release.name] = release
    MECHANISMS.update(mechanisms)
    return release


for _release in (
    *(OneBitRelease, LaplaceRelease, PlainRelease, SilentRelease, VectorRelease, DeviceRelease),
):
    register(_release)

MECHANISMS.update({mechanism.name: mechanism for mechanism in EPOCH_MECHANISMS.values()})
MECHANISMS[MetricsMechanism.name] = MetricsMechanism
MECHANISMS |= {
    mechanism.name: mechanism for mechanism in (LogMechanism, RatioMechanism, PresenceMechanism)
}
