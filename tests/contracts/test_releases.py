"""What every release must do."""

from __future__ import annotations

import math

import pytest

from bandanna.grid import UNITS
from bandanna.privacy import (
    RELEASES,
    LaplaceRelease,
    OneBitRelease,
    PlainRelease,
    Release,
    SeededRelease,
    SilentRelease,
)
from bandanna.streams import new_stream
from bandanna.types import InputError

RELEASES_UNDER_TEST: list[Release] = [
    OneBitRelease(0.5, 4),
    OneBitRelease(1.0, 1),
    LaplaceRelease(0.5, 4),
    LaplaceRelease(1.0, 1),
    PlainRelease(3),
    SilentRelease(2),
]

every_release = pytest.mark.parametrize("release", RELEASES_UNDER_TEST, ids=repr)


def test_all_releases_are_under_test() -> None:
    assert {release.name for release in RELEASES_UNDER_TEST} == set(RELEASES) - {"vector"}


@every_release
def test_returns_a_finite_number(release: Release) -> None:
    for total in (0, 1, release.batch * UNITS):
        assert math.isfinite(release.release(total))


@every_release
def test_states_its_guarantee(release: Release) -> None:
    promise = release.guarantee()
    if release.name == "plain":
        assert not promise.private
        assert promise.model == "none"
        return
    if release.name == "silent":
        assert (promise.epsilon, promise.delta) == (0.0, 0.0)
        return
    assert promise.epsilon == release.epsilon  # type: ignore[attr-defined]
    assert promise.delta == 0.0
    assert promise.model == ("local" if release.batch == 1 else "central")
    assert "Lemma" in promise.because
    assert str(release.batch) in promise.mechanism


@every_release
def test_seeded_it_repeats_itself_and_promises_nothing(release: Release) -> None:
    first = SeededRelease(release, new_stream(1))
    second = SeededRelease(release, new_stream(1))
    totals = [0, UNITS, 12345]
    assert [first.release(t) for t in totals] == [second.release(t) for t in totals]
    assert math.isinf(first.guarantee().epsilon)
    assert "seed" in first.guarantee().because
    with pytest.raises(TypeError):
        first.to_dict()


@every_release
def test_can_be_made_again_from_its_dict(release: Release) -> None:
    data = release.to_dict()
    assert RELEASES[data.pop("name")](**data) == release


@pytest.mark.parametrize("kind", [OneBitRelease, LaplaceRelease])
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 101, 1e-10, "1", None, True])
def test_impossible_epsilons_are_refused(kind: type, epsilon: object) -> None:
    with pytest.raises(InputError, match="epsilon must be"):
        kind(epsilon, 1)


@every_release
@pytest.mark.parametrize("batch", [0, -3, 1.5, "2"])
def test_impossible_batches_are_refused(release: Release, batch: object) -> None:
    data = release.to_dict() | {"batch": batch}
    with pytest.raises(InputError, match="batch must be a whole number"):
        RELEASES[data.pop("name")](**data)
