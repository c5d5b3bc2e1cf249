"""PrivateContextual: late feedback, files, and the simulator, bit for bit."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.contextual import ContextTable, simulate_context
from bandanna.contextual.simulation import replay
from bandanna.privacy.epochs import PROTECTS, Protects

FEATURES = {"x": (-1, 1), "y": (-1, 1), "kind": ["a", "b", "c"]}


def people(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(-1, 1, count),
        "y": rng.uniform(-1, 1, count),
        "kind": rng.choice(["a", "b", "c"], count),
    }


def table(count: int = 300) -> tuple[dict[str, np.ndarray], ContextTable]:
    columns = people(count)
    rewards = np.stack([columns["kind"] == kind for kind in "abc"], axis=1) * 0.75
    return columns, ContextTable.from_rewards(columns, FEATURES, rewards)


def context(columns: dict[str, np.ndarray], i: int) -> dict[str, object]:
    return {name: column[i].item() for name, column in columns.items()}


def policy(protects: Protects, rounds: int = 2_000) -> bd.PrivateContextual:
    return bd.PrivateContextual(3, FEATURES, 1.0, 1e-6, rounds, protects, seed=1)


@pytest.mark.parametrize("protects", PROTECTS)
def test_online_equals_simulator(protects: Protects) -> None:
    columns, world = table()
    run = simulate_context(world, 1.0, rounds=2_000, protects=protects, seed=5)
    online = policy(protects).rehearse(new_stream([5, 0]), new_stream([5, 1]))
    rng = np.random.default_rng([5, 2])
    arms, starts = [], [0, *run.ends]
    for start, end in pairwise(starts):
        for i in rng.integers(0, 300, end - start):
            decision = online.decide(context(columns, i))
            arms.append(decision.index)
            online.observe(decision, loss=world.losses[i, decision.index] / 2**20)
    assert (np.array(arms) == run.arms).all()
    assert online.released == len(run.ends)
    assert len(set(arms)) == 3


@pytest.mark.parametrize("protects", PROTECTS)
def test_order_of_feedback_does_not_matter(protects: Protects) -> None:
    columns, _ = table()
    found = []
    for order in (1, -1):
        made = policy(protects).rehearse(new_stream(1), new_stream(2))
        waiting = [made.decide(context(columns, i)) for i in range(made.batch)]
        for decision in waiting[::order]:
            made.observe(decision, reward=decision.round % 3 / 2)
        found.append((made.released, made.coefficients))
    assert found[0][0] == found[1][0] == 1
    assert (found[0][1] == found[1][1]).all()


def test_feedback_counts_once() -> None:
    made = policy("feedback")
    decision = made.decide({"x": 0.5})
    made.observe(decision, reward=1.0)
    made.observe(decision, reward=1.0)
    with pytest.raises(bd.DecisionError, match="another value"):
        made.observe(decision, reward=0.0)
    second = made.decide({"x": 0.5})
    made.give_up(second)
    with pytest.raises(bd.DecisionError, match="given up"):
        made.observe(second._asdict(), reward=0.0)
    stranger = decision._replace(policy="f" * 16)
    with pytest.raises(bd.DecisionError, match="another policy"):
        made.observe(stranger, reward=0.0)
    third = made.decide({"x": 0.5})
    with pytest.raises(bd.DecisionError, match="never made"):
        made.observe(third._replace(index=(third.index + 1) % 3), reward=0.0)
    with pytest.raises(bd.InputError, match="private"):
        made.observe(third, reward=7.0)


def test_an_epoch_waits_for_its_last_feedback() -> None:
    made = policy("feedback")
    first, length = made.decide({"x": 0.1}), made.batch
    while made.decided < length + 5:
        made.observe(made.decide({"x": 0.2}), reward=0.5)
    assert made.released == 0
    made.give_up(first)
    assert made.released == 1
    made.give_up(first)
    with pytest.raises(bd.DecisionError, match="given up"):
        made.observe(first, reward=0.5)


@pytest.mark.parametrize("protects", PROTECTS)
def test_files(protects: Protects, tmp_path: Path) -> None:
    columns, _ = table()
    made = policy(protects)
    for i in range(250):
        made.observe(made.decide(context(columns, i)), reward=0.5)
    waiting = made.decide(context(columns, 0))
    made.save(tmp_path / "policy.json")
    again = bd.load(tmp_path / "policy.json", epsilon=1.0)
    assert again.released == made.released >= 1
    assert (again.coefficients == made.coefficients).all()
    again.observe(waiting, reward=0.25)
    assert again.waiting == 0
    assert again.decide(context(columns, 1)).arm == made.decide(context(columns, 1)).arm
    late = made.decide(context(columns, 2))
    with pytest.raises(bd.DecisionError):
        again.observe(late, reward=0.5)
    with pytest.raises(bd.StateFileError, match="resumed"):
        bd.load(tmp_path / "policy.json")
    twice = bd.load(tmp_path / "policy.json", again=True)
    assert twice.guarantee.epsilon == 2.0
    made.save(tmp_path / "policy.json")
    with pytest.raises(bd.StateFileError, match="promises less"):
        bd.load(tmp_path / "policy.json", epsilon=0.5)


def test_going_on_beyond_the_rounds() -> None:
    made = policy("feedback", rounds=60)
    for _ in range(300):
        made.observe(made.decide({"x": 0.2, "kind": "a"}), reward=0.5)
    assert made.decided == 300
    assert made.released >= 4


def test_what_it_tells() -> None:
    columns, world = table()
    made = policy("context and feedback").rehearse(new_stream(1), new_stream(2))
    assert made.answer().best is None
    for i in np.random.default_rng(0).integers(0, 300, 2_000):
        decision = made.decide(context(columns, i))
        made.observe(decision, loss=world.losses[i, decision.index] / 2**20)
    answer = made.answer()
    assert answer.features[0].feature == "kind"
    # Features of long contexts are shortened, so the sums do not tell what was earned.
    assert "is not released" in answer.sentence
    assert not {"rewards", "gain"} & set(answer.to_dict())
    assert "features by strength" in str(answer)
    assert "mean reward" in answer._repr_html_()
    assert "context and feedback" in repr(made)
    assert abs(sum(made.chances({"kind": "a"}).values()) - 1) < 1e-12
    assert not made.guarantee.private
    with pytest.raises(bd.InputError, match="nothing to certify"):
        made.certificate()


def test_replay_of_a_log() -> None:
    columns = people(6_000)
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 3, 6_000)
    reward = (columns["kind"] == np.array(list("abc"))[arm]) * 0.75
    log = {**columns, "arm": arm, "reward": reward}
    found = replay(log, FEATURES, 2.0, 1e-6)
    assert 1_500 < found.matched < 2_500
    assert found.reward > 0.35  # the best single arm has 0.25
    model = ContextTable.from_log(log, FEATURES)
    assert "linear model" in model.about
    assert model.arms == 3


@pytest.mark.parametrize("protects", PROTECTS)
def test_a_person_is_counted_once_in_an_epoch_and_in_so_many_epochs(
    protects: Protects, tmp_path: Path
) -> None:
    made = bd.PrivateContextual(3, FEATURES, 1.0, 1e-6, 400, protects, per_person=2, seed=1)
    for k in range(1_200):
        decision = made.decide({"x": 0.5}, person=f"person {k % 150}")
        made.observe(decision, reward=0.5)
        if k == 600:
            made.save(tmp_path / "people.json")
            made = bd.load(tmp_path / "people.json")
    counted = [int(past.rounds.sum()) for past in made.past]
    assert len(counted) >= 2
    assert max(counted) <= 150  # nobody twice in an epoch
    people = made.state.people
    assert people is not None
    assert set(people.slots.values()) == {2}
    assert people.used == 300
    assert made.decided == 1_200
    assert made.guarantee.unit == "person"
    assert "up to 2 epochs" in made.guarantee.protects
    with pytest.raises(bd.InputError, match="person must be"):
        made.decide({"x": 0.5})
    with pytest.raises(bd.InputError, match="per_person="):
        policy(protects).decide({"x": 0.5}, person="x")


def test_slots_cost_noise() -> None:
    one, four = (
        bd.PrivateContextual(3, FEATURES, 1.0, 1e-6, 400, per_person=k).recipe.release.scale  # type: ignore[attr-defined]
        for k in (1, 4)
    )
    assert four == pytest.approx(2 * one)
