from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.learners import TsallisInf


def warmed_up(updates: int) -> tuple[np.ndarray, dict[str, list[float]], object]:
    player = TsallisInf(3).play(new_stream(1))
    state = player.state_dict()
    state |= {"losses": [0.0, 40.0, 6.0], "updates": [updates]}
    player.load_state(state)
    player.draw()
    return np.array(player.state_dict()["chances"]), player.state_dict(), player


@pytest.mark.parametrize("updates", [0, 14, 15, 99])
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_the_estimate_is_the_textbook_one(updates: int, loss: float) -> None:
    """``B_i + 1[i played] (loss - B_i) / x_i``, with B_i from round 16 on, up to a constant."""
    t = updates + 1
    for arm in range(3):
        chances, before, player = warmed_up(updates)
        baseline = np.where((t >= 16) & (chances >= 4 / t), 0.5, 0.0)
        expected = np.array(before["losses"]) + baseline
        expected[arm] += (loss - baseline[arm]) / chances[arm]
        player.update(arm, 1 / chances[arm], loss)  # type: ignore[attr-defined]
        after = np.array(player.state_dict()["losses"])  # type: ignore[attr-defined]
        np.testing.assert_allclose(after - after[0], expected - expected[0], atol=1e-9)


def test_the_estimate_is_unbiased_even_when_late() -> None:
    """Averaged over the arm drawn, the estimate is the loss, whatever the newest chances are."""
    losses = np.array([0.2, 0.9, 0.6])
    old, _, _ = warmed_up(50)
    mean = np.zeros(3)
    for arm in range(3):
        _, before, player = warmed_up(99)
        player.update(arm, 1 / old[arm], losses[arm])  # type: ignore[attr-defined]
        after = np.array(player.state_dict()["losses"])  # type: ignore[attr-defined]
        mean += old[arm] * (after - np.array(before["losses"]))
    # Unbiased up to the constant 1/2 that is subtracted instead of added.
    np.testing.assert_allclose(mean, losses - 0.5, atol=1e-9)


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
