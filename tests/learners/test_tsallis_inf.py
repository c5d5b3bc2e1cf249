from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.learners import TsallisInf
from bandanna.learners.base import Player
from bandanna.learners.centring import with_baseline

LOSSES = np.array([0.0, 40.0, 6.0])


def warmed_up(updates: int) -> tuple[np.ndarray, Player]:
    """Return a player who has drawn an arm, and the chances of that draw."""
    player = TsallisInf(3).play(new_stream(1))
    state = player.state_dict()
    state |= {"losses": LOSSES.tolist(), "updates": [updates, updates]}
    player.load_state(state)
    player.draw()
    return np.array(player.state_dict()["chances"]), player


@pytest.mark.parametrize("updates", [0, 14, 15, 99])
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_the_estimate_is_the_textbook_one(updates: int, loss: float) -> None:
    """``B_i + 1[i played] (loss - B_i) / x_i``, with B_i from round 16 on, up to a constant."""
    t = updates + 1
    for arm in range(3):
        chances, player = warmed_up(updates)
        baseline = np.where((t >= 16) & (chances >= 4 / t), 0.5, 0.0)
        expected = LOSSES + baseline
        expected[arm] += (loss - baseline[arm]) / chances[arm]
        player.update(arm, with_baseline(1.0 / chances[arm], baseline[arm]), loss)
        after = np.array(player.state_dict()["losses"])
        # The importance is off by up to 2**-32 of itself.
        gaps = after - after[0]
        np.testing.assert_allclose(
            gaps, expected - expected[0], rtol=1e-9, atol=1e-9 / chances[arm]
        )


@pytest.mark.parametrize(("estimator", "bound"), [("tsallis-inf", 2.0), ("tsallis-inf-iw", 4.0)])
def test_regret_stays_below_its_bound(estimator: str, bound: float) -> None:
    arms, rounds = 5, 4000
    for environment in (
        bd.environments.Bernoulli(arms, rounds, gap=np.sqrt(arms / rounds)),
        bd.environments.Switching(arms, rounds),
        bd.environments.SinusoidalDrift(arms, rounds),
    ):
        regret = bd.simulate(bd.Bandit(arms, estimator), environment, replicates=100)
        log_term = 4.07 * arms * np.log(rounds / 15) + 16
        assert regret.regret("policy").mean() < bound * np.sqrt(arms * rounds) + log_term
