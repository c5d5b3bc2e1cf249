"""Every epsilon that is printed covers what was really released.

The truth is the privacy loss distribution of the releases in question, composed by dp-accounting
from their exact probabilities and rounded *down*. A claimed (epsilon, delta) is false if the
distribution has a larger delta at that epsilon.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import pathlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from research.accounting import (
    Budget,
    advanced_composition,
    basic_composition,
    group_privacy,
    privacy_loss,
    tight_epsilon,
)

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.types import MOST_GROUPED, Guarantee, InputError, no_guarantee, plain
from bandanna.policy.segments import promise_together
from bandanna.privacy import LaplaceRelease, OneBitRelease
from bandanna.privacy.charges import assuming_start, with_start
from bandanna.privacy.composition import (
    SlotCost,
    composed_delta,
    composed_epsilon,
    for_person,
    slot_for,
    slots_for,
)
from bandanna.privacy.epoch_sums import EpochRelease
from bandanna.privacy.exact_arithmetic import log_of
from bandanna.privacy.laplace import laplace_scale
from bandanna.privacy.range import PrivateRange, cost_of_range
from bandanna.privacy.sums import PureRelease
from bandanna.privacy.vector import VectorRelease

Array = np.ndarray[Any, np.dtype[np.float64]]

quick = settings(deadline=None, max_examples=25)
epsilons = st.sampled_from([0.01, 0.1, 0.3, 1.0, 2.0, 4.0])
deltas = st.sampled_from([1e-9, 1e-6, 1e-3, 0.03, 0.3])
kinds = st.sampled_from([OneBitRelease, LaplaceRelease])
batches = st.integers(1, 12)


def one_bit_pair(release: OneBitRelease, moved: int) -> Any:
    """The bit of a batch of zeros, and of one in which some losses are 1."""

    def law(total: int) -> dict[int, float]:
        one = Fraction(release.a + release.b * total, release.denominator)
        return {1: log_of(one), 0: log_of(1 - one)}

    return two(law(moved * UNITS), law(0), release.epsilon)


def laplace_pair(release: PureRelease, moved: int) -> Any:
    """Which of some intervals the noisy sum falls in: post-processing, so a lower bound."""
    scale = laplace_scale(release.epsilon)
    cuts = np.linspace(-12.0 * scale, moved * UNITS + 12.0 * scale, 400)
    cuts = np.unique(np.concatenate((np.floor(cuts), [0.0, float(moved * UNITS)])))

    def law(centre: int) -> dict[int, float]:
        chances = discrete_laplace_chances(cuts - centre, scale)
        return dict(enumerate(np.log(chances).tolist()))

    return two(law(moved * UNITS), law(0), release.epsilon)


def discrete_laplace_chances(cuts: Array, scale: float) -> Array:
    """Return the chances of at most the first cut, between cuts, and above the last.

    Differences of the nearer tails: one minus a tail would lose the digits that count.
    """
    tail = 1.0 / (1.0 + math.exp(-1.0 / scale))
    below = np.where(cuts < 0, np.exp(np.minimum(cuts, 0.0) / scale) * tail, np.nan)
    above = np.where(cuts >= 0, np.exp(-np.maximum(cuts + 1.0, 0.0) / scale) * tail, np.nan)
    between = np.where(
        cuts[1:] < 0,
        below[1:] - below[:-1],
        np.where(cuts[:-1] >= 0, above[:-1] - above[1:], 1.0 - below[:-1] - above[1:]),
    )
    first = below[0] if cuts[0] < 0 else 1.0 - above[0]
    last = above[-1] if cuts[-1] >= 0 else 1.0 - below[-1]
    return np.concatenate(([first], between, [last]))


def two(first: dict[int, float], second: dict[int, float], epsilon: float) -> Any:
    return pld.from_two_probability_mass_functions(
        first,
        second,
        pessimistic_estimate=False,
        symmetric=False,
        value_discretization_interval=min(1e-3, epsilon / 100),
    )


@functools.lru_cache(maxsize=512)
def truth(release: PureRelease, *moved: int) -> Any:
    """What batches tell together in which so many losses were changed."""
    parts = [
        one_bit_pair(release, many)
        if isinstance(release, OneBitRelease)
        else laplace_pair(release, many)
        for many in moved
    ]
    return functools.reduce(lambda left, right: left.compose(right), parts)


def response(epsilon: float, delta: float, times: int, finest: float) -> Any:
    """Randomised response, the worst mechanism with its parameters."""
    often, seldom = (
        (1.0 - delta) / (1.0 + math.exp(-epsilon)),
        (1.0 - delta) / (1.0 + math.exp(epsilon)),
    )
    first = {0: math.log(often), 1: math.log(seldom)}
    second = {0: math.log(seldom), 1: math.log(often)}
    if delta:
        first[2] = second[3] = math.log(delta)
    single = two(first, second, finest)
    return single if times == 1 else single.self_compose(times)


def assert_true(claimed: Guarantee | Budget, real: Any, slack: float = 0.0) -> None:
    found = real.get_delta_for_epsilon(claimed.epsilon + slack)
    assert found <= claimed.delta * (1.0 + 1e-6) + 1e-12, (claimed.epsilon, found)
    if isinstance(claimed, Guarantee):
        assert claimed.guess >= (1.0 + real.get_delta_for_epsilon(0.0)) / 2.0 - 1e-9


def split(data: st.DataObject, size: int, batch: int) -> list[int]:
    """Some way in which rounds may fall into batches."""
    parts: list[int] = []
    while size > 0:
        parts.append(data.draw(st.integers(1, min(size, batch)), label="rounds in a batch"))
        size -= parts[-1]
    return parts


@quick
@given(kinds, epsilons, batches, deltas)
def test_one_round(kind: type[PureRelease], epsilon: float, batch: int, delta: float) -> None:
    release = kind(epsilon, batch)
    promise, real = release.guarantee(), truth(release, 1)
    assert_true(promise, real)
    assert_true(promise.at_delta(delta), real)
    assert_true(promise.for_group(1, delta=delta), real)
    assert_true(Budget(tight_epsilon(promise, delta), delta), real)
    assert_true(Budget(tight_epsilon(promise, 0.0), 0.0), real)
    known = privacy_loss(promise).get_delta_for_epsilon(epsilon / 2)
    grid = 2.0 / laplace_scale(epsilon)
    assert real.get_delta_for_epsilon(epsilon / 2 + grid) <= known + 1e-9


@quick
@given(st.data(), kinds, epsilons, batches, st.integers(1, 8), deltas)
def test_a_group_of_rounds(
    data: st.DataObject,
    kind: type[PureRelease],
    epsilon: float,
    batch: int,
    size: int,
    delta: float,
) -> None:
    release = kind(epsilon, batch)
    promise, real = release.guarantee(), truth(release, *split(data, size, batch))
    assert_true(promise.for_group(size), real)
    assert_true(promise.for_group(size, delta=delta), real)
    assert_true(promise.for_group(size, delta=0.0), real)
    later = promise.at_delta(delta / 1e3).for_group(size)
    assert_true(later, real)
    if 10 * later.delta < 1:
        assert_true(promise.at_delta(delta / 1e3).for_group(size, delta=10 * later.delta), real)
    if batch == 1:
        assert_true(Budget(tight_epsilon(promise, delta, rounds=size), delta), real)


@quick
@given(kinds, epsilons, batches, st.integers(1, 4), deltas)
def test_what_was_released_again(
    kind: type[PureRelease], epsilon: float, batch: int, times: int, delta: float
) -> None:
    release = kind(epsilon, batch)
    promise = release.guarantee().repeated(times)
    real = truth(release, *([1] * times))
    assert_true(promise, real)
    assert_true(promise.at_delta(delta), real)
    assert_true(promise.for_group(1, delta=delta), real)


@quick
@given(epsilons, st.integers(1, 20), st.integers(2, 10), st.integers(1, 2), deltas, deltas)
def test_everything_of_a_person(
    epsilon: float, slots: int, batch: int, people: int, delta: float, other: float
) -> None:
    """Several people may be in the same batches; a person is in each once."""
    for own in (0.0, delta):
        each = slot_for(epsilon, own, slots)
        for release in (OneBitRelease(each.epsilon, batch), LaplaceRelease(each.epsilon, batch)):
            promise = for_person(release.guarantee(), epsilon, own, slots)
            one, all_ = truth(release, *([1] * slots)), truth(release, *([people] * slots))
            assert promise.unit == "person"
            assert_true(promise, one)
            assert_true(promise.for_group(people), all_)
            assert_true(promise.repeated(2), truth(release, *([1] * (2 * slots))))
            if other >= own:
                assert_true(promise.at_delta(other), one)
                assert_true(Budget(tight_epsilon(promise, other), other), one)
                real = privacy_loss(promise).get_delta_for_epsilon(epsilon / 2)
                assert one.get_delta_for_epsilon(epsilon / 2) <= real + 1e-9


@quick
@given(kinds, epsilons, epsilons, st.integers(1, 10), st.integers(1, 4), deltas)
def test_a_range_and_a_policy(
    kind: type[PureRelease], bought: float, epsilon: float, batch: int, size: int, delta: float
) -> None:
    release = kind(epsilon, batch)
    found = a_range(bought)
    both = found.together(release.guarantee())

    def real(*moved: int) -> Any:
        return truth(release, *moved).compose(response(bought, 0.0, sum(moved), epsilon))

    assert_true(both, real(1))
    assert_true(both.at_delta(delta), real(1))
    assert_true(both.for_group(1, delta=delta), real(1))
    assert_true(both.for_group(size, delta=delta), real(*([1] * size)))
    assert_true(both.for_group(size), real(*([1] * size)))
    assert set(found.guarantee.assumptions) <= set(both.assumptions)
    assert both.model == "central"


def a_range(epsilon: float) -> PrivateRange:
    """A range that cost so much; where its ends are does not matter here."""
    promise = Guarantee(epsilon, 0.0, "values", "central", "quantiles", "OpenDP", ("bounds",))
    return PrivateRange(0.0, 1.0, promise, (0.0, 1.0), 100, 8 * 0.99 / epsilon)


@quick
@given(epsilons, epsilons, batches, st.integers(1, 4))
def test_segments(first: float, second: float, batch: int, size: int) -> None:
    releases = OneBitRelease(first, batch), LaplaceRelease(second, batch)
    both = promise_together({"a": releases[0].guarantee(), "b": releases[1].guarantee()})
    for release in releases:
        assert_true(both, truth(release, 1))
        assert_true(both.for_group(size), truth(release, *([1] * size)))


@quick
@given(epsilons, st.sampled_from([0.0, 1e-9, 1e-4]), st.integers(1, 30), deltas)
def test_composition_of_slots(epsilon: float, own: float, slots: int, delta: float) -> None:
    each = SlotCost(epsilon, own)
    real = response(*each, slots, epsilon)
    for at in (0.0, epsilon / 2, slots * epsilon / 2):
        assert real.get_delta_for_epsilon(at + 1e-9) <= composed_delta(at, each, slots) + 1e-12
    if delta > 2 * slots * own:
        found = Budget(composed_epsilon(each, slots, delta), delta)
        assert_true(found, real, slack=1e-9)
        many = slots_for(*found, each)
        assert many >= slots
        if many <= 100:
            assert_true(found, response(*each, many, epsilon), slack=1e-9)
    placed = slot_for(epsilon, delta, slots, spend_delta=own > 0)
    assert_true(Budget(epsilon, delta), response(*placed, slots, placed.epsilon), slack=1e-9)


@quick
@given(st.lists(epsilons, min_size=1, max_size=12), deltas, st.sampled_from([0.0, 1e-6]))
def test_the_papers_lemmas(each: list[float], delta: float, own: float) -> None:

    def real(some: float) -> Any:
        parts = [response(epsilon, some, 1, min(each)) for epsilon in each]
        return functools.reduce(lambda left, right: left.compose(right), parts)

    assert_true(
        basic_composition([Budget(epsilon, own) for epsilon in each]), real(own), slack=1e-9
    )
    assert_true(advanced_composition(each, delta), real(0.0), slack=1e-9)
    grouped = group_privacy(Budget(each[0], own), len(each))
    promised = Guarantee(each[0], own, "", "central", "", "").for_group(len(each))
    assert (grouped.epsilon, grouped.delta) == (promised.epsilon, promised.delta)


@quick
@given(
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
    st.integers(1, 100),
    st.integers(1, 4),
)
def test_vectors_with_gaussian_noise(epsilon: float, delta: float, experts: int, size: int) -> None:
    promise = VectorRelease(epsilon, delta, experts, 4, 10, 0.5).guarantee()
    if promise.facts["mechanism"] != "vector-gaussian":
        return
    for many in (1, size):
        real = pld.from_gaussian_mechanism(
            promise.facts["multiplier"] / many,
            pessimistic_estimate=False,
            value_discretization_interval=min(1e-3, epsilon / 100),
        )
        claimed = promise.for_group(many)
        if claimed.delta < 1:
            assert_true(claimed, real)


@quick
@given(
    st.sampled_from([0.1, 1.0, 3.0]),
    st.sampled_from([1e-9, 1e-3]),
    st.sampled_from(["feedback", "context and feedback"]),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_epochs_with_gaussian_noise(
    epsilon: float, delta: float, protects: Any, slots: int, size: int
) -> None:
    """A person in all their epochs, and several rounds in one of them."""
    promise = EpochRelease(protects, epsilon, delta, 3, 4, slots, by_person=slots > 1).guarantee()

    def real(sigma: float) -> Any:
        return pld.from_gaussian_mechanism(
            sigma,
            pessimistic_estimate=False,
            value_discretization_interval=min(1e-3, epsilon / 100),
        )

    multiplier = promise.facts["multiplier"]
    together = real(multiplier * math.sqrt(slots)).self_compose(slots)
    assert_true(promise, together, slack=1e-3 * epsilon)
    assert_true(Budget(tight_epsilon(promise, delta), delta), together, slack=1e-3 * epsilon)
    claimed = promise.for_group(size)
    if claimed.delta < 1:
        assert_true(claimed, real(multiplier / size))
    with pytest.raises(InputError, match=r"released together|leave out rounds"):
        tight_epsilon(promise, delta, rounds=2)


@pytest.mark.parametrize("slots", [None, 1, 20])
@pytest.mark.parametrize("algorithm", ["one-bit-exp3", "adaptive"])
def test_numbers_of_certificates(slots: int | None, algorithm: str) -> None:
    """From the document alone, for one person and with what a range cost."""
    found = bd.private_range(range(5000), 0.5, bounds=(0, 10_000))
    policy = bd.PrivateBandit(
        *(3, 1.0, 10_000, algorithm),
        loss_range=found.loss_range,
        clip=True,
        per_person=slots,
        delta=0.0 if slots in (None, 1) else 1e-6,
    )
    document = policy.certificate(found)
    each = float(document.get("slot_epsilon") or document["epsilon"])
    if document["mechanism"] == "one-bit":
        release: PureRelease = OneBitRelease(each, document["batch"])
        assert isinstance(release, OneBitRelease)
        assert (release.a, release.b) == (document["a"], document["b"])
    else:
        release = LaplaceRelease(each, document["batch"])
        assert laplace_scale(each) == document["scale"]
    real = truth(release, *([1] * (slots or 1)))
    assert_true(Budget(document["epsilon"], document["delta"]), real)
    cost = float(cost_of_range(document["range_tail"], document["range_scale"]))
    real = real.compose(response(cost, 0.0, 1, each))
    assert_true(Budget(document["epsilon_with_range"], document["delta"]), real)


def test_a_person_of_a_policy_that_was_resumed_twice(tmp_path: pathlib.Path) -> None:
    policy = bd.PrivateBandit(2, 2.0, per_person=3, delta=1e-6, batch=1, rounds_per_slot=1)
    policy.save(tmp_path / "policy.json")
    bd.load(tmp_path / "policy.json")
    again = bd.load(tmp_path / "policy.json", again=True)
    each = policy.guarantee.facts["slot_epsilon"]
    release = OneBitRelease(each, 1)
    assert_true(again.guarantee, truth(release, *([1] * 6)))
    assert again.guarantee.unit == "person"
    for call in (privacy_loss, lambda promise: tight_epsilon(promise, 1e-6)):
        with pytest.raises(InputError, match="derived"):
            call(again.guarantee)


def test_accounting_for_a_person_counts_all_their_slots() -> None:
    policy = bd.PrivateBandit(2, 2.0, per_person=20, batch=1, rounds_per_slot=1)
    promise = policy.guarantee
    assert tight_epsilon(promise, 1e-6) == pytest.approx(1.7886, abs=1e-4)
    assert tight_epsilon(promise, 1e-6) == pytest.approx(promise.at_delta(1e-6).epsilon, rel=1e-6)
    assert tight_epsilon(promise, 0.0) == 2.0
    with pytest.raises(InputError, match="leave out rounds=2"):
        tight_epsilon(promise, 1e-6, rounds=2)


def test_a_group_remembers_what_the_range_cost() -> None:
    with pytest.warns(bd.InaccurateWarning, match="of the 100 values"):
        found = bd.private_range(range(100), epsilon=1.0, bounds=(0, 1000))
    policy = bd.PrivateBandit(2, 0.1, loss_range=found.loss_range, clip=True)
    both = found.together(policy.guarantee)
    assert both.for_group(1, delta=1e-9).epsilon == pytest.approx(1.1, abs=1e-6)
    assert both.for_group(3, delta=1e-9).epsilon == pytest.approx(3.3, abs=1e-6)
    assert "the bounds, 0 to 1000, were known without looking at the values" in both.assumptions
    with pytest.raises(InputError, match="derived"):
        tight_epsilon(both, 1e-6)


def test_too_few_values_for_a_range_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(InputError, match=r"3 values at epsilon 0.1 cannot tell a range"):
        bd.private_range([1, 2, 3], 0.1, bounds=(0, 100))
    assert bd.private_range(range(20_000), 1.0, bounds=(0, 1e6)).off_by < 100


@pytest.mark.slow
def test_ends_of_a_range_are_off_by_no_more_than_is_said() -> None:
    """More than 12 of 40 beyond it, of a chance of at most 0.05, has probability below 1e-7."""
    missed = 0
    for _ in range(40):
        found = bd.private_range(range(5000), 1.0, bounds=(0, 10_000))
        # Points are up to 1.4% apart, so the best of them may be off by itself.
        off = max(abs(found.low - 50), abs(found.high - 4950)) - 0.014 * 4950
        missed += off > found.off_by
    assert missed <= 12


def test_accounting_refuses_what_was_derived() -> None:
    promise = OneBitRelease(0.5, 1).guarantee()
    derived = (promise.at_delta(0.1), promise.for_group(2), promise.repeated(2))
    for other in (*derived, promise_together({"a": promise})):
        with pytest.raises(InputError, match="derived"):
            privacy_loss(other, rounds=3)
    with pytest.raises(InputError, match=r"for_group\(2\)"):
        privacy_loss(LaplaceRelease(0.5, 4).guarantee(), rounds=2)


def test_groups_are_of_whole_numbers_and_numpys_are_welcome() -> None:
    promise = OneBitRelease(0.5, 1).guarantee()
    assert promise.for_group(np.int64(3)).epsilon == 1.5  # type: ignore[arg-type]
    assert promise.for_group(1) is promise
    for size in (True, 0, 2.0, "3", MOST_GROUPED + 1, 10**400):
        with pytest.raises(InputError, match="whole number of rounds"):
            promise.for_group(size)  # type: ignore[arg-type]
    weak = Guarantee(1.0, 0.1, "", "central", "", "")
    with pytest.raises(InputError, match="nothing is promised"):
        weak.for_group(10, delta=0.5)
    assert str(weak.for_group(10)).startswith("no privacy: delta is 1")
    assert no_guarantee("none", "none").for_group(3).epsilon == math.inf


@given(st.integers(1, 10**12), st.floats(1e-9, 100.0))
def test_a_groups_epsilon_is_rounded_up(size: int, epsilon: float) -> None:
    promise = Guarantee(epsilon, 0.0, "", "central", "", "").for_group(size)
    assert Fraction(promise.epsilon) >= size * Fraction(epsilon)


def test_a_delta_too_small_for_floats_is_no_discount() -> None:
    promise = OneBitRelease(0.5, 1).guarantee()
    person = for_person(promise, 1.0, 0.0, 2)
    for tiny in (5e-324, 1e-300):
        assert person.at_delta(tiny).epsilon == 1.0
        assert promise.for_group(2, delta=tiny).epsilon == 1.0


def test_a_large_epsilon_is_said_to_be_weak() -> None:
    for epsilon, shown in ((10.0, "99.996%"), (100.0, "100%")):
        text = str(bd.PrivateBandit(2, epsilon).guarantee)
        assert f"can guess right up to {shown} of the time" in text
    assert "weak" not in str(bd.PrivateBandit(2, 1.0).guarantee)
    assert bd.PrivateBandit(2, 0.5).guarantee.guess == pytest.approx(0.6225, abs=1e-4)


@given(st.floats(0.01, 3.0), st.floats(0.01, 3.0), st.integers(1, 3))
def test_a_log_and_the_run_that_starts_from_it(log: float, own: float, times: int) -> None:
    """Someone in both: randomised response is the worst mechanism with each epsilon."""
    chances = np.ones(1), np.ones(1)
    for epsilon in (log, *[own] * times):
        one = 1.0 / (1.0 + math.exp(-epsilon))
        chances = (
            np.multiply.outer(chances[0], [one, 1.0 - one]).ravel(),
            np.multiply.outer(chances[1], [1.0 - one, one]).ravel(),
        )
    spent = float(np.log(chances[0] / chances[1]).max())
    together = with_start(log, own, times)
    assert with_start(log, own) == with_start(log, own, 1)
    assert spent <= together * (1.0 + 1e-12)
    assert together <= spent * (1.0 + 1e-9)
    once = assuming_start(bd.PrivateBandit(2, own).guarantee, log)
    assert f"{plain(with_start(log, own))} in all" in once.assumptions[-1]
    promised = assuming_start(bd.PrivateBandit(2, own).guarantee, log, times)
    assert promised.epsilon == own
    assert f"{plain(together)} in all" in promised.assumptions[-1]


COVERED = {
    *("assuming", "for_group", "repeated", "at_delta", "no_guarantee", "weakness"),
    *("for_person", "together", "tight_epsilon", "privacy_loss", "make_certificate"),
    *("guarantee", "promise", "_promise"),
    *("_spent", "_guarantee", "_grouped"),  # of cards: test_card.py
    *("assuming_start", "at_epsilon", "said_of"),  # test_stated.py
    *("with_parts", "joined"),  # of logs and metrics: test_moments.py, test_metrics.py
    *("assuming_before", "assuming_first"),  # test_charged_epsilons.py
}
"""What takes or returns a guarantee here, and is tested above or promises nothing new."""


def test_no_function_on_guarantees_is_left_out() -> None:
    folder = pathlib.Path(inspect.getfile(OneBitRelease)).parent
    files = [*folder.glob("*.py"), pathlib.Path(inspect.getfile(Guarantee))]
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                notes = [arg.annotation for arg in node.args.args + node.args.kwonlyargs]
                texts = [ast.unparse(note) for note in (*notes, node.returns) if note is not None]
                if any("Guarantee" in text for text in texts):
                    found.add(node.name)
    assert found <= COVERED, f"test {found - COVERED} against what is really released"
