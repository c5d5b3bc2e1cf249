"""Every epsilon covers what was really released, where a run is not all that was released.

What it subtracts may have been released before, and its first phase releases a range. The truth is
that of ``test_true_epsilons``.
"""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from research.accounting import Budget, tight_epsilon

from bandanna._core.types import plain, times_up
from bandanna.privacy import LaplaceRelease, OneBitRelease
from bandanna.privacy.bought import planned_parts, shares_of_whole
from bandanna.privacy.charges import assuming_before, assuming_first, with_start
from bandanna.privacy.composition import for_person
from bandanna.privacy.sums import PureRelease
from tests.privacy.test_true_epsilons import (
    assert_true,
    batches,
    deltas,
    epsilons,
    kinds,
    quick,
    response,
    truth,
)


@quick
@given(kinds, epsilons, epsilons, batches, st.integers(1, 4), deltas)
def test_a_run_and_what_was_released_before_of_what_it_subtracts(
    kind: type[PureRelease], before: float, own: float, batch: int, size: int, delta: float
) -> None:
    """A run is as private as without it; with all that was released before, as the sum says."""
    release, earlier = kind(own, batch), response(before, 0.0, 1, own)
    promise = assuming_before(release.guarantee(), "past", before)
    real = truth(release, 1)
    for claimed, moved in (
        (promise, 1),
        (promise.at_delta(delta), 1),
        (promise.for_group(size), size),
        (promise.for_group(size, delta=delta), size),
    ):
        run = truth(release, *([1] * moved))
        assert_true(claimed, run)
        together = with_start(times_up(moved, before), claimed.epsilon)
        assert f"{plain(together)} in all" in claimed.assumptions[-1]
        old = functools.reduce(lambda left, right: left.compose(right), [earlier] * moved)
        assert_true(Budget(together, claimed.delta), run.compose(old), slack=1e-9)
    for times in (1, 2, 3):
        again = assuming_before(release.guarantee().repeated(times), "past", before)
        once = assuming_before(release.guarantee(), "past", before, times)
        together = with_start(before, again.epsilon)
        assert f"{plain(together)} in all" in again.assumptions[-1]
        assert f"{plain(with_start(before, own, times))} in all" in once.assumptions[-1]
        often = functools.reduce(lambda left, right: left.compose(right), [real] * times)
        assert_true(again, often)
        assert_true(Budget(together), often.compose(earlier), slack=1e-9)


def test_what_holds_nothing_that_was_released_adds_nothing() -> None:
    release = OneBitRelease(0.5, 3)
    promise = assuming_before(release.guarantee(), "past", 0.0)
    assert promise.assumptions[-1].endswith("it holds no feedback that was released before")
    assert_true(promise, truth(release, 1))


@quick
@given(epsilons, st.sampled_from([None, 0.5]), st.booleans(), st.integers(1, 4), deltas)
def test_a_first_phase(
    epsilon: float, slope: float | None, adjusted: bool, size: int, delta: float
) -> None:
    """A round is in the first phase or in a sum: the promise is about the worse of the two."""
    whole = shares_of_whole(epsilon, adjust=adjusted, slope=slope)
    parts = planned_parts(whole, adjust=adjusted, slope=slope)
    release = LaplaceRelease(epsilon, 1)
    promise = assuming_first(release.guarantee(), 100)

    def first(times: int) -> Any:
        finest = min(part.epsilon for part in parts)
        each = [response(part.epsilon, 0.0, times, finest) for part in parts]
        return functools.reduce(lambda left, right: left.compose(right), each)

    for real in (first, lambda times: truth(release, *([1] * times))):
        assert_true(promise, real(1), slack=1e-9)
        assert_true(promise.at_delta(delta), real(1), slack=1e-9)
        assert_true(promise.for_group(size), real(size), slack=1e-9)
        assert_true(promise.for_group(size, delta=delta), real(size), slack=1e-9)
        assert_true(promise.repeated(2), real(2), slack=1e-9)
        assert_true(Budget(tight_epsilon(promise, delta), delta), real(1), slack=1e-9)
        many = tight_epsilon(promise, delta, rounds=size)
        assert_true(Budget(many, delta), real(size), slack=1e-9)
        person = for_person(promise, times_up(size, epsilon), 0.0, size)
        assert_true(person, real(size), slack=1e-9)
        assert_true(person.at_delta(delta), real(size), slack=1e-9)
