"""What every learner must do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from research.prior_work import ClippedExp3

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.learners import (
    LEARNERS,
    Adaptive,
    CompiledLearner,
    DpKlucb,
    Exp3,
    FixedArm,
    Ftpl,
    Htinf,
    KlUcb,
    Race,
    Thompson,
    TsallisInf,
    Uniform,
)
from bandanna.learners.steps import CHOSEN

LEARNERS_UNDER_TEST: dict[str, CompiledLearner] = {
    "exp3": Exp3(4, learning_rate=0.05, mixing=0.05),
    "exp3 without mixing": Exp3(4, learning_rate=0.05),
    "exp3 in blocks": Exp3(70, learning_rate=0.05, mixing=0.01),
    "exp3 centred": Exp3(4, learning_rate=0.05, centred=True),
    "exp3 tracking": Exp3(4, learning_rate=0.05, centred=True, share=0.001),
    "clipped exp3": ClippedExp3(4, mixing=0.2, bound=5.0),
    "htinf": Htinf(4),
    "htinf 1.5": Htinf(4, alpha=1.5, sigma=1.2),
    "htinf 1.01": Htinf(4, alpha=1.01),
    "tsallis": TsallisInf(4),
    "tsallis iw": TsallisInf(4, estimator="importance-weighted"),
    "tsallis centred": TsallisInf(4, estimator="centred"),
    "tsallis fixed": TsallisInf(4, estimator="centred", losses=1000),
    "ftpl": Ftpl(4, learning_rate=0.05, resamples=20),
    "adaptive": Adaptive(4),
    "adaptive that forgets": Adaptive(4, losses=6000, memory=1000),
    "adaptive with a net": Adaptive(4, losses=300, noise=0.5, budget=60.0),
    "kl-ucb": KlUcb(4),
    "dp-klucb": DpKlucb(4, epsilon=0.5),
    "dp-klucb without guard": DpKlucb(4, epsilon=0.5, guard=False),
    "race": Race(4, epsilon=0.5),
    "thompson": Thompson(4),
    "uniform": Uniform(4),
    "fixed": FixedArm(4, arm=2),
}

every_learner = pytest.mark.parametrize(
    "learner", LEARNERS_UNDER_TEST.values(), ids=LEARNERS_UNDER_TEST.keys()
)


def play(
    learner: CompiledLearner, rounds: int, loss_of: Callable[[int, int], float], seed: int = 0
) -> list[int]:
    player = learner.play(new_stream(seed))
    arms = []
    for t in range(rounds):
        arm, importance = player.draw()
        assert 0 <= arm < learner.arms
        assert importance == CHOSEN or 1.0 - 1e-9 <= importance < math.inf
        player.update(arm, importance, loss_of(t, arm))
        arms.append(arm)
    return arms


def moves_all(learner: CompiledLearner) -> bool:
    settings = learner.to_dict()
    return (
        learner.name in ("adaptive", "kl-ucb", "thompson", "dp-klucb", "race")
        or bool(settings.get("centred"))
        or settings.get("estimator") == "centred"
    )


def test_all_learners_are_under_test() -> None:
    one_arm = {name for name, learner in LEARNERS.items() if not learner.phases}
    assert {learner.name for learner in LEARNERS_UNDER_TEST.values()} == one_arm


@every_learner
def test_plays_the_good_arm_more_and_more(learner: CompiledLearner) -> None:
    arms = play(learner, 6000, lambda _, arm: 0.1 if arm == 2 else 0.9)
    share = np.mean(np.array(arms[-2000:]) == 2)
    assert share > (0.2 if learner.name == "uniform" else 0.4)


@every_learner
def test_same_stream_same_decisions(learner: CompiledLearner) -> None:
    def loss(t: int, arm: int) -> float:
        return (t * 7 + arm * 3) % 11 / 10

    assert play(learner, 300, loss, seed=5) == play(learner, 300, loss, seed=5)
    if learner.name not in ("fixed", "kl-ucb", "dp-klucb", "race"):  # they draw nothing
        assert play(learner, 300, loss, seed=5) != play(learner, 300, loss, seed=6)


@every_learner
@settings(max_examples=15, deadline=None)
@given(
    size=st.sampled_from([1e-12, 1.0, 1e6, 1e15]),
    sign=st.sampled_from([-1, 1, 0]),
    seed=st.integers(0, 2**32),
)
def test_no_loss_makes_it_lose_its_mind(
    learner: CompiledLearner, size: float, sign: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    player = learner.play(new_stream(seed))
    for _ in range(300):
        arm, importance = player.draw()
        assert importance == CHOSEN or 1.0 - 1e-9 <= importance < math.inf
        noise = size * (sign or rng.choice([-1.0, 1.0])) * rng.random()
        player.update(arm, importance, float(noise))
    for values in player.state_dict().values():
        assert np.all(np.isfinite(values))


@every_learner
def test_state_survives_json_bit_for_bit(learner: CompiledLearner) -> None:
    stream = new_stream(3)
    player = learner.play(stream)
    for t in range(100):
        arm, importance = player.draw()
        player.update(arm, importance, t % 3 / 2)
    other = learner.play(stream.copy())
    other.load_state(json.loads(json.dumps(player.state_dict())))
    for t in range(100):
        arm, importance = player.draw()
        assert other.draw() == (arm, importance)
        player.update(arm, importance, t % 5 / 4)
        other.update(arm, importance, t % 5 / 4)


@every_learner
def test_damaged_states_are_refused(learner: CompiledLearner) -> None:
    player = learner.play(new_stream(0))
    good = player.state_dict()
    field = next(iter(good))
    for bad in ({}, good | {"more": [1]}, good | {field: good[field][:-1]}):
        with pytest.raises(InputError):
            player.load_state(bad)
    with pytest.raises((InputError, ValueError)):
        player.load_state(good | {field: [math.nan] * len(good[field])})
    assert player.state_dict() == good


@every_learner
def test_late_feedback_counts_with_the_importance_of_its_draw(learner: CompiledLearner) -> None:
    """Feedback in reverse order moves the estimates as the importances drawn say."""
    player = learner.play(new_stream(4))
    if "losses" not in player.state_dict() or learner.name == "clipped-exp3" or moves_all(learner):
        return  # no estimates; its own sign and scale; all arms move (tests/learners)
    drawn = [player.draw() for _ in range(6)]
    expected = np.zeros(learner.arms)
    for arm, importance in reversed(drawn):
        player.update(arm, importance, 1e-3)
        expected[arm] += 1e-3 * importance
    player.draw()  # centres the losses
    losses = np.array(player.state_dict()["losses"])
    np.testing.assert_allclose(losses - losses.min(), expected - expected.min(), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Exp3(1, 0.1), "arms"),
        (lambda: Exp3(2, 0.0), "learning_rate"),
        (lambda: Exp3(2, math.inf), "learning_rate"),
        (lambda: Exp3(2, 0.1, mixing=1.5), "mixing"),
        (lambda: ClippedExp3(2, mixing=0.0, bound=1.0), "mixing"),
        (lambda: ClippedExp3(2, mixing=0.1, bound=-1.0), "bound"),
        (lambda: Htinf(2, alpha=1.0), "alpha"),
        (lambda: Htinf(2, alpha=2.1), "alpha"),
        (lambda: Htinf(2, sigma=math.nan), "sigma"),
        (lambda: TsallisInf(2, estimator="best"), "reduced-variance"),
        (lambda: TsallisInf(2.5), "arms"),  # type: ignore[arg-type]
        (lambda: Ftpl(2, 0.1, 0), "resamples"),
        (lambda: Uniform(0), "arms"),
        (lambda: FixedArm(3, arm=3), "arm"),
        (lambda: FixedArm(0), "arms"),
    ],
)
def test_parameters_are_validated(make: Callable[[], CompiledLearner], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make()
