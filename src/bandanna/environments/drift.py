"""Losses that drift like waves, each arm with its own phase."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.environments.base import Environment, Memory, edges_of_best, register

MOST_SEGMENTS = 2000
"""With more changes of the best arm than this, nobody follows them."""

LOOKS = 50
"""How often to look which arm is best while it is the same, about."""


class DriftParams(NamedTuple):
    """Angular speed, size of the waves, and level and phase of each arm."""

    speed: float
    amplitude: float
    levels: NDArray[np.float64]
    phases: NDArray[np.float64]


class SinusoidalDrift(Environment):
    """Arm i's loss in round t is ``level_i + amplitude sin(2 pi (t / period + i / K))``.

    The first arm's level is ``gap`` lower than the others'. Sums have a closed form; the loss of
    a round is the difference of two of them, rounded to the grid.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        How much better the first arm is on average, from 0 to 0.5.
    amplitude
        Size of the waves, above 0.
    period
        Rounds in a wave; by default a quarter of ``rounds``.
    """

    name = "drift"
    comparator = "realised"

    def __init__(
        self,
        arms: int,
        rounds: int,
        gap: float = 0.1,
        amplitude: float = 0.4,
        period: float | None = None,
    ) -> None:
        self.arms = checks.arms(arms)
        self.rounds = checks.rounds(rounds)
        checks.within("gap", gap, 0.0, 0.5)
        checks.positive("amplitude", amplitude)
        if amplitude + gap / 2 > 0.499:
            raise InputError(
                f"amplitude + gap/2 must be at most 0.499 for losses to stay in [0, 1]; "
                f"got {amplitude!r} and {gap!r}."
            )
        wave = checks.positive("period", max(self.rounds / 4, 4.0) if period is None else period)
        if wave < 4.0:
            raise InputError(f"period must be at least 4 rounds; got {period!r}.")
        indices = np.arange(self.arms)
        self._params = DriftParams(
            speed=2.0 * math.pi / wave,
            amplitude=float(amplitude),
            levels=np.where(indices == 0, 0.5 - gap / 2, 0.5 + gap / 2),
            phases=2.0 * math.pi * indices / self.arms,
        )

    def params(self) -> DriftParams:
        """Return speed, amplitude, levels and phases."""
        return self._params

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Rounds at which the waves of two arms cross below all others."""
        speed, amplitude, levels, phases = self._params
        waves = self.rounds * speed / (2.0 * math.pi)
        if waves * self.arms > MOST_SEGMENTS:
            return None
        looks = min(self.rounds, math.ceil(waves * self.arms * LOOKS))
        starts = np.unique(np.rint(np.linspace(0, self.rounds, looks + 1)).astype(np.int64))
        middles = 0.5 * (starts[:-1] + starts[1:] - 1)
        losses = levels + amplitude * np.sin(speed * middles[:, None] + phases)
        return edges_of_best(starts, losses)

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's total loss before each of the given rounds."""
        t = stops[:, None].astype(np.float64)
        speed, amplitude, levels, phases = self._params
        waves = np.sin(speed * (t - 1.0) / 2.0 + phases) * np.sin(speed * t / 2.0)
        totals = levels * t + amplitude * waves / math.sin(speed / 2.0)
        return np.rint(totals * UNITS) / UNITS


@step
def _prefix(params: DriftParams, arm: int, t: int) -> int:
    """Return an arm's total before round t: a sum of sines is a product of two."""
    speed = params.speed
    wave = math.sin(speed * (t - 1.0) / 2.0 + params.phases[arm]) * math.sin(speed * t / 2.0)
    total = params.levels[arm] * t + params.amplitude * wave / math.sin(speed / 2.0)
    return int(np.rint(total * UNITS))


@step
def _sum_losses(
    params: DriftParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    return _prefix(params, arm, stop) - _prefix(params, arm, start)


register(DriftParams, _sum_losses)
