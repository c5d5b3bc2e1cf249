"""What every release must do."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.privacy import (
    RELEASES,
    DeviceRelease,
    LaplaceRelease,
    OneBitRelease,
    PlainRelease,
    Release,
    SilentRelease,
    VectorRelease,
)

RELEASES_UNDER_TEST: list[Release] = [
    OneBitRelease(0.5, 4),
    OneBitRelease(1.0, 1),
    LaplaceRelease(0.5, 4),
    LaplaceRelease(1.0, 1),
    PlainRelease(3),
    SilentRelease(2),
    VectorRelease(0.5, 0.0, 3, 2, batch=4, mixing=0.5),
    VectorRelease(0.5, 1e-6, 3, 2, batch=4, mixing=0.5),
    DeviceRelease(1.0),
]

VOTES = Ticket(np.array([0, 1, 0], dtype=np.uint8), arm=0, importance=2.0)
SHARES = Ticket(np.array([[0.5, 0.0, 1.0]]), arm=0, importance=1.5)


def publish(release: Release, *losses: int) -> np.ndarray:
    """Let a batch out through the door that every release has."""
    tally = release.start()
    for number, units in enumerate(losses):
        counted = int(units > UNITS // 2) if release.takes_bits else units
        tally.add(counted, VOTES if number % 2 else SHARES)
    return np.atleast_1d(tally.publish())


every_release = pytest.mark.parametrize("release", RELEASES_UNDER_TEST, ids=repr)


def test_all_releases_are_under_test() -> None:
    assert {release.name for release in RELEASES_UNDER_TEST} == set(RELEASES)


@every_release
def test_returns_a_finite_number(release: Release) -> None:
    for losses in ([0], [1, UNITS], [UNITS] * release.batch, [-5, 10**12]):
        assert np.isfinite(publish(release, *losses)).all()


@every_release
def test_a_batch_is_published_once(release: Release) -> None:
    tally = release.start()
    tally.add(1, VOTES)
    tally.publish()
    for again in (tally.publish, lambda: tally.add(1, VOTES)):
        with pytest.raises(AssertionError, match="has been published"):
            again()


@every_release
def test_a_tally_goes_on_after_a_restart(release: Release) -> None:
    """With the same noise, as if it had not been saved in between."""
    seeded, again = (release.seeded(new_stream(3)) for _ in range(2))
    tally = seeded.start()
    losses = [UNITS, 5, UNITS // 3][: release.batch]
    for units in losses[:2]:
        tally.add(units, SHARES)
    resumed = again.resume(json.loads(json.dumps(tally.to_dict())), losses[:2], release.batch)
    for each in (tally, resumed):
        for units in losses[2:]:
            each.add(units, VOTES)
    np.testing.assert_array_equal(tally.publish(), resumed.publish())


@every_release
def test_losses_outside_the_grid_count_as_its_ends(release: Release) -> None:
    """An attacker who gets a wild loss past the edge gains nothing."""
    wild, tame = (release.seeded(new_stream(4)) for _ in range(2))
    np.testing.assert_array_equal(
        publish(wild, 10**15, -(10**15))[: release.batch],
        publish(tame, UNITS, 0)[: release.batch],
    )


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
    assert promise.delta in (0.0, getattr(release, "delta", 0.0))
    assert promise.model == ("local" if release.batch == 1 else "central")
    assert "Lemma" in promise.because
    assert str(release.batch) in promise.mechanism


@every_release
def test_seeded_it_repeats_itself_and_promises_nothing(release: Release) -> None:
    first, second = release.seeded(new_stream(1)), release.seeded(new_stream(1))
    for units in (0, UNITS, 12345):
        np.testing.assert_array_equal(publish(first, units), publish(second, units))
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
