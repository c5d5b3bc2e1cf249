"""Policies that start from the releases of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bandanna as bd
from bandanna._core.compiled import python_source
from bandanna.inference import Totals, law_of
from bandanna.learners.phase_model import pooled_level, pooled_variance
from bandanna.learners.prior import PriorArm, weighed
from bandanna.logs import LogAnswer
from bandanna.policy.statements import AS_IN_THE_LOG, FIXED
from bandanna.privacy.certificate import sealed, verify
from bandanna.simulation.engine import run_streams

MEANS = {"A": 0.5, "B": 0.3, "C": 0.5}
WAYS: dict[str, dict[str, Any]] = {
    "phased": {},
    "phased without rounds": {"rounds": None},
    "dp-klucb": {"algorithm": "dp-klucb"},
    "ab-test": {"algorithm": "ab-test"},
    "answer": {"goal": "answer"},
}


def log_of(rows: int = 6_000, epsilon: float = 0.5, seed: int = 1) -> LogAnswer:
    """Answer a log of lost visits."""
    rng = np.random.default_rng(seed)
    arms = rng.choice(list(MEANS), rows)
    lost = (rng.random(rows) < [MEANS[arm] for arm in arms]).astype(float)
    return bd.answer({"plan": arms, "lost": lost}, arm="plan", outcome="lost", epsilon=epsilon)


LOG = log_of()


def started(way: str, log: object = LOG, **changes: Any) -> bd.PrivateBandit:
    options: dict[str, Any] = {"rounds": 4_000, "seed": 3, **WAYS[way], **changes}
    return bd.PrivateBandit(list(MEANS), 1.0, start_from=log, **options)


@pytest.mark.parametrize("way", WAYS)
def test_it_plays_what_the_log_found(way: str) -> None:
    policy = started(way)
    for _ in range(300):
        policy.observe(policy.decide(), loss=0.3)
    plays = policy.state.plays()
    assert max(plays, key=lambda arm: plays[arm]) == 1
    assert plays[1] >= 200


@pytest.mark.parametrize("way", WAYS)
def test_guarantee_and_certificate_say_what_both_cost(way: str) -> None:
    policy = started(way)
    assert policy.guarantee.epsilon == 1.0
    assert "who is in both has 1.5 in all" in policy.guarantee.assumptions[-1]
    certificate = policy.certificate()
    assert certificate["epsilon_with_start"] == 1.5
    assert all(one.holds for one in verify(json.dumps(certificate)))


@pytest.mark.parametrize(
    ("entry", "value"),
    [("epsilon_with_start", 1.4), ("epsilon_with_start", None), ("start_certificate", None)],
)
def test_a_certificate_that_promises_more_does_not_hold(entry: str, value: object) -> None:
    entries = {key: one for key, one in started("phased").certificate().items() if key != "seals"}
    changed = sealed(entries | {entry: value})
    assert not all(one.holds for one in verify(json.dumps(changed)))


def test_a_log_whose_certificate_does_not_hold_is_refused() -> None:
    told = LOG.to_dict()
    told["certificate"] = told["certificate"] | {"epsilon": 0.1}
    with pytest.raises(bd.InputError, match="certificate in start_from"):
        started("phased", told)
    inner = started("phased").certificate() | {"start_certificate": told["certificate"]}
    assert not all(one.holds for one in verify(json.dumps(inner)))


@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_same_from_a_file_and_from_json(way: str, tmp_path: Path) -> None:
    policy, same = started(way), started(way, json.loads(json.dumps(LOG.to_dict())))
    assert same.spec == policy.spec
    assert same.recipe == policy.recipe
    for _ in range(50):
        policy.observe(policy.decide(), loss=0.3)
    policy.save(tmp_path / "policy.json")
    loaded = bd.load(tmp_path / "policy.json")
    assert isinstance(loaded, bd.PrivateBandit)
    assert loaded.spec == policy.spec
    assert loaded.answer() == policy.answer()
    assert loaded.guarantee.assumptions == policy.guarantee.assumptions


@pytest.mark.parametrize("way", WAYS)
def test_the_simulator_makes_the_same_decisions(way: str) -> None:
    policy, rng = started(way), np.random.default_rng(8)
    losses = rng.integers(0, 2**20 + 1, (700, 3)) / 2**20  # exact on the grid
    found = bd.simulate(policy, losses, replicates=1, seed=21, progress=False)
    arms, releases, _ = run_streams(21, 0)
    online, plays = policy.rehearse(arms, releases), [0, 0, 0]
    for row in losses:
        decision = online.decide()
        plays[decision.index] += 1
        online.observe(decision, loss=float(row[decision.index]))
    assert found.plays("policy")[0].tolist() == plays


def test_a_race_can_be_over_before_it_begins() -> None:
    policy = started("answer")
    assert policy.answered
    assert policy.answer().best == "B"
    assert {one.name for one in policy.dropped} == {"A", "C"}
    assert {one.rounds for one in policy.dropped} == {0}
    assert "like those in the log" in policy.answer().sentence


def test_phases_answer_from_the_log_until_the_run_tells() -> None:
    policy = started("phased")
    answer, found = policy.answer(), policy.compare("A", "B")
    assert (answer.best, policy.leader, policy.answered) == ("B", "B", True)
    for said in (answer.sentence, found.sentence):
        assert "like those in the log" in said
        assert "This counts the log" in said
    assert found.high < 0.0
    assert sum(arm.rounds for arm in answer.arms) == 6_000
    shown = policy._shown(0.95)()
    assert shown.budget.part == 0.5  # log and run share the error probability
    assert shown.known.intervals is not None
    ends = shown.known.intervals.mean(1, shown.budget.mean(1))
    assert (answer.arms[1].low, answer.arms[1].high) == pytest.approx(tuple(ends))


def test_what_the_run_tells_alone_goes_before_the_log() -> None:
    policy, rng = started("phased", log_of(150), rounds=40_000), np.random.default_rng(1)
    loss = {"A": 0.1, "B": 0.9, "C": 0.9}
    assert policy.answer().best is None
    assert policy.answer().assumption == AS_IN_THE_LOG
    while policy.answer().best is None and policy.decided < 40_000:
        for _ in range(100):
            decision = policy.decide()
            policy.observe(decision, loss=float(rng.random() < loss[str(decision.arm)]))
    assert policy.answer().best == "A"
    assert policy.answer().assumption == FIXED
    assert "log" not in policy.answer().sentence + policy.compare("A", "B").sentence


def test_a_noisier_log_counts_in_part() -> None:
    known = PriorArm(1_000.0, 0.3, 1.0, 4.0)
    told = weighed((known, known._replace(scale=0.5, square=0.02)), 1.0)
    assert told.sums.tolist() == [75.0, 300.0]
    assert told.rounds.tolist() == [250.0, 1_000.0]
    assert told.releases.tolist() == [1.0, 1.0]
    assert told.squares.tolist() == [62.5, 20.0]


def lab_logs() -> tuple[Any, Any]:
    """Answer a log of lab values; with squares, and as it was before they were released."""
    rng = np.random.default_rng(5)
    lab = {"plan": rng.choice(["A", "B"], 4_000), "lab": rng.gamma(6.5, 0.055, 4_000).clip(0, 1)}
    log = bd.answer(lab, arm="plan", outcome="lab", epsilon=0.5)
    known = json.loads(json.dumps(log.to_dict()))
    unknown = known | {"start": known["start"] | {"arms": [a[:4] for a in known["start"]["arms"]]}}
    return known, unknown


def test_phases_know_from_the_log_how_much_outcomes_vary() -> None:
    """Lab values vary by .02; with their means they could by .23, which is what phases assume."""
    for start, variance in zip(lab_logs(), (0.0195, 0.23), strict=True):
        policy: Any = bd.PrivateBandit(["A", "B"], 0.5, 4_000, "phased", start_from=start)
        state = policy.recipe.learner.start()
        assert state.rounds.sum() == 4_000
        found = python_source(pooled_variance)(state, 1, python_source(pooled_level)(state, 1))
        assert found == pytest.approx(variance, abs=0.01)


@pytest.mark.parametrize("interval", ["normal", "proved"])
def test_how_much_outcomes_vary_in_the_log_is_known(interval: str) -> None:
    known, unknown = lab_logs()
    for arm in known["start"]["arms"]:
        assert arm[4] / arm[1] == pytest.approx(0.04, abs=0.01)
    wide = []
    for start in (known, unknown):
        options: dict[str, Any] = {"goal": "answer", "interval": interval, "start_from": start}
        policy = bd.PrivateBandit(["A", "B"], 0.5, **options)
        wide.append(policy.compare("A", "B"))
    widths = [one.high - one.low for one in wide]
    assert widths[0] < (0.6 if interval == "normal" else 1.001) * widths[1]


def test_evidence_of_a_log_in_part_is_valid() -> None:
    """Exactly: the expected process after the log is at most 1, whatever the mean and rate."""
    law, rows, noisier = law_of(1.0), 7, 4.0
    part = law.scale / noisier
    for mean in (0.02, 0.3, 0.9):
        counts = np.arange(rows + 1)
        chances = stats.binom.pmf(counts, rows, mean)
        for sign in (1.0, -1.0):
            for rate, noise in zip(law.rates, law.noise, strict=True):
                told = Totals(0.0, part * rows, 1.0)
                moment = float(chances @ np.exp(sign * rate * part * counts))
                moment /= 1.0 - (rate * part * noisier) ** 2  # of the log's noise
                level = np.log1p(mean * np.expm1(sign * rate))
                process = np.log(moment) - told.terms * level + told.releases * noise
                assert process <= 1e-12


def test_arms_that_the_log_has_not_are_tried() -> None:
    arms = ["B", "A", "new"]
    for way in ("phased", "dp-klucb", "answer"):
        options = {"rounds": 4_000, "seed": 3, **WAYS[way]}
        policy = bd.PrivateBandit(arms, 1.0, start_from=LOG, **options)
        for _ in range(600):
            policy.observe(policy.decide(), loss=0.3)
        assert policy.state.plays()[2] > 0, way
    with pytest.raises(bd.InputError, match="every arm"):
        bd.PrivateBandit(arms, 1.0, 4_000, "ab-test", start_from=LOG)


def test_arms_may_be_added_after_a_start() -> None:
    for way in WAYS:
        policy = started(way)
        policy.add_arm("D")
        for _ in range(100):
            policy.observe(policy.decide(), loss=0.3)
        assert policy.decided == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"algorithm": "adaptive"}, "adaptive has no use"),
        ({"algorithm": "phased-net", "rounds": 10**7}, "phased-net has no use"),
        ({"loss_range": (0.0, 2.0)}, "loss_range"),
        ({"start_from": 3}, "start_from must be"),
        ({"start_from": {"arms": []}}, "without these entries"),
        ({"arms": [0, 1]}, "no arm of the log"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    given = {"arms": list(MEANS), "rounds": 4_000, "start_from": LOG, **options}
    with pytest.raises(bd.InputError, match=said):
        bd.PrivateBandit(epsilon=1.0, **given)
    with pytest.raises(TypeError, match="start_from"):
        bd.PrivateExperts(2, 2, 1.0, start_from=LOG)  # type: ignore[call-arg]


def test_phases_forget_a_log_that_the_run_contradicts() -> None:
    losses = (np.random.default_rng(5).random((20_000, 3)) < (0.5, 0.5, 0.2)).astype(float)
    policy = started("phased", rounds=20_000)
    found = bd.simulate(policy, losses, replicates=20, seed=2, progress=False)
    assert (found.plays("policy")[:, 2] > 10_000).mean() > 0.9


def test_a_resumed_policy_states_what_it_is_charged(tmp_path: Path) -> None:
    policy = started("phased")
    policy.state.resumed = 1
    certificate = policy.certificate()
    assert certificate["certificate"]["epsilon_with_start"] == 2.5
    assert all(one.holds for one in verify(json.dumps(certificate)))
    assert "who is in both has 2.5 in all" in policy.guarantee.assumptions[-1]


def test_the_service_takes_it() -> None:
    from bandanna.service.models import NewExperiment
    from bandanna.service.policies import make_policy

    body = {"name": "x", "arms": list(MEANS), "epsilon": 1.0, "start_from": LOG.to_dict()}
    made = make_policy(NewExperiment.model_validate(body).model_dump())
    assert made.spec == bd.PrivateBandit(list(MEANS), 1.0, start_from=LOG).spec
