"""Sums of batches and of phases: what is added is what is released, once, noise aside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandanna._core.checks import MAX_SLOTS
from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.privacy import LaplaceRelease, OneBitRelease, PlainRelease, laplace
from bandanna.privacy.composition import check_slots
from bandanna.privacy.sums import SumRelease

HALF = UNITS // 2
RELEASES = [PlainRelease(4, longest=9), LaplaceRelease(0.5, 4, longest=9)]


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "discrete_laplace_noise", lambda scale: 0)


releases = pytest.mark.parametrize("release", RELEASES, ids=repr)
sizes = pytest.mark.parametrize("size", [None, 1, 4, 9])


@releases
@sizes
def test_the_sum_is_released_over_the_size_of_the_batch(
    release: SumRelease, size: int | None
) -> None:
    tally = release.start(size)
    tally.add(3)
    tally.add(4)
    assert tally.publish() == pytest.approx(7 / ((size or 4) * UNITS))
    assert release.start(size).publish() == 0.0


@releases
@sizes
def test_a_batch_goes_on_with_the_losses_it_had(release: SumRelease, size: int | None) -> None:
    tally = release.resume({}, [5, 6], size or 4)
    tally.add(7)
    assert tally.publish() == pytest.approx(18 / ((size or 4) * UNITS))
    with pytest.raises(ValueError, match="no further state"):
        release.resume({"sum": 3}, [], 4)


@releases
def test_what_is_missing_counts_the_middle_of_the_range(release: SumRelease) -> None:
    tally = release.start()
    tally.add(8)
    tally.fill(2)
    assert isinstance(tally._sums[0][0], int)  # type: ignore[attr-defined]
    assert tally.publish() == (8 + 2 * HALF) / (4 * UNITS)


@releases
def test_losses_outside_the_range_are_cut_to_it(release: SumRelease) -> None:
    tally = release.start()
    tally.add(-5)
    tally.add(3 * UNITS)
    assert tally.publish() == 1 / 4
    for rounds in (None, 9):  # sums too, whatever adds them up
        assert release.release(100 * UNITS, rounds) == pytest.approx(1.0)
        assert release.release(-UNITS, rounds) == 0.0
    assert release.release(5 * UNITS, 9) == pytest.approx(5 / 9)


@pytest.mark.parametrize("release", [*RELEASES, OneBitRelease(1.0, 4)], ids=repr)
def test_a_batch_is_published_once(release: SumRelease) -> None:
    tally = release.start()
    tally.publish()
    for again in (tally.publish, lambda: tally.add(1), lambda: tally.fill(1)):
        with pytest.raises(AssertionError, match="this batch has been published"):
            again()


@releases
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-UNITS, 2 * UNITS)), min_size=1))
def test_a_phase_releases_the_mean_of_every_arm_played(
    release: SumRelease, losses: list[tuple[int, int]]
) -> None:
    tally = release.start_phase()
    for arm, units in losses:
        tally.add(units, None, arm)
    played = sorted({arm for arm, _ in losses})
    cut = {arm: [min(max(u, 0), UNITS) for a, u in losses if a == arm] for arm in played}
    assert tally.counts == {arm: len(cut[arm]) for arm in played}
    expected = [sum(cut[arm]) / (len(cut[arm]) * UNITS) for arm in played]
    np.testing.assert_allclose(tally.publish(), expected)
    with pytest.raises(AssertionError, match="this batch has been published"):
        tally.publish()


def test_what_is_saved_makes_the_same_release() -> None:
    assert LaplaceRelease(0.5, 4).to_dict() == {"name": "laplace", "epsilon": 0.5, "batch": 4}
    assert LaplaceRelease(0.5, 4, longest=9).to_dict()["longest"] == 9


@pytest.mark.parametrize(("slots", "works"), [(1, True), (MAX_SLOTS, True), (0, False)])
def test_slots_are_counted_from_one(slots: int, works: bool) -> None:
    if works:
        assert check_slots(slots) == slots
    for refused in (slots if not works else 0, MAX_SLOTS + 1, 1.5, "many", None):
        with pytest.raises(InputError, match="per_person must be"):
            check_slots(refused)
