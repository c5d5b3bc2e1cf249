"""A range, and a slope, that the first phase of a running experiment finds."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.audits.policies import audit_policy
from bandanna.policy.first_phase import FirstPhase, Value
from bandanna.policy.parts import rounds_of_first
from bandanna.privacy.bought import cut_words
from bandanna.privacy.card import make_card
from bandanna.privacy.certificate import sealed, verify
from tests.policy.test_interrupts import interrupt_at

AUTO: dict[str, Any] = {"loss_range": "auto", "bounds": (0, 1000)}
BOTH: dict[str, Any] = {"loss_range": (0, 1000), "adjust": "past"}
FOUND = [AUTO, BOTH, {**BOTH, "slope": 0.6}]


def make(epsilon: float = 1.0, **options: Any) -> bd.PrivateBandit:
    return bd.PrivateBandit(["A", "B"], epsilon, **{"rounds": 4000, "clip": True, **options})


def play(policy: bd.Policy, rounds: int, seed: int = 0) -> None:
    """Play people whose outcome is mostly their past, and 30 more with arm B."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        past = float(rng.normal(200, 60))
        made = policy.decide(before=past if policy.spec.adjust else None)
        better = 30.0 if made.arm == "B" else 0.0
        policy.observe(made, reward=0.6 * past + 50.0 + rng.normal(0, 15) + better)


def holds(certificate: dict[str, Any]) -> bool:
    return all(finding.holds for finding in verify(json.dumps(certificate)))


# --- what it finds ----------------------------------------------------------------------------


def test_a_range_is_found_and_answers_say_what_is_counted() -> None:
    policy = make(**AUTO)
    play(policy, 1500)
    found = policy.state.found
    assert found is not None
    low, high, slope = found.scale
    assert (slope, found.rounds) == (0.0, 180)
    assert 0.0 <= low < 170.0
    assert 250.0 < high < 600.0
    answer = policy.answer(outcome="spending")
    assert "spending, counted" in str(answer)
    said = "was found from 180 decisions of the first phase, which are used for nothing else"
    assert said in answer.about
    assert sum(arm.rounds for arm in answer.arms) <= 1500 - 180
    assert all(low <= arm.low <= arm.high <= high for arm in answer.arms)


def test_a_slope_is_found_too() -> None:
    policy = make(2.0, **BOTH)
    play(policy, 2000)
    assert policy.state.scale is not None
    assert 0.3 <= policy.state.scale.slope <= 0.9
    assert "times past is subtracted" in policy.answer().about
    assert "What was known before explains about" in policy.answer().about


def test_a_range_that_was_found_makes_answers_narrower() -> None:
    wide, found = make(loss_range=(0, 1000), algorithm="ab-test"), make(algorithm="ab-test", **AUTO)
    for policy in (wide, found):
        play(policy, 1600)
    ends = [policy.compare("A", "B") for policy in (wide, found)]
    assert ends[1].high - ends[1].low < 0.6 * (ends[0].high - ends[0].low)
    assert ends[1].low <= 30.0 <= ends[1].high


def test_intervals_cover_where_the_first_phase_finds_everything() -> None:
    """95% intervals of 40 runs: fewer than 29 right ones have probability 1e-7.

    What is cut moves a difference a little; the range is to cut few.
    """
    right = 0
    for seed in range(40):
        policy = make(2.0, algorithm="ab-test", explore=1.0, rounds=1500, **BOTH)
        play(policy, 1500, seed)
        found = policy.compare("A", "B")
        assert found.high - found.low < 60.0
        right += found.low <= 30.0 <= found.high
    assert right >= 29


def test_a_rehearsal_finds_it_in_every_run() -> None:
    rng = np.random.default_rng(0)
    losses = rng.uniform(100, 200, (800, 2)) + np.array([0.0, 30.0])
    found = bd.simulate(make(rounds=800, **AUTO), losses, replicates=3, progress=False)
    assert found.regret("policy").shape == (3,)
    assert float(found.regret("policy").max()) < 30.0 * 800


def test_guardrails_and_a_control_go_with_it() -> None:
    about = {"metrics": {"refund": (0, 1)}, "guardrails": {"refund": 0.3}, "control": "A"}
    policy = make(4.0, least_share=0.2, **about, **AUTO)
    for number in range(1500):
        made = policy.decide()
        refund = {"refund": float(number % 2) if made.arm == "B" else 0.0}
        # B earns more, so it is played often enough to be sure of its refunds.
        policy.observe(made, reward=130.0 if made.arm == "B" else 110.0, metrics=refund)
    assert policy.state.found is not None
    assert [one.name for one in policy.dropped] == ["B"]


def test_answers_count_those_of_the_first_phase_whose_feedback_came() -> None:
    policy = make(**AUTO)
    first = [policy.decide() for _ in range(180)]
    policy.give_up(first[0])
    for one in first[1:]:
        policy.observe(one, reward=120.0)
    play(policy, 400)
    assert "found from 179 decisions of the first phase" in policy.answer().about


def test_without_feedback_the_bounds_are_kept() -> None:
    policy = make(**AUTO)
    for made in [policy.decide() for _ in range(180)]:
        policy.give_up(made)
    assert policy.state.found is not None
    assert policy.state.found.kept
    assert policy.state.scale is not None
    assert policy.state.scale.ends == (0.0, 1000.0)


def test_how_many_were_cut_is_95_percent_sure_in_exact_probabilities() -> None:
    """Noise of whole people: the tail beyond the bound, and just not beyond a number less."""
    for scale in (0.3, 0.43, 1.0, 4.75, 10.42, 300.0):
        size = 10_000
        _, most = cut_words(0.1, scale / size, size)
        beyond = round((float(most) / 100.0 - 0.1) * size)
        ratio = math.exp(-1.0 / scale)
        assert ratio ** (beyond + 1) / (1.0 + ratio) <= 0.05
        assert ratio ** (beyond - 1) / (1.0 + ratio) > 0.05 or scale < 1.0


# --- the promise ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", FOUND)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.7])
def test_the_first_phase_costs_no_more_than_any_other_round(
    epsilon: float, options: dict[str, Any]
) -> None:
    for more in ({}, {"metrics": {"refund": (0, 1)}}, {"per_person": 3, "rounds_per_slot": 1}):
        policy = make(epsilon, **options, **more)
        first = FirstPhase.of(policy.spec)
        assert first is not None
        together = sum(Fraction(part.epsilon) for part in first.parts)
        assert 0.999 * first.epsilon < together <= Fraction(first.epsilon)
        assert policy.guarantee.epsilon == epsilon
        assert "found from the first" in str(policy.guarantee)
        assert holds(policy.certificate())


def test_everything_that_is_released_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []
    first: Any = None
    for name in ("choose", "count"):
        inside = getattr(bd.privacy.log_release.SideRelease, name)

        def spy(part: Any, exact: Any, inside: Any = inside) -> Any:
            released.append(part.what)
            assert part in first.parts
            return inside(part, exact)

        monkeypatch.setattr(bd.privacy.log_release.SideRelease, name, spy)
    for options in FOUND:
        policy = make(**options)
        first = FirstPhase.of(policy.spec)
        released.clear()
        play(policy, 2 * first.rounds)
        assert sorted(released) == [part.what for part in first.parts]  # each of them once


@pytest.mark.parametrize("how", ["give_up", "finish"])
def test_a_search_that_fails_leaves_no_outcome_in_its_traceback(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(part: Any, exact: Any) -> Any:
        raise MemoryError("no memory is left")

    persons: dict[str, Any] = {"per_person": 1, "rounds_per_slot": 2} if how == "finish" else {}
    policy = make(4.0, rounds=100, **BOTH, **persons)
    who: Any = ({"person": k} if persons else {} for k in range(1000))
    made = [policy.decide(before=0.123, **next(who)) for _ in range(rounds_of_first(policy.spec))]
    for one in made[1:]:
        policy.observe(one, loss=123.0)
    for name in ("choose", "count"):
        monkeypatch.setattr(bd.privacy.log_release.SideRelease, name, fails)
    if persons:
        for person in range(1, len(made)):
            policy.finish(person)
    last: Any = partial(policy.finish, 0) if persons else partial(policy.give_up, made[0])
    with pytest.raises(MemoryError) as failure:
        last()
    inside = [one.frame.raw for one in failure.traceback if one.path != Path(__file__)]
    assert inside
    for frame in inside:
        assert "0.123" not in repr(frame.f_locals)
    assert policy.state.found is None


def test_a_certificate_shows_what_was_changed() -> None:
    certificate = make(**BOTH).certificate()
    assert "Spent in the first phase on" in make_card(certificate).to_markdown()
    entries = {name: value for name, value in certificate.items() if name != "seals"}
    parts = certificate["first_parts"]
    changes: list[dict[str, Any]] = [
        {"first_rounds": 7},
        {"first_rounds": "many"},
        {"first_parts": []},
        {"first_parts": [*parts, dict(parts[0])]},
        {"first_parts": [{**parts[0], "scale": parts[0]["scale"] / 2.0}, *parts[1:]]},
        {"epsilon": 0.5},
    ]
    for change in changes:
        assert not holds(sealed(entries | change)), change


def test_what_is_known_of_sums_alone_is_not_said_of_the_first_phase() -> None:
    policy = make(**AUTO)
    assert policy.guarantee.at_delta(0.01).epsilon == 1.0
    assert policy.net is None
    assert policy.regret_bound is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss_range": "auto"}, "needs bounds"),
        ({"bounds": (0, 5)}, "bounds are for a range that is found"),
        ({"loss_range": "much"}, '"auto"'),
        ({**AUTO, "binary": True}, "binary"),
        ({**AUTO, "algorithm": "dp-klucb"}, "plays none"),
        ({**AUTO, "goal": "answer"}, "plays none"),
        ({"adjust": "x", "loss_range": (-8e307, 8e307)}, "too wide"),
        ({**AUTO, "adjust": "x", "slope": 1.0, "adjusted_range": (0, 1)}, "adjusted_range"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bd.InputError, match=message):
        bd.PrivateBandit(2, 1.0, **options)
    with pytest.raises(bd.InputError, match="needs bounds"):
        bd.PrivateExperts(2, 2, 1.0, loss_range="auto")


def test_an_audit_asks_for_what_is_found() -> None:
    with pytest.raises(bd.InputError, match="loss_range="):
        audit_policy(make(**AUTO))


# --- its state --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", FOUND)
@pytest.mark.parametrize("persons", [False, True])
def test_it_goes_on_from_a_file_before_and_after(
    options: dict[str, Any], persons: bool, tmp_path: Path
) -> None:
    """Feedback comes late: batches that open before the range is known are counted with it."""
    more = {"per_person": 5, "rounds_per_slot": 1} if persons else {}
    policy: Any = make(4.0, rounds=400, algorithm="phased", seed=1, **options, **more)
    rng, waiting = np.random.default_rng(0), []
    for number in range(400):
        past = float(rng.uniform(100, 300))
        known = {"before": past} if policy.spec.adjust else {}
        who = {"person": number} if persons else {}
        waiting.append((policy.decide(**known, **who), 0.6 * past))
        if len(waiting) > 150:
            made, reward = waiting.pop(0)
            policy.observe(made, reward=reward)
            policy.observe(made, reward=reward)
            with pytest.raises(bd.DecisionError):
                policy.observe(made, reward=reward + 10.0)
        if number % 40 == 0:
            policy.save(tmp_path / "policy.json")
            again: Any = bd.load(tmp_path / "policy.json", again=number > 0)
            mine, theirs = policy.to_dict(), again.to_dict()
            assert mine["open_batches"] == theirs["open_batches"]
            assert mine["learned"] == theirs["learned"]
            assert again.state.scale == policy.state.scale
    for made, reward in waiting:
        policy.observe(made, reward=reward)
    assert policy.state.found is not None
    counted = sum(totals.rounds for totals in policy.state.totals.values())
    assert counted >= 400 - policy.state.found.rounds - 150
    assert all(0.0 <= total <= 1.2 * UNITS for total in counted_units(policy))


def counted_units(policy: bd.Policy) -> list[float]:
    """Return what each counted outcome was, from the open batches."""
    return [float(one) for batch in policy.state.open.values() for _, one in batch.counted()]


@pytest.mark.parametrize("what", ["decide", "observe"])
def test_an_interrupt_anywhere_uses_each_outcome_once(what: str, tmp_path: Path) -> None:
    """Whatever line is hit, also while the first phase closes: it goes on and finds a range."""
    line, hit = 0, True
    while hit:
        line += 1
        policy = make(4.0, rounds=16, algorithm="phased", seed=1, **AUTO)
        finds: list[int] = []
        first = policy._parts.first
        assert first is not None

        def spy(values: Any, *, reward: bool, first: Any = first, finds: Any = finds) -> Any:
            finds.append(len(values))
            return FirstPhase.find(first, values, reward=reward)

        object.__setattr__(first, "find", spy)
        made = [policy.decide() for _ in range(first.rounds)]
        for one in made[:-1]:
            policy.observe(one, reward=100.0)
        if what == "decide":
            policy.observe(made[-1], reward=100.0)
            hit = interrupt_at(line, policy.decide)
        else:
            hit = interrupt_at(line, partial(policy.observe, made[-1], reward=100.0))
        policy.save(tmp_path / "policy.json")
        bd.load(tmp_path / "policy.json", again=line > 1)
        policy.observe(made[-1], reward=100.0)
        for _ in range(60):
            policy.observe(policy.decide(), reward=100.0)
        assert policy.state.scale is not None
        assert 1 <= len(finds) <= 2  # where it was lost, later rounds found it: others
        assert all(count <= first.rounds for count in finds)
    assert line > 20


def test_an_interrupt_anywhere_turns_no_reward_into_a_loss() -> None:
    """The first feedback of all counts as it came, whatever line is hit and whatever else closes.

    Everything before it was given up, so that its phase keeps what is sent as it is.
    """
    line, hit = 0, True
    while hit:
        line += 1
        policy = make(90.0, rounds=400, seed=1, **{**BOTH, "slope": 0.6})
        first = policy._parts.first
        assert first is not None
        gone = [policy.decide(before=100.0) for _ in range(first.rounds)]
        good, last = policy.decide(before=100.0), policy.decide(before=100.0)
        phase = policy.state.open[good.batch]
        gone += [policy.decide(before=100.0) for _ in range(phase.size - 2)]
        for one in gone:
            policy.give_up(one)
        hit = interrupt_at(line, partial(policy.observe, good, reward=900.0))
        for one in (good, last):
            policy.give_up(one)  # nothing happens where the feedback was counted
        told = [one.mean for one in policy.state.totals.values()]
        assert told == pytest.approx([0.1] * len(told), abs=0.1)  # as a loss it would be 0.4
    assert line > 20


def test_a_value_shows_nothing_of_what_came() -> None:
    assert repr(Value(1, 123456, (789,), 0.5)) == "Value(arm=1, ...)"
