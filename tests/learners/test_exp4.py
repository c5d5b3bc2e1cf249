"""EXP4 against a second implementation, and at the ends of its range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.learners import Exp4
from bandanna.learners.exp4 import (
    SMALL,
    TINY,
    Exp4State,
    exp4_choose,
    exp4_learn,
    exp4_learn_all,
    exp_small,
    exp_tiny,
)
from tests.laws import assert_law


def shares_of(advice: np.ndarray, arms: int) -> np.ndarray:
    """Return the (arms, experts) shares behind either kind of advice."""
    if advice.ndim == 2:
        return advice
    shares: np.ndarray = (advice[np.newaxis] == np.arange(arms)[:, np.newaxis]).astype(float)
    return shares


def make_advice(rng: np.random.Generator, experts: int, arms: int, spread: bool) -> np.ndarray:
    if spread:
        return np.ascontiguousarray(rng.dirichlet(np.ones(arms), experts).T)
    return rng.integers(0, arms, experts).astype(np.uint8)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("experts", [1, 3, 8, 21])
@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_weights_and_probabilities_agree_with_the_textbook(
    spread: bool, experts: int, size: float
) -> None:
    rng = np.random.default_rng(3)
    learner = Exp4(experts, 4, learning_rate=0.2, mixing=0.1)
    params, state, stream = learner.params(), learner.start(), new_stream(1)
    losses = np.zeros(experts)
    for _ in range(300):
        advice = make_advice(rng, experts, 4, spread)
        shares = shares_of(advice, 4)
        weights = np.exp(-0.2 * (losses - losses.min()))
        chances = 0.9 * shares @ (weights / weights.sum()) + 0.1 / 4
        arm, importance = exp4_choose(params, state, advice, stream)
        assert importance == pytest.approx(1.0 / chances[arm], rel=1e-9)
        estimate = size * rng.normal() * importance
        exp4_learn(params, state, advice, arm, estimate)
        losses += estimate * shares[arm]
    mine = np.array(state.losses)
    np.testing.assert_allclose(mine - mine.min(), losses - losses.min(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [False, True])
def test_arms_are_drawn_with_the_probabilities_stated(spread: bool) -> None:
    rng = np.random.default_rng(5)
    learner = Exp4(11, 5, learning_rate=0.3, mixing=0.15)
    params, state, stream = learner.params(), learner.start(), new_stream(2)
    exp4_learn_all(params, state, rng.random(11) * 10)
    advice = make_advice(rng, 11, 5, spread)
    weights = np.array(state.weights) / np.sum(state.weights)
    chances = 0.85 * shares_of(advice, 5) @ weights + 0.15 / 5
    counts = np.zeros(5)
    for _ in range(40_000):
        counts[exp4_choose(params, state, advice, stream)[0]] += 1
    assert_law(counts, chances)


@settings(deadline=None, max_examples=40)
@given(
    st.booleans(),
    st.sampled_from([1e-12, 1.0, 1e6, 1e15]),
    st.sampled_from([-1.0, 1.0, 0.0]),
    st.integers(0, 2**32),
)
def test_no_loss_makes_it_lose_its_mind(spread: bool, size: float, sign: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    learner = Exp4(9, 3, learning_rate=0.5)
    params, state, stream = learner.params(), learner.start(), new_stream(seed)
    for _ in range(200):
        advice = make_advice(rng, 9, 3, spread)
        arm, importance = exp4_choose(params, state, advice, stream)
        assert shares_of(advice, 3)[arm].max() > 0.0
        assert 1.0 - 1e-9 <= importance < math.inf
        estimate = size * (sign or rng.choice([-1.0, 1.0])) * rng.random() * importance
        exp4_learn(params, state, advice, arm, estimate)
        assert all(np.all(np.isfinite(part)) for part in state)
        assert state.total[0] > 0.0


def test_a_forgotten_expert_comes_back() -> None:
    """A weight that fell to zero is rebuilt from its loss when the others have lost as much."""
    learner = Exp4(2, 2, learning_rate=1.0)
    params, state = learner.params(), learner.start()
    votes = np.array([0, 1], dtype=np.uint8)
    for _ in range(100):
        exp4_learn(params, state, votes, 0, 10.0)
    assert state.weights[0] == 0.0
    for _ in range(110):
        exp4_learn(params, state, votes, 1, 10.0)
    assert state.weights[0] / state.total[0] == pytest.approx(1.0)


@pytest.mark.parametrize(("function", "limit"), [(exp_tiny, TINY), (exp_small, SMALL)])
def test_short_exponentials_are_exact_to_rounding(function: object, limit: float) -> None:
    for x in np.linspace(-limit, limit, 2001):
        assert function(x) == pytest.approx(math.exp(x), rel=4e-16)  # type: ignore[operator]


@pytest.mark.parametrize(
    "arguments",
    [(0, 3, 0.1), (2, 1, 0.1), (2, 3, 0.0), (2, 3, 0.1, 1.5), (2, 3, 0.1, -0.1), (2.5, 3, 0.1)],
)
def test_parameters_are_validated(arguments: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        Exp4(*arguments)  # type: ignore[arg-type]


def test_states_start_level() -> None:
    state: Exp4State = Exp4(5, 3, 0.1).start()
    assert state.weights.tolist() == [1.0] * 5
    assert state.total[0] == 5.0
