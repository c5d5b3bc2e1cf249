"""What every policy with experts must do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.documents import seal, to_text
from bandanna.policies import EXPERT_ALGORITHMS, BatchedExperts
from bandanna.policies.state import to_dict
from bandanna.privacy import LaplaceRelease, OneBitRelease, VectorRelease
from bandanna.simulation.engine import run_streams

EXPERTS, ARMS = 5, 3
ROUNDS = {"batched-exp4": 10**7}
DELTA = {"batched-exp4": 1e-6, "calibrated-exp4": 1e-2}


def make(algorithm: str, **options: Any) -> bd.PrivateExperts:
    """Return a policy; the two batched ones with a batch that a test can fill."""
    rounds, delta = ROUNDS.get(algorithm, 10_000), DELTA.get(algorithm, 0.0)
    policy = bd.PrivateExperts(EXPERTS, ARMS, 0.8, delta, rounds, algorithm, **options)
    if isinstance(policy.recipe.release, VectorRelease):
        saved = policy.recipe.release.to_dict() | {"batch": 7}
        del saved["name"]
        policy.recipe = policy.recipe._replace(release=VectorRelease(**saved))
        policy._release = policy.recipe.release
        policy._start()
    return policy


def advise(rng: np.random.Generator, spread: bool) -> np.ndarray:
    if spread:
        return rng.dirichlet(np.ones(ARMS), EXPERTS)
    return rng.integers(0, ARMS, EXPERTS)


every_algorithm = pytest.mark.parametrize("algorithm", EXPERT_ALGORITHMS)


@every_algorithm
@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32), st.booleans())
def test_decisions_depend_on_losses_only_through_releases(
    algorithm: str, seed: int, spread: bool
) -> None:
    """Different losses with the same released values: the same decisions."""
    rng = np.random.default_rng(seed)
    script = rng.normal(0.5, 1.0, (60, EXPERTS))
    advice = [advise(rng, spread) for _ in range(60)]

    def play(losses: np.ndarray) -> tuple[list[int], int]:
        count = 0

        def release(self: object, total: Any, scale: float | None = None) -> Any:
            nonlocal count
            count += 1
            return script[count - 1].copy() if scale is not None else float(script[count - 1, 0])

        with pytest.MonkeyPatch.context() as patch:
            for kind in (OneBitRelease, LaplaceRelease, VectorRelease):
                patch.setattr(kind, "release", release)
            policy = make(algorithm, seed=4)
            arms = []
            for said, loss in zip(advice, losses, strict=True):
                decision = policy.decide(said)
                arms.append(decision.index)
                policy.observe(decision, loss=float(loss))
        assert count == policy.released
        return arms, count

    assert play(rng.random(60)) == play(rng.random(60))


def drive_by_hand(
    policy: BatchedExperts, losses: np.ndarray, advice: np.ndarray, seed: int, run: int
) -> list[int]:
    arms, releases, _ = run_streams(seed, run)
    rehearsal = policy.rehearse(arms, releases)
    assert not rehearsal.guarantee.private
    played = []
    for row, said in zip(losses, advice, strict=True):
        decision = rehearsal.decide(said)
        played.append(decision.index)
        rehearsal.observe(decision, loss=float(row[decision.index]))
    return played


@pytest.mark.parametrize("spread", [False, True], ids=["votes", "spread"])
@pytest.mark.parametrize("algorithm", [*EXPERT_ALGORITHMS, "exp4", "uniform", "random-expert"])
def test_the_simulator_makes_the_same_decisions(algorithm: str, spread: bool) -> None:
    private = algorithm in EXPERT_ALGORITHMS
    policy = make(algorithm) if private else bd.Experts(EXPERTS, ARMS, 211, algorithm)
    rng = np.random.default_rng(8)
    losses = rng.integers(0, 2**20 + 1, (211, ARMS)) / 2**20
    advice = np.array([advise(rng, spread) for _ in range(211)])
    results = bd.simulate(policy, losses, advice=advice, replicates=2, seed=21, checkpoints=5)
    shares = advice if spread else np.eye(ARMS)[advice]
    best = np.einsum("tnk,tk->tn", shares, losses).cumsum(axis=0)[results.stops - 1].min(axis=1)
    for run in range(2):
        played = drive_by_hand(policy, losses, advice, 21, run)
        counts = np.bincount(played, minlength=ARMS)
        np.testing.assert_array_equal(results.plays("policy")[run], counts)
        mine = losses[np.arange(211), played].cumsum()[results.stops - 1]
        np.testing.assert_allclose(results.curves("policy")[run], mine - best, atol=1e-6)


@every_algorithm
@pytest.mark.parametrize("spread", [False, True], ids=["votes", "spread"])
def test_feedback_may_come_late_and_in_any_order(algorithm: str, spread: bool) -> None:
    rng = np.random.default_rng(2)
    policy = make(algorithm)
    decisions = [policy.decide(advise(rng, spread)) for _ in range(29)]
    for index in rng.permutation(29):
        policy.observe(decisions[index], loss=float(rng.random()))
    assert policy.waiting == 0
    assert policy.released == 29 // policy.batch


@every_algorithm
def test_it_goes_on_bit_for_bit_from_a_file(algorithm: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    policy: Any = make(algorithm)
    waiting = []
    for round_number in range(40):
        decision = policy.decide(advise(rng, round_number % 2 == 0))
        if round_number % 5:
            policy.observe(decision, loss=float(rng.random()))
        else:
            waiting.append(decision)
    policy.save(tmp_path / "policy.json")
    other: Any = bd.load(tmp_path / "policy.json")
    assert type(other) is bd.PrivateExperts
    assert other.guarantee == policy.guarantee
    for each in (policy, other):
        each._release = each._seed_release(np.array([1, 2, 3, 4], dtype=np.uint64))
    for decision in waiting:
        policy.observe(decision, loss=0.25)
        other.observe(decision, loss=0.25)
    for round_number in range(40):
        advice = advise(rng, round_number % 3 == 0)
        decision = policy.decide(advice)
        assert other.decide(advice) == decision
        policy.observe(decision, loss=0.5)
        other.observe(decision, loss=0.5)


@every_algorithm
def test_bad_advice_changes_nothing(algorithm: str) -> None:
    policy = make(algorithm, seed=3)
    policy.decide([0] * EXPERTS)
    stream, learned = policy._stream.copy(), policy._learned()
    for bad in ([0] * 4, [0, 1, 2, 3, 0], np.full((EXPERTS, ARMS), 0.5), None, "advice"):
        with pytest.raises(bd.InputError):
            policy.decide(bad)
    assert policy.decided == 1
    assert policy._stream.tolist() == stream.tolist()
    assert policy._learned() == learned


@every_algorithm
def test_losses_are_gone_once_their_batch_is_released(algorithm: str) -> None:
    policy = make(algorithm)
    seen = []
    original = policy._play.learn

    def spy(batch: Any, release: Any) -> None:
        original(batch, release)
        seen.append((len(batch.losses), batch.sums.size, len(batch.tickets)))

    policy._play.learn = spy  # type: ignore[method-assign]
    for _ in range(3 * policy.batch):
        policy.observe(policy.decide([0, 1, 2, 0, 1]), loss=0.625)
    assert set(seen) == {(0, 0, 0)}


@every_algorithm
def test_repeats_are_ignored_and_other_values_refused(algorithm: str) -> None:
    policy = make(algorithm)
    first = policy.decide([0] * EXPERTS)
    policy.observe(first, loss=0.5)
    policy.observe(first, loss=0.5)
    with pytest.raises(bd.DecisionError, match="another value"):
        policy.observe(first, loss=0.25)
    second = policy.decide([0] * EXPERTS)
    policy.give_up(second)
    policy.give_up(second)
    for late in (0.75, 0.5):  # also the default itself: the answer must not depend on the value
        with pytest.raises(bd.DecisionError, match="was given up"):
            policy.observe(second, loss=late)


@every_algorithm
def test_it_says_what_it_protects(algorithm: str) -> None:
    promise = make(algorithm).guarantee
    assert promise.epsilon == 0.8
    assert promise.delta == DELTA.get(algorithm, 0.0)
    assert any("advice is public" in line for line in promise.assumptions)
    followed = "which experts were followed" in promise.protects
    assert followed == algorithm.endswith("conversion")
    assert "(the actions do show advice)" in promise.protects or not followed


@every_algorithm
def test_an_array_that_is_used_again_does_not_change_what_was_advised(algorithm: str) -> None:
    learned = []
    for reuse in (True, False):
        arms, releases, _ = run_streams(3, 0)
        policy = make(algorithm).rehearse(arms, releases)
        votes = np.array([0, 1, 2, 0, 1], dtype=np.uint8)
        for _ in range(3 * policy.batch):
            buffer = votes.copy()
            decision = policy.decide(buffer)
            if reuse:
                buffer[:] = 2 - buffer
            policy.observe(decision, loss=0.9)
        learned.append(policy._learned())
    assert learned[0] == learned[1]


@pytest.mark.parametrize("algorithm", ["one-bit-conversion", "htinf-conversion"])
def test_followed_experts_do_not_show_how_advice_was_written(algorithm: str) -> None:
    """Even to someone who knows the seed of the arms."""
    followed = []
    for advice in ([0] * EXPERTS, [[1.0, 0.0, 0.0]] * EXPERTS):
        policy = make(algorithm, seed=1, batch=2)
        policy.decide(advice)
        for _ in range(20):
            policy.decide([1] * EXPERTS)
        followed.append([batch.arm for batch in policy._open.values()])
    assert followed[0] == followed[1]


@every_algorithm
def test_an_interrupt_wedges_nothing(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while code is compiled: the round can be decided, and observed, again."""

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    policy = make(algorithm)
    with monkeypatch.context() as patch:
        for name in ("exp4_choose_once", "advised_arm_once"):
            patch.setattr(f"bandanna.policies.expert_play.{name}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            policy.decide([0, 1, 2, 0, 1])
    decision = policy.decide([0, 1, 2, 0, 1])
    with monkeypatch.context() as patch:
        patch.setattr("bandanna.policies.expert_play.add_round_once", interrupted)
        try:
            policy.observe(decision, loss=0.5)
        except KeyboardInterrupt:
            policy.observe(decision, loss=0.5)
    for _ in range(3 * policy.batch - 1):
        policy.observe(policy.decide([0, 1, 2, 0, 1]), loss=0.5)
    assert policy.released == 3


FORGERIES: dict[str, Any] = {
    "arm out of range": lambda d: _ticket(d).update(arm=10**6),
    "advice that is none": lambda d: _ticket(d).update(advice=[[-5.0] * EXPERTS]),
    "importance below one": lambda d: _ticket(d).update(importance=0.1),
    "sums without noise": lambda d: d["open_batches"][0].update(scale=0.0),
    "sums that cannot be": lambda d: d["open_batches"][0].update(sums=[-1] * EXPERTS),
    "no sums": lambda d: d["open_batches"][0].update(sums=[]),
    "a loss to be counted again": lambda d: d["open_batches"][0]["losses"].__setitem__(0, None),
    "too few batches": lambda d: d.update(batches=0),
    "one batch twice": lambda d: d["open_batches"].append(d["open_batches"][0]),
    "another algorithm": lambda d: d.update(algorithm="one-bit-conversion"),
    "another number of experts": lambda d: d["release"].update(experts=4),
    "another mixing": lambda d: d["release"].update(mixing=0.9),
}


def _ticket(data: Any) -> Any:
    return next(iter(data["open_batches"][0]["tickets"].values()))


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_files_are_refused(forgery: str, tmp_path: Path) -> None:
    policy = make("calibrated-exp4")
    policy.observe(policy.decide([0, 1, 2, 0, 1]), loss=0.5)
    policy.decide(np.full((EXPERTS, ARMS), 1 / 3))
    data = to_dict(policy)
    FORGERIES[forgery](data)
    data["checksum"] = seal(data)
    path = tmp_path / "policy.json"
    path.write_text(to_text(data), encoding="utf-8")
    with pytest.raises(bd.StateFileError, match="damaged"):
        bd.load(path)
