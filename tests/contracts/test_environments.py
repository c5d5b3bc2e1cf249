"""What every environment must do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from research.worlds import LeakageInstance

from bandanna import environments as envs
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.environments.base import realised_once, sum_losses_once
from tests.laws import assert_mean

ROUNDS = 200
TABLE = np.random.default_rng(1).random((ROUNDS, 3))

DETERMINISTIC: dict[str, envs.Environment] = {
    "table": envs.LossTable(TABLE),
    "switching": envs.Switching(3, ROUNDS, changes=4),
    "drift": envs.SinusoidalDrift(3, ROUNDS, period=17.3),
    "barrier": envs.Barrier(ROUNDS),
    "shifted barrier": envs.Barrier(ROUNDS, shift=60),
    "leakage": LeakageInstance(ROUNDS),
    "leakage neighbour": LeakageInstance(ROUNDS, neighbour=True),
}
RANDOM: dict[str, envs.Environment] = {
    "bernoulli": envs.Bernoulli(3, ROUNDS, best=1),
    "noisy switching": envs.Switching(3, ROUNDS, bernoulli=True),
    "constrained": envs.ConstrainedAdversary(3, ROUNDS),
    "trial": envs.ClinicalTrial(ROUNDS),
    "returning": envs.Returning(3, ROUNDS, returning=0.5),
    "visits": envs.Returning([0.2, 0.5, 0.8], ROUNDS, visits=7),
}
ADAPTIVE: dict[str, envs.PunishLeader | envs.PunishRepeats] = {
    "punish-repeats": envs.PunishRepeats(3, ROUNDS),
    "punish-leader": envs.PunishLeader(3, ROUNDS),
}


def total(env: envs.Environment, arm: int, start: int, stop: int, seed: int = 0) -> int:
    return sum_losses_once(env.params(), env.memory(), arm, start, stop, new_stream(seed))


@pytest.mark.parametrize("name", DETERMINISTIC)
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2), st.lists(st.integers(0, ROUNDS), min_size=3, max_size=3))
def test_sums_add_up_and_stay_in_range(name: str, arm: int, cuts: list[int]) -> None:
    env = DETERMINISTIC[name]
    arm = min(arm, env.arms - 1)
    start, middle, stop = sorted(cuts)
    whole = total(env, arm, start, stop)
    assert whole == total(env, arm, start, middle) + total(env, arm, middle, stop)
    assert 0 <= whole <= (stop - start) * UNITS
    assert env.arm_totals(np.array([stop]))[0, arm] == pytest.approx(
        total(env, arm, 0, stop) / UNITS, abs=1e-9
    )


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_single_losses_are_losses(name: str) -> None:
    env = DETERMINISTIC[name]
    for arm in range(env.arms):
        losses = [total(env, arm, t, t + 1) for t in range(ROUNDS)]
        assert min(losses) >= 0
        assert max(losses) <= UNITS
        assert sum(losses) == total(env, arm, 0, ROUNDS)


@pytest.mark.parametrize("name", RANDOM)
def test_random_sums_have_the_stated_mean(name: str) -> None:
    env = RANDOM[name]
    for arm in range(env.arms):
        for start, stop in ((0, ROUNDS), (30, 90), (90, 91)):
            expected = np.diff(env.arm_totals(np.array([start, stop]))[:, arm])[0]
            draws = [total(env, arm, start, stop, seed) / UNITS for seed in range(400)]
            assert all(0 <= draw <= stop - start for draw in draws)
            if len(set(draws)) > 1:
                assert_mean(draws, expected)
            else:
                assert draws[0] == pytest.approx(expected)


def play_the_rules(name: str, plays: list[int]) -> tuple[int, np.ndarray]:
    """The two adversaries, word for word, one round at a time."""
    counts, totals, mine, last = np.zeros(3), np.zeros(3), 0, None
    for arm in plays:
        costly = last if name == "punish-repeats" else int(counts.argmax())
        if costly is not None:
            totals[costly] += 1
            mine += costly == arm
        counts[arm] += 1
        last = arm
    return mine, totals


@pytest.mark.parametrize("name", ADAPTIVE)
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=12))
def test_adversaries_play_by_their_rules_batch_by_batch(
    name: str, batches: list[tuple[int, int]]
) -> None:
    env = ADAPTIVE[name]
    memory, mine, start = env.memory(), 0, 0
    for arm, length in batches:
        mine += sum_losses_once(env.params(), memory, arm, start, start + length, new_stream(0))
        start += length
    realised = np.zeros(3, dtype=np.int64)
    realised_once(env.params(), memory, realised)
    plays = [arm for arm, length in batches for _ in range(length)]
    expected_mine, expected = play_the_rules(name, plays)
    assert mine == expected_mine * UNITS
    np.testing.assert_array_equal(realised, expected * UNITS)
    memory, one_by_one = env.memory(), 0
    for t, arm in enumerate(plays):
        one_by_one += sum_losses_once(env.params(), memory, arm, t, t + 1, new_stream(0))
    assert one_by_one == mine


def test_the_trial_is_the_trial() -> None:
    treatments, events = envs.trial_outcomes()
    assert np.bincount(treatments).tolist() == [532, 522, 524, 561]
    totals = envs.ClinicalTrial(1000).arm_totals(np.array([1000]))[0]
    np.testing.assert_allclose(totals, [340.226, 197.318, 208.015, 228.164], atol=1e-3)
    assert events.sum() == 521


@pytest.mark.parametrize("name", envs.ENVIRONMENTS)
def test_every_name_makes_an_environment(name: str) -> None:
    env = envs.make_environment(name, None, 1000)
    assert env.rounds == 1000
    assert env.name == name


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: envs.Bernoulli(1, 10), "arms"),
        (lambda: envs.Bernoulli(3, 0), "rounds"),
        (lambda: envs.Bernoulli(3, 10, gap=0), "gap"),
        (lambda: envs.Bernoulli(3, 10, best=3), "best"),
        (lambda: envs.Switching(3, 10, changes=0), "changes"),
        (lambda: envs.Switching(3, 3, changes=3), "rounds"),
        (lambda: envs.SinusoidalDrift(3, 10, amplitude=0.6), "amplitude"),
        (lambda: envs.SinusoidalDrift(3, 10, period=1), "period"),
        (lambda: envs.Barrier(10, shift=10), "shift"),
        (lambda: envs.Segments([[0.1, 1.2]], [5]), "from 0 to 1"),
        (lambda: envs.Segments([[0.1, 0.2]], [0]), "lengths"),
        (lambda: envs.make_environment("nowhere", 2, 10), "there are bernoulli"),
        (lambda: envs.make_environment("trial", 3, 10), "has 4 arms"),
    ],
)
def test_impossible_environments_are_refused(make: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make()  # type: ignore[operator]
