"""Trees as a policy: the simulator, files, certificates, the bound."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.contextual.features import Declared
from bandanna.contextual.trees import Levels, PrivateTrees, simulate_trees
from bandanna.privacy.certificate import verify
from bandanna.privacy.one_bit import OneBitRelease
from bandanna.theory.exp4 import tree_bound

FEATURES = {"kind": ["a", "b"], "x": (0, 1)}


def people(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"kind": rng.choice(["a", "b", "?"], count), "x": rng.random(count)}


def policy(**options: object) -> PrivateTrees:
    made = bd.PrivateContextual(
        3,
        FEATURES,
        1.0,
        rounds=1_000,
        algorithm="trees",
        seed=1,
        **options,  # type: ignore[arg-type]
    )
    assert isinstance(made, PrivateTrees)
    return made


def test_paths_of_contexts_and_tables_agree() -> None:
    bins = Levels(Declared(FEATURES), 8)
    columns = people(50)
    rows = [
        bins.path({name: column[i].item() for name, column in columns.items()}) for i in range(50)
    ]
    assert (bins.paths(columns) == np.stack(rows)).all()
    assert bins.words([0, 1, 1]) == "kind = a, x from 0.75 to 1"
    assert bins.words([2]) == "kind not known"
    with pytest.raises(bd.InputError, match="power of two"):
        Levels(Declared(FEATURES), 6)


def test_online_equals_simulator() -> None:
    columns = people(200)
    rewards = np.random.default_rng(1).random((200, 3))
    run = simulate_trees(columns, FEATURES, rewards, 1.0, 1_000, seed=4)
    online = policy().rehearse(new_stream([4, 0]), new_stream([4, 1]))
    arms = []
    for i in np.random.default_rng([4, 2]).integers(0, 200, 1_000):
        decision = online.decide({name: column[i].item() for name, column in columns.items()})
        arms.append(decision.index)
        online.observe(decision, reward=float(rewards[i, decision.index]))
    assert (np.array(arms) == run.arms).all()
    assert not online.guarantee.private


def test_files_and_certificates(tmp_path: Path) -> None:
    made = policy()
    for k in range(50):
        made.observe(made.decide({"kind": "ab"[k % 2], "x": 0.3}), reward=k % 2)
    waiting = made.decide({"kind": "a"})
    made.save(tmp_path / "trees.json")
    again = bd.load(tmp_path / "trees.json", epsilon=1.0)
    assert again.chances({"kind": "b", "x": 0.3}) == made.chances({"kind": "b", "x": 0.3})
    again.observe(waiting, loss=0.5)
    again.observe(waiting, loss=0.5)  # a repeat changes nothing
    assert again.released == 51
    with pytest.raises(bd.DecisionError, match="another value"):
        again.observe(waiting, loss=0.25)
    assert again.waiting == 0
    findings = verify(json.dumps(made.certificate()))
    assert findings
    assert all(finding.holds for finding in findings), findings
    assert made.guarantee.delta == 0.0
    assert made.guarantee.model == "local"
    assert "depth 3" in repr(made)


def test_it_finds_the_category() -> None:
    columns = people(2_000)
    best = np.where(columns["kind"] == "a", 0, np.where(columns["kind"] == "b", 1, 2))
    rewards = np.where(best[:, None] == np.arange(3), 1.0, 0.0)
    run = simulate_trees(columns, FEATURES, rewards, 3.0, 40_000, leaves=3)
    assert run.rewards[-8_000:].mean() > 0.9
    made = policy()
    assert str(made.answer()).startswith("everyone")


def test_refusals() -> None:
    with pytest.raises(bd.InputError, match="public contexts"):
        policy(protects="context and feedback")
    with pytest.raises(bd.InputError, match="algorithm"):
        bd.PrivateContextual(3, FEATURES, 1.0, algorithm="forest")
    with pytest.raises(bd.InputError, match="leaves and bins"):
        bd.PrivateContextual(3, FEATURES, 1.0, leaves=3)


def test_the_bound_is_above_the_mean_regret_on_random_sequences() -> None:
    """100 random sequences and trees: regret against the sequence's own tree, on average.

    The bound is on expected regret; each run's regret is in [-T, T] with deviation well below
    the bound, so the mean of 100 exceeds it by chance with probability below 1e-6.
    """
    rounds, arms = 2_000, 3
    regrets = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = {"kind": rng.choice(["a", "b"], rounds), "x": rng.random(rounds)}
        paths = Levels(Declared(FEATURES), 4).paths(columns)
        leaf = np.where(paths[:, 0] == 0, 0, 1 + paths[:, 1])  # a | b, lower half | b, upper half
        best = rng.integers(0, arms, 3)[leaf]
        shift = rng.integers(0, 2, rounds)  # losses that change all the time
        losses = (np.arange(arms) != best[:, None]) * rng.uniform(0.2, 1.0) * shift[:, None]
        rewards = 1.0 - losses
        run = simulate_trees(
            columns, FEATURES, rewards, 2.0, rounds, leaves=3, seed=seed, in_order=True
        )
        regrets.append(rewards[np.arange(rounds), best].sum() - run.rewards.sum())
    bound = tree_bound(arms, rounds, 2.0, 3).regret
    assert 0.0 < np.mean(regrets) < bound
    assert bound < rounds


def test_a_release_that_fails_does_not_carry_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: OneBitRelease, total: int, size: int | None = None) -> float:
        raise OSError("no randomness")

    monkeypatch.setattr(OneBitRelease, "release", fail)
    made = policy()
    decision = made.decide({"kind": "a"})
    with pytest.raises(OSError, match="no randomness") as failed:
        made.observe(decision, loss=0.123)
    frames = [frame for frame, _ in traceback.walk_tb(failed.tb)]
    inside = [frame for frame in frames if frame.f_code.co_filename != __file__]
    assert inside
    for frame in inside:
        known = repr(frame.f_locals)
        assert "0.123" not in known
        assert str(round(0.123 * 2**20)) not in known
