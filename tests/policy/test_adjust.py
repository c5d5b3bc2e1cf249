"""What was known before a decision is subtracted: frozen, covered by the same noise, unbiased."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.scale import Scale
from bandanna.audits.policies import audit_policy
from bandanna.policy.answers import Comparison
from bandanna.privacy.certificate import sealed, verify
from tests.policy.test_interrupts import interrupt_at

ADJUST: dict[str, Any] = {"adjust": "past", "slope": 0.8, "adjusted_range": (-0.1, 0.5)}


def make(epsilon: float = 1.0, **options: Any) -> bd.PrivateBandit:
    return bd.PrivateBandit(["A", "B"], epsilon, **{"rounds": 2000, **ADJUST, **options})


def holds(certificate: dict[str, Any]) -> bool:
    return all(finding.holds for finding in verify(json.dumps(certificate)))


def counted(policy: bd.Policy) -> list[int]:
    """Return what the open batches have added up, by arm."""
    tallies = [batch.tally for batch in policy.state.open.values()]
    return sorted(total for one in tallies for total, _ in one._sums.values())  # type: ignore[attr-defined]


# --- what is counted --------------------------------------------------------------------------


def test_what_is_left_is_counted_in_its_range() -> None:
    scale, ends, rng = Scale(-0.5, 1.5, 0.7), (-1.0, 3.0), np.random.default_rng(0)
    for _ in range(2000):
        outcome, before = rng.uniform(*ends), rng.uniform(-2.0, 4.0)
        left = outcome - 0.7 * min(max(before, -1.0), 3.0)
        expected = (min(max(left, -0.5), 1.5) + 0.5) / 2.0
        sent = round((outcome + 1.0) / 4.0 * UNITS)
        assert scale.units(sent, before, ends, reward=False) / UNITS == pytest.approx(
            expected, abs=3e-6
        )
        mirrored = scale.units(UNITS - sent, before, ends, reward=True)
        assert mirrored / UNITS == pytest.approx(1.0 - expected, abs=3e-6)


@pytest.mark.parametrize("before", [1e308, -1e308, 0.0])
def test_whatever_was_known_moves_a_sum_by_no_more_than_the_range(before: float) -> None:
    policy = make(algorithm="ab-test")
    policy.observe(policy.decide(before=before), loss=0.5)
    assert all(0 <= total <= UNITS for total in counted(policy))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "adjust": None,
            "slope": None,
            "adjusted_range": None,
            "loss_range": "auto",
            "bounds": (0.0, 1.0),
        },
    ],
)
def test_losses_and_rewards_do_not_mix(options: dict[str, Any], tmp_path: Path) -> None:
    policy = make(**options)
    before: dict[str, Any] = {} if options else {"before": 0.5}
    policy.observe(policy.decide(**before), reward=0.5)
    policy.save(tmp_path / "one.json")
    policy = bd.load(tmp_path / "one.json")
    decision = policy.decide(**before)
    with pytest.raises(bd.InputError, match="came the other way before"):
        policy.observe(decision, loss=0.25)
    policy.observe(decision, reward=0.75)


@pytest.mark.parametrize("algorithm", ["phased-net", "phased", "ab-test", "dp-klucb", "one-bit"])
def test_every_algorithm_takes_it(algorithm: str) -> None:
    policy, rng = make(algorithm=algorithm), np.random.default_rng(0)
    for _ in range(500):
        past = rng.random()
        policy.observe(policy.decide(before=past), reward=0.8 * past + 0.1)
    assert policy.waiting == 0
    assert policy.answer().arms[0].rounds + policy.answer().arms[1].rounds > 0


# --- the promise ------------------------------------------------------------------------------


def test_the_promise_says_what_is_covered_and_the_certificate_proves_it() -> None:
    policy = make(0.5)
    promise, certificate = policy.guarantee, policy.certificate()
    assert (promise.epsilon, promise.delta) == (0.5, 0.0)
    assert "losses are from -0.1 to 0.5, a range" in str(promise)
    assert "'past', was known before the decision" in str(promise)
    assert "holds no feedback that was released before" in str(promise)
    assert holds(certificate)
    told = {"adjusted": "past", "before_epsilon": 0.0, "epsilon_with_before": 0.5}
    assert told.items() <= certificate.items()


def test_feedback_that_was_released_before_adds_up() -> None:
    policy = make(0.5, before_epsilon=0.25)
    assert policy.guarantee.epsilon == 0.5
    assert "with epsilon 0.25, which has 0.75 in all" in str(policy.guarantee)
    assert "has 1.5 in all" in str(policy.guarantee.for_group(2))
    certificate = policy.certificate()
    assert certificate["epsilon_with_before"] == 0.75
    assert holds(certificate)
    entries = {name: value for name, value in certificate.items() if name != "seals"}
    changes: list[dict[str, Any]] = [
        {"epsilon_with_before": 0.5},
        {"before_epsilon": 0.1},
        {"before_epsilon": -0.25, "epsilon_with_before": 0.25},
        {"before_epsilon": "much"},
        {"adjusted": "another"},
        {"assumptions": certificate["assumptions"][:-1]},
    ]
    for change in changes:
        assert not holds(sealed(entries | change)), change
    left_out = {name: value for name, value in entries.items() if name != "adjusted"}
    assert not holds(sealed(left_out))


def test_a_file_resumed_twice_adds_up_with_what_was_released_before(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    make(0.5, before_epsilon=0.25).save(path)
    bd.load(path)
    again = bd.load(path, again=True)
    assert again.guarantee.epsilon == 1.0
    assert "has 1.25 in all" in str(again.guarantee)
    assert holds(again.certificate())


def test_persons_are_promised_as_much() -> None:
    policy = make(1.0, per_person=2, rounds_per_slot=2, before_epsilon=0.5)
    assert policy.guarantee.epsilon == 1.0
    assert "has 1.5 in all" in str(policy.guarantee)
    assert holds(policy.certificate())


# --- what is given ----------------------------------------------------------------------------


def test_what_was_known_is_asked_for_and_never_repeated() -> None:
    policy = make()
    for wrong in (None, math.nan, math.inf, "12.375", True):
        with pytest.raises(bd.InputError, match="'past': a finite number") as error:
            policy.decide(before=wrong)  # type: ignore[arg-type]
        assert "12.375" not in str(error.value)
    assert policy.decided == 0
    plain = bd.PrivateBandit(2, 1.0)
    with pytest.raises(bd.InputError, match="adjust="):
        plain.decide(before=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slope": 0.5}, "name it, adjust="),
        ({"adjust": "x", "adjusted_range": (0, 1)}, "slope"),
        ({"adjust": "", "slope": 0.5, "adjusted_range": (0, 1)}, "adjust must name"),
        ({"adjust": "x", "slope": 101, "adjusted_range": (0, 1)}, "slope must be"),
        ({**ADJUST, "binary": True}, "is not adjusted"),
        ({**ADJUST, "before_epsilon": -1}, "before_epsilon"),
        ({"before_epsilon": 0.5}, "adjust="),
        ({**ADJUST, "release": "device"}, "nothing is subtracted"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bd.InputError, match=message):
        bd.PrivateBandit(2, 1.0, **options)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("way", ["loss", "reward"])
def test_a_repeat_is_ignored_and_another_value_refused(closed: bool, way: str) -> None:
    policy = make(algorithm="one-bit", batch=1 if closed else 5)
    made = policy.decide(before=0.9)
    said, other = ({way: value} for value in (0.01, 0.02))  # both below the range: counted alike
    for _ in range(2):
        policy.observe(made, **said)  # type: ignore[arg-type]
    with pytest.raises(bd.DecisionError, match="another value"):
        policy.observe(made, **other)  # type: ignore[arg-type]


def test_segments_take_it() -> None:
    shops = bd.Segments(lambda _: make(), ["de", "fr"])
    shops.observe(shops.decide(segment="de", before=0.5), loss=0.5)
    assert shops.decided == 1


# --- frozen -----------------------------------------------------------------------------------


def test_what_was_known_goes_on_with_the_file_and_goes_when_it_is_released(tmp_path: Path) -> None:
    path, policy = tmp_path / "policy.json", make(algorithm="ab-test", seed=0)
    waiting = [policy.decide(before=past / 20) for past in range(20)]
    for number, made in enumerate(waiting[:10]):
        policy.observe(made, loss=number / 20)
    policy.save(path)
    loaded = bd.load(path)
    assert counted(loaded) == counted(policy)
    for one in (policy, loaded):
        for number, made in enumerate(waiting[10:]):
            one.observe(made, loss=number / 10)
        one.observe(waiting[0], loss=0.0)  # once more
        with pytest.raises(bd.DecisionError, match="another value"):
            one.observe(waiting[1], loss=0.5)
    assert counted(loaded) == counted(policy)
    (batch,) = policy.state.open.values()
    while policy.released == 0:
        policy.observe(policy.decide(before=0.3), loss=0.5)
    assert (batch.before, batch.sent) == ({}, {})


def test_the_first_number_of_a_slot_stands() -> None:
    policy = make(algorithm="ab-test", per_person=1, rounds_per_slot=3)
    made = [policy.decide(person="a", before=before) for before in (0.25, 1.0, -7.0)]
    for one in made:
        policy.observe(one, loss=0.3)
    assert counted(policy) == [
        Scale(-0.1, 0.5, 0.8).units(round(0.3 * UNITS), 0.25, (0, 1), reward=False)
    ]


@pytest.mark.parametrize("algorithm", ["one-bit", "ab-test"])
@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize("what", ["decide", "observe", "give_up"])
def test_an_interrupt_anywhere_counts_once_with_the_number_that_was_known(
    what: str, people: bool, algorithm: str, tmp_path: Path
) -> None:
    """Whatever line is hit, also after the file is read again: each outcome counts once, less
    its own number, and another number given on the way is not taken."""
    batch: dict[str, Any] = {"batch": 50} if algorithm == "one-bit" else {}
    slots: dict[str, Any] = {"per_person": 9, "rounds_per_slot": 1} if people else {}
    expected = Scale(-0.1, 0.5, 0.8).units(round(0.4 * UNITS), 0.25, (0, 1), reward=False)
    line, hit = 0, True
    while hit:
        line += 1
        policy = make(algorithm=algorithm, seed=1, **batch, **slots)
        who = iter(range(99)) if people else iter([None] * 99)
        decide = partial(policy.decide, before=0.25, person=next(who))
        if what == "decide":
            hit = interrupt_at(line, decide)
        else:
            made = decide()
            credit = partial(policy.observe, loss=0.4) if what == "observe" else policy.give_up
            hit = interrupt_at(line, partial(credit, made))
        policy.save(tmp_path / "policy.json")
        for player in (policy, bd.load(tmp_path / "policy.json")):
            if what == "observe":
                player.observe(made, loss=0.4)
            for person in range(50, 53):
                also = player.decide(before=0.25, person=person if people else None)
                player.observe(also, loss=0.4)
            opened = player.state.open.values()
            sums = [one for batch in opened for _, one in batch.counted() if one != UNITS // 2]
            assert set(sums) == {expected}
            assert 3 <= len(sums) <= 4
    assert line > 20


# --- what it is good for ----------------------------------------------------------------------


def world(rng: np.random.Generator) -> tuple[float, dict[str, float]]:
    """Return what was known of a person, and their outcome with each arm: 0.05 apart."""
    past = float(np.clip(rng.normal(0.5, 0.15), 0.0, 1.0))
    outcome = 0.1 + 0.7 * past + rng.uniform(-0.05, 0.05)
    return past, {"A": outcome, "B": outcome + 0.05}


def played(slope: float, seed: int, rounds: int = 600, epsilon: float = 2.0) -> Comparison:
    """Return what a run says of two arms; nothing that is left is cut."""
    options: dict[str, Any] = {}
    if slope:
        ends = 0.05 - max(slope, 0.0), 0.9 - min(slope, 0.0)
        options = {"adjust": "past", "slope": slope, "adjusted_range": ends}
    rng = np.random.default_rng(seed)
    policy = bd.PrivateBandit(["A", "B"], epsilon, rounds, "ab-test", explore=1.0, **options)
    for _ in range(rounds):
        past, outcomes = world(rng)
        made = policy.decide(before=past) if slope else policy.decide()
        policy.observe(made, reward=outcomes[str(made.arm)])
    return policy.compare("A", "B")


@pytest.mark.parametrize("slope", [-0.5, 0.7, 1.5])
def test_differences_are_unbiased_and_covered_whatever_the_slope(slope: float) -> None:
    """Means of 100 runs, five standard errors; 95% intervals that hold at any time.

    Were they right in just 95%, fewer than 80 of 100 would be with probability 1e-8.
    """
    found = [played(slope, seed) for seed in range(100)]
    apart = np.array([one.difference for one in found])
    assert abs(apart.mean() - 0.05) < 5.0 * stats.sem(apart)
    assert sum(one.low <= 0.05 <= one.high for one in found) >= 80


def test_a_good_prediction_makes_intervals_narrower() -> None:
    plain, sharp = played(0.0, 0, 2000), played(0.7, 0, 2000)
    assert sharp.high - sharp.low < 0.75 * (plain.high - plain.low)


def test_answers_say_what_they_are_about() -> None:
    policy, rng = make(), np.random.default_rng(0)
    for _ in range(400):
        past, outcomes = world(rng)
        made = policy.decide(before=past)
        policy.observe(made, reward=outcomes[str(made.arm)])
    answer, card = policy.answer(outcome="spending"), policy.scorecard()
    assert "mean spending adjusted by past, counted from -0.1 to 0.5" in str(answer)
    assert "0.8 times past is subtracted from spending: means are of what is left" in answer.about
    assert all(arm.low >= -0.1 - 1e-9 and arm.high <= 0.5 + 1e-9 for arm in answer.arms)
    assert all(effect.lift is None for effect in card.metrics[0].effects)
    assert "subtracted" in str(card.to_dict())
    assert "subtracted" not in bd.PrivateBandit(2, 1.0).answer().about


def test_a_rehearsal_takes_what_was_known() -> None:
    rng, policy = np.random.default_rng(0), make()
    seen = [world(rng) for _ in range(800)]
    past = np.array([one for one, _ in seen])
    losses = np.array([[outcomes[arm] for arm in "AB"] for _, outcomes in seen])
    found = bd.simulate(policy, losses, before=past, replicates=3, progress=False)
    assert found.regret("policy").shape == (3,)
    assert float(found.regret("policy").max()) < 0.05 * 800  # of outcomes as they are
    with pytest.raises(bd.InputError, match="before="):
        bd.simulate(policy, losses, replicates=3)
    with pytest.raises(bd.InputError, match="leave before= out"):
        bd.simulate(bd.PrivateBandit(2, 1.0), losses, before=past)


def test_an_attack_on_outcome_and_what_was_known_together_finds_no_more_than_epsilon() -> None:
    result = audit_policy(make(algorithm="phased", rounds=300), batches=400, runs=100)
    assert result.passed, str(result)
