"""Metrics, guardrails and a control: what they promise, release, answer and retire."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from research.accounting import privacy_loss
from scipy import stats

import bandanna as bd
from bandanna.audits.policies import audit_policy
from bandanna.policy.intervals import InPhases, Known
from bandanna.policy.outcomes import breaches, guardrail_error
from bandanna.policy.statements import FIXED
from bandanna.privacy import LaplaceRelease
from bandanna.privacy.certificate import sealed, verify
from bandanna.privacy.metrics import shares_of
from bandanna.privacy.release import Published
from bandanna.privacy.sums import SumTally
from tests.policy.test_interrupts import interrupt_at

METRICS = {"revenue": (0.0, 100.0), "refund": (0.0, 1.0)}


class Coin:
    """Somebody else's bandit: it draws evenly and learns nothing."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def draw(self) -> int:
        return int(self._rng.integers(2))

    def update(self, arm: int, loss: float) -> None:
        pass


def make(epsilon: float = 0.5, **options: Any) -> bd.PrivateBandit:
    given = {"rounds": 2000, "metrics": METRICS, **options}
    return bd.PrivateBandit(["A", "B"], epsilon, **given)


def feed(policy: bd.Policy, rounds: int, refund: dict[str, float], seed: int = 0) -> None:
    """Play rounds in which each arm has its share of refunds, and its earnings are 20."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        made = policy.decide()
        back = float(rng.random() < refund[str(made.arm)])
        policy.observe(made, reward=0.5, metrics={"revenue": 20.0, "refund": back})


# --- the promise ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 1.0, 0.3, 7.7])
@pytest.mark.parametrize("options", [{}, {"algorithm": "one-bit"}, {"algorithm": "phased"}])
def test_the_outcome_and_the_metrics_cost_epsilon_together(
    epsilon: float, options: dict[str, Any]
) -> None:
    policy = make(epsilon, **options)
    promise = policy.guarantee
    assert (promise.epsilon, promise.delta) == (epsilon, 0.0)
    facts = promise.facts
    parts = [facts["outcome_epsilon"], *(one["epsilon"] for one in facts["metrics"])]
    assert len(parts) == 3
    assert sum(parts) <= epsilon
    assert "revenue" in str(promise)


def test_shares_never_add_up_to_more() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        epsilon, share = float(rng.uniform(0.001, 10)), float(rng.uniform(0.01, 0.99))
        count = int(rng.integers(1, 9))
        main, each = shares_of(epsilon, count, share)
        together = Fraction(main) + count * Fraction(each)
        assert 0 <= Fraction(epsilon) - together < Fraction(1e-12)


def test_a_certificate_proves_every_part_and_shows_what_was_changed() -> None:
    certificate = make(0.5, algorithm="one-bit", batch=4).certificate()
    assert all(finding.holds for finding in verify(json.dumps(certificate)))
    changes: list[dict[str, Any]] = [
        {"outcome_epsilon": 0.3},
        {"epsilon": 0.4},
        {"metrics": [dict(certificate["metrics"][0]), dict(certificate["metrics"][0])]},
        {"metrics": [{**certificate["metrics"][0], "scale": 1.0}, certificate["metrics"][1]]},
        {"metrics": "none"},
        {"outcome": {}},
        {"outcome": {**certificate["outcome"], "a": 1}},
        {"outcome": {**certificate["outcome"], "sampler": "a coin"}},
    ]
    entries = {key: value for key, value in certificate.items() if key != "seals"}
    for change in changes:
        findings = verify(json.dumps(sealed(entries | change)))
        assert not all(finding.holds for finding in findings), change


def test_persons_are_promised_the_whole() -> None:
    policy = make(1.0, per_person=2, rounds_per_slot=1)
    assert policy.guarantee.epsilon == 1.0
    assert all(finding.holds for finding in verify(json.dumps(policy.certificate())))


def test_accounting_counts_the_metrics() -> None:
    loss = privacy_loss(make(0.5, batch=1, algorithm="one-bit").guarantee)
    assert loss.get_epsilon_for_delta(1e-9) == pytest.approx(0.5, rel=2e-3)


# --- what is given ----------------------------------------------------------------------------


def test_metrics_are_checked_and_never_repeated() -> None:
    policy = make()
    made = policy.decide()
    for wrong in (None, {"refund": 0.0}, {"refund": 0.0, "revenue": 1.0, "more": 2.0}, 3):
        with pytest.raises(bd.InputError, match="'revenue', 'refund'"):
            policy.observe(made, loss=0.5, metrics=wrong)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="metric 'refund'") as error:
        policy.observe(made, loss=0.5, metrics={"refund": 7.25, "revenue": 1.0})
    assert "7.25" not in str(error.value)
    plain = bd.PrivateBandit(2, 1.0)
    with pytest.raises(bd.InputError, match="no metrics"):
        plain.observe(plain.decide(), loss=0.5, metrics={"refund": 1.0})
    clipped = make(clip=True)
    clipped.observe(clipped.decide(), loss=0.5, metrics={"refund": 7.25, "revenue": -1.0})


@pytest.mark.parametrize("closed", [False, True])
def test_a_repeat_is_ignored_and_another_value_refused(closed: bool) -> None:
    policy = make(algorithm="one-bit", batch=1 if closed else 5)
    made, given = policy.decide(), {"refund": 1.0, "revenue": 10.0}
    for _ in range(2):
        policy.observe(made, loss=0.5, metrics=given)
    with pytest.raises(bd.DecisionError, match="another value"):
        policy.observe(made, loss=0.5, metrics={"refund": 0.0, "revenue": 10.0})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"metrics": {"refund": 3}}, "must have a range"),
        ({"metrics": [1]}, "ranges by name"),
        ({"metrics": {"": (0, 1)}}, "printable"),
        ({"guardrails": {"refund": 0.1}}, "name it with control"),
        ({"guardrails": {"other": 0.1}, "control": "A"}, "'revenue', 'refund'"),
        ({"guardrails": {"refund": 0.0}, "control": "A"}, "above 0"),
        ({"guardrails": {"refund": 2.0}, "control": "A"}, "smaller than its range"),
        ({"control": "X"}, "one of the arms"),
        ({"least_share": 0.1}, "control="),
        ({"control": "A", "least_share": 0.7}, "least_share"),
        ({"release": "device"}, "no metrics"),
        ({"metrics_share": 1.0}, "metrics_share"),
        ({"guardrails": {"refund": 0.1}, "control": "A", "learner": Coin(0)}, "same time"),
        ({"guardrails": {"refund": 0.1}, "control": "A", "algorithm": "adaptive"}, "phased"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(bd.InputError, match=match):
        make(**options)


# --- what is released -------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["adaptive", "one-bit", "phased", "dp-klucb", "ab-test"])
def test_means_of_metrics_are_those_of_the_rounds(algorithm: str) -> None:
    policy = bd.PrivateBandit(["A", "B"], 90.0, 600, algorithm, metrics=METRICS, seed=1)
    for _ in range(600):
        made = policy.decide()
        first = made.arm == "A"
        given = {"revenue": 80.0 if first else 20.0, "refund": 0.25 if first else 0.75}
        policy.observe(made, reward=0.5, metrics=given)
    for metric, means in {"revenue": (80.0, 20.0), "refund": (0.25, 0.75)}.items():
        answer = policy.answer(metric=metric)
        assert answer.best is None  # neither more nor less was said to be better
        for arm, mean in zip(answer.arms, means, strict=True):
            if arm.rounds > 50:
                assert arm.mean == pytest.approx(mean, abs=0.05 * METRICS[metric][1])
    found = policy.compare("A", "B", metric="revenue")
    assert found.difference == pytest.approx(-60.0, abs=5.0)
    assert "revenue" in found.sentence


def test_feedback_that_never_came_is_left_out_of_metrics() -> None:
    policy = bd.PrivateBandit(2, 90.0, 100, "one-bit", batch=2, metrics={"refund": (0, 1)})
    first, second = policy.decide(), policy.decide()
    policy.observe(first, loss=0.5, metrics={"refund": 1.0})
    policy.give_up(second)
    [totals] = policy.state.column_totals[first.index]
    assert (totals.batches, totals.rounds) == (1, 1)
    assert totals.mean == pytest.approx(1.0, abs=0.5)


def test_nothing_is_left_in_a_closed_batch() -> None:
    policy = make(algorithm="one-bit", batch=2)
    kept = []
    policy.on_release = lambda batch, released: kept.append(batch)
    feed(policy, 2, {"A": 1.0, "B": 1.0})
    assert kept[0].metrics == {}
    tally = kept[0].tally
    assert isinstance(tally, SumTally)
    assert (tally._sums, tally._further) == (None, {})


@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize("algorithm", ["one-bit", "phased"])
def test_open_sums_survive_a_file(people: bool, algorithm: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"per_person": 1} if people else {}
    policy = bd.PrivateBandit(
        2, 99.0, 1000, algorithm, metrics={"refund": (0, 1)}, seed=1, **options
    )
    size = len(policy.state.open) or 3
    made = [policy.decide(person=who if people else None) for who in range(size)]
    for who, decision in enumerate(made):
        policy.observe(decision, loss=0.5, metrics={"refund": 1.0})
        if people:
            policy.finish(who)
    policy.save(tmp_path / "policy.json")
    loaded = bd.load(tmp_path / "policy.json")
    while not loaded.released:
        who = loaded.decided
        decision = loaded.decide(person=who if people else None)
        loaded.observe(decision, loss=0.5, metrics={"refund": 1.0})
        if people:
            loaded.finish(who)
    columns = loaded._parts.columns
    assert columns is not None
    column = columns.index(1, square=False)
    refunds = [totals[column or 0] for totals in loaded.state.column_totals.values()]
    for totals in refunds:
        assert totals.mean == pytest.approx(1.0, abs=0.3)
    counted = sum(totals.rounds for totals in refunds)
    assert counted == sum(one.rounds for one in loaded.state.totals.values())


def test_an_interrupt_anywhere_counts_no_metric_twice() -> None:
    line, hit = 0, True
    while hit:
        line += 1
        policy = bd.PrivateBandit(2, 99.0, batch=2, metrics={"refund": (0, 1)})
        made = policy.decide()
        give = partial(policy.observe, made, loss=0.5, metrics={"refund": 1.0})
        hit = interrupt_at(line, give)
        give()
        while not policy.released:
            policy.observe(policy.decide(), loss=0.5, metrics={"refund": 1.0})
        for totals, *_ in policy.state.column_totals.values():
            assert totals.rounds <= 2
            assert totals.total <= totals.rounds + 0.9
    assert line > 10


# --- guardrails and control -------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["phased-net", "phased"])
def test_a_guardrail_retires_a_bad_arm_and_keeps_the_reason(algorithm: str, tmp_path: Path) -> None:
    """With two arms the control is left, and plays alone."""
    policy = make(
        20.0,
        algorithm=algorithm,
        guardrails={"refund": 0.02},
        control="A",
        least_share=0.2,
    )
    feed(policy, 2000, {"A": 0.05, "B": 0.6})
    [dropped] = policy.dropped
    assert (dropped.name, dropped.by) == ("B", "A")
    assert dropped.reason.startswith("refund is higher than with A by ")
    assert policy.retired == {1}
    assert dropped.log_evidence > 2.99  # log(1 / 0.05)
    policy.save(tmp_path / "policy.json")
    loaded = bd.load(tmp_path / "policy.json")
    assert loaded.dropped == policy.dropped
    for one in (policy, loaded):
        feed(one, 400, {"A": 0.05, "B": 0.6})  # a phase that had begun goes on
        assert {one.decide().arm for _ in range(50)} == {"A"}
    assert policy.answer(metric="refund").arms[0].mean == pytest.approx(0.05, abs=0.04)
    policy.add_arm("C")
    feed(policy, 600, {"A": 0.05, "B": 0.6, "C": 0.05})
    assert policy.state.plays()[2] > 0


def test_a_guardrail_below_the_control_is_about_too_little() -> None:
    policy = bd.PrivateBandit(
        ["A", "B", "C"],
        60.0,
        rounds=6000,
        metrics={"revenue": (0, 10)},
        guardrails={"revenue": -1.0},
        control="A",
        least_share=0.3,
    )
    while not policy.dropped:
        made = policy.decide()
        policy.observe(made, reward=0.5, metrics={"revenue": 2.0 if made.arm == "C" else 5.0})
    assert [one.name for one in policy.dropped] == ["C"]
    assert "lower" in policy.dropped[0].reason
    sure = policy.answer(1 - 1e-7, metric="revenue")
    assert sure.best is None  # A and B are alike: an error of 1e-7
    assert "is better than" in policy.compare("A", "C", metric="revenue").sentence
    with pytest.raises(bd.InputError, match="control"):
        policy.retire_arm("A")


@pytest.mark.parametrize("algorithm", ["adaptive", "one-bit", "phased", "dp-klucb", "race"])
def test_a_control_keeps_its_share(algorithm: str) -> None:
    goal = {"goal": "answer", "algorithm": None} if algorithm == "race" else {}
    options: dict[str, Any] = {"algorithm": algorithm, "rounds": 6000} | goal
    policy = bd.PrivateBandit(["A", "B"], 2.0, control="B", least_share=0.25, seed=3, **options)
    for _ in range(6000):
        made = policy.decide()
        policy.observe(made, loss=1.0 if made.arm == "B" else 0.0)
    share = policy.state.plays()[1] / policy.decided
    assert 0.2 <= share <= 0.5  # batches of dp-klucb and race are long at the end
    assert policy.regret_bound is None
    assert policy.leader == "A"


def released_runs(runs: int, gap: float, seed: int) -> int:
    """Return in how many runs a guardrail retires an arm whose metric is ``gap`` above."""
    rng, scale, batch, alpha = np.random.default_rng(seed), 8.0, 200, 0.05
    law = LaplaceRelease(1.0 / scale, 1).law()
    assert law is not None
    retired = 0
    for _ in range(runs):
        counts = np.full((25, 2), float(batch))
        sums = rng.binomial(batch, [0.1, 0.1 + gap], (25, 2)) + rng.laplace(0.0, scale, (25, 2))
        for look in range(1, 26):
            phases = InPhases(law, counts[:look], sums[:look])
            known = {"refund": Known(("A", "B"), {}, phases)}
            limits, ranges = {"refund": 0.02}, {"refund": (0.0, 1.0)}
            errors = {1: guardrail_error(alpha, 1, 2, 2, 1)}
            if breaches(known, limits, ranges, 0, errors, 0, FIXED):
                retired += 1
                break
    return retired


def test_false_retirements_are_rare_and_bad_arms_are_found() -> None:
    """At the edge of what is allowed, looked at after every release: less than 5% of runs."""
    runs = 300
    assert released_runs(runs, 0.02, 1) <= stats.binom.ppf(1 - 1e-6, runs, 0.05)
    assert released_runs(20, 0.15, 2) == 20


# --- attacks ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["one-bit", "phased"])
def test_an_audit_attacks_all_sums_together(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passes; with the noise of the metrics forgotten it fails."""
    options: dict[str, Any] = {"batch": 2} if algorithm == "one-bit" else {}
    policy = bd.PrivateBandit(
        2, 0.5, 2000, algorithm, metrics={"refund": (0, 1), "cost": (0, 1)}, **options
    )
    batches = 2000 if algorithm == "one-bit" else 60
    assert audit_policy(policy, batches=batches, runs=1).passed

    def forgotten(self: SumTally, arm: int, count: int, *sums: int) -> Published:
        return Published(arm, count, tuple(total / (count * 2**20) for total in sums))

    monkeypatch.setattr(SumTally, "_published", forgotten)
    found = audit_policy(policy, batches=batches, runs=1)
    assert not found.passed
    assert found.epsilon > 0.5


def test_metrics_alone_change_nothing_in_a_simulation() -> None:
    alone = bd.PrivateBandit(2, 1.0, 50, "one-bit", metrics={"refund": (0, 1)})
    assert bd.simulate(alone, np.zeros((50, 2)), replicates=1) is not None
