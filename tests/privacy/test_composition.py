"""What holds for a person in several slots, by two computations that share no code."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from bandanna._core.types import InputError, group_delta
from bandanna.privacy import LaplaceRelease, OneBitRelease
from bandanna.privacy.composition import (
    SlotCost,
    composed_delta,
    composed_epsilon,
    keeps,
    laplace_group,
    one_bit_group,
    slot_for,
    slots_for,
)
from bandanna.privacy.sums import PureRelease

KNOWN = {20: 1.789, 100: 4.775, 365: 10.31}


def by_accounting(each: SlotCost, slots: int, delta: float) -> float:
    worst = common.DifferentialPrivacyParameters(each.epsilon, each.delta)
    single = pld.from_privacy_parameters(worst, value_discretization_interval=each.epsilon / 1000)
    return float(single.self_compose(slots).get_epsilon_for_delta(delta))


def exact_delta(epsilon: float, each: list[float]) -> float:
    """Composition of randomised responses, outcome by outcome."""
    total = []
    for signs in itertools.product((1, -1), repeat=len(each)):
        loss = sum(sign * part for sign, part in zip(signs, each, strict=True))
        chance = math.prod(
            1.0 / (1.0 + math.exp(-sign * part)) for sign, part in zip(signs, each, strict=True)
        )
        total.append(chance * max(0.0, -math.expm1(epsilon - loss)))
    return math.fsum(total)


@pytest.mark.parametrize("slots", KNOWN)
def test_known_costs_by_two_computations(slots: int) -> None:
    each = SlotCost(0.1, 0.0)
    found = composed_epsilon(each, slots, 1e-6)
    assert found == pytest.approx(KNOWN[slots], rel=1e-3)
    assert found == pytest.approx(by_accounting(each, slots, 1e-6), rel=1e-6)


@pytest.mark.parametrize("each", [SlotCost(0.3, 0.0), SlotCost(1.5, 0.0), SlotCost(0.2, 1e-3)])
@pytest.mark.parametrize("slots", [1, 2, 7])
def test_composition_is_the_sum_over_outcomes(each: SlotCost, slots: int) -> None:
    for epsilon in (0.0, 0.2, 0.9, slots * each.epsilon * 0.99):
        pure = exact_delta(epsilon, [each.epsilon] * slots)
        exact = 1.0 - (1.0 - each.delta) ** slots * (1.0 - pure)
        found = composed_delta(epsilon, each, slots)
        assert exact - 1e-15 <= found <= exact * (1 + 1e-9) + 1e-15
    assert composed_delta(slots * each.epsilon + 1e-9, each, slots) == pytest.approx(
        1.0 - (1.0 - each.delta) ** slots, abs=1e-12
    )


@pytest.mark.parametrize("spend_delta", [False, True])
@pytest.mark.parametrize("slots", [1, 3, 100, 5000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.05, 1e-9), (8.0, 1e-3)])
def test_a_slot_keeps_the_persons_promise_and_hardly_less(
    epsilon: float, delta: float, slots: int, spend_delta: bool
) -> None:
    each = slot_for(epsilon, delta, slots, spend_delta=spend_delta)
    assert keeps(epsilon, delta, each, slots)
    assert not keeps(epsilon, delta, each._replace(epsilon=each.epsilon * 1.001), slots)
    if not spend_delta:
        assert each.epsilon >= epsilon / slots * (1 - 1e-15)
        assert slots_for(epsilon, delta, each) == slots


@pytest.mark.parametrize("slots", [1, 3, 7, 49, 10**6])
def test_a_pure_share_is_exact(slots: int) -> None:
    each = slot_for(1.0, 0.0, slots)
    assert slots * Fraction(each.epsilon) <= 1 < slots * Fraction(each.epsilon * (1 + 2.0**-50))


def test_too_many_slots_and_too_little_delta_are_refused() -> None:
    with pytest.raises(InputError, match="fewer slots"):
        slot_for(1e-4, 0.0, 10**6)
    with pytest.raises(InputError, match="cost more than delta"):
        composed_epsilon(SlotCost(0.1, 1e-6), 10, 1e-6)


@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.2])
def test_no_split_of_a_group_is_worse_than_the_one_promised(delta: float) -> None:
    """All partitions of six rounds, composed outcome by outcome."""
    each, size = 0.4, 6
    promised = one_bit_group(each, size, batch=10, delta=delta)
    worst = 0.0
    for parts in partitions(size, size):
        costs = [math.log1p(part * math.expm1(each)) for part in parts]
        assert exact_delta(promised, costs) <= delta
        worst = max(worst, exact_delta(promised * 0.95, costs))
    assert worst > delta  # so that the promise is not far from the truth


def test_large_batches_make_groups_worse_and_laplace_adds_up() -> None:
    apart = one_bit_group(0.1, 40, batch=1, delta=1e-6)
    pairs = one_bit_group(0.1, 40, batch=2, delta=1e-6)
    assert apart == composed_epsilon(SlotCost(0.1, 0.0), 40, 1e-6) < pairs <= 4.0
    assert laplace_group(0.1, 40, 9, 1e-7, 0.0) == pytest.approx(4.0)
    assert laplace_group(0.1, 40, 9, 1e-7, 0.01) == pytest.approx(
        4.0 + 2 * math.log(0.99), abs=1e-5
    )


@pytest.mark.parametrize("release", [OneBitRelease(0.1, 1), LaplaceRelease(0.1, 1)])
def test_groups_in_batches_of_one_compose(release: PureRelease) -> None:
    promise = release.guarantee()
    together = promise.for_group(100, delta=1e-6)
    assert together.epsilon == pytest.approx(4.775, rel=1e-3)
    assert together.delta == 1e-6
    assert promise.for_group(100).epsilon == pytest.approx(10.0)
    assert "worst split" in together.because


@pytest.mark.parametrize("release", [OneBitRelease(0.1, 8), LaplaceRelease(0.1, 8)])
def test_groups_in_larger_batches_cost_more(release: PureRelease) -> None:
    promise = release.guarantee()
    found = [promise.for_group(20, delta=delta).epsilon for delta in (0.0, 1e-9, 1e-6, 1e-3)]
    assert found == sorted(found, reverse=True)
    assert found[2] > 1.789
    assert found[0] == pytest.approx(2.0)
    assert promise.for_group(1, delta=0.01).epsilon == promise.at_delta(0.01).epsilon
    with pytest.raises(InputError, match="delta must be"):
        promise.for_group(20, delta=1.0)


def partitions(total: int, most: int) -> list[list[int]]:
    if total == 0:
        return [[]]
    return [
        [part, *rest]
        for part in range(min(total, most), 0, -1)
        for rest in partitions(total - part, part)
    ]


def test_groups_and_deltas_that_make_no_sense_are_refused() -> None:
    promise = OneBitRelease(0.5, 4).guarantee()
    for size in (0, -1, 1.5, "3", 10**400, 10**5000):
        with pytest.raises(InputError, match="whole number of rounds, 1 to"):
            promise.for_group(size)  # type: ignore[arg-type]
    for delta in ("x", None, -0.1, 1.0, float("nan"), 10**400):
        with pytest.raises(InputError, match="delta must be from 0 to below 1"):
            promise.at_delta(delta)  # type: ignore[arg-type]
    assert promise.for_group(10**12).epsilon == 0.5e12


def test_the_delta_of_a_large_group_is_the_sum_rounded_up() -> None:
    delta, size = 1e-9, 10**5 + 1
    for epsilon in (0.0, 1e-9, 1e-6, 1e-3):
        exact = delta * math.fsum(math.exp(k * epsilon) for k in range(size))
        assert min(exact, 1.0) <= group_delta(epsilon, delta, size) <= exact * (1 + 1e-11)
    assert group_delta(1e-9, 1e-25, 10**10) < 1e-11  # and at once
