"""A statistic: how many losses of a batch are above one half, with noise, in place of their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, Ticket
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna.algorithms import Algorithm
from bandanna.algorithms import register as add_to_catalogue
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.registry import register
from bandanna.privacy.release import Metrics, clear, count, publish, publish_batch
from bandanna.privacy.sums import SeededRelease, SumTally
from bandanna.spec import Problem
from bandanna.theory.tuning import Tuning


class AboveTally(SumTally):
    """Counts a loss above one half as one, and any other as nothing."""

    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        super().add(UNITS if units > UNITS // 2 else 0, ticket, arm, metrics)


class SeededAbove(SeededRelease):
    """The same with repeatable noise."""

    def start(self, size: int | None = None) -> AboveTally:
        return AboveTally(self, self.batch if size is None else size)

    def memory(self) -> AboveMemory:  # type: ignore[override]
        return AboveMemory(np.zeros(1, dtype=np.int64), np.zeros(0))


@register
@dataclass(frozen=True)
class AboveRelease(LaplaceRelease):
    """Laplace noise on the count: it moves by one, as a sum of losses does."""

    name: ClassVar[str] = "toy-above"
    mechanisms: ClassVar[tuple[()]] = ()  # Laplace noise is registered

    def start(self, size: int | None = None) -> AboveTally:
        return AboveTally(self, self.batch if size is None else size)

    def seeded(self, stream: Stream) -> SeededAbove:
        return SeededAbove(self, stream)

    def memory(self) -> AboveMemory:  # type: ignore[override]
        return AboveMemory(np.zeros(1, dtype=np.int64), np.zeros(0))


class AboveMemory(NamedTuple):
    """What the simulator counts a batch in."""

    total: NDArray[np.int64]
    estimates: NDArray[np.float64]


@step
def _clear(memory: AboveMemory) -> None:
    memory.total[0] = 0


@step
def _count(
    memory: AboveMemory, release: NamedTuple, advice: Advice, arm: int, importance: float, loss: int
) -> None:
    memory.total[0] += UNITS if loss > UNITS // 2 else 0


@step
def _publish(memory: AboveMemory, release: NamedTuple, size: int, stream: Stream) -> float:
    return publish(release, memory.total[0], size, stream)


clear.register(AboveMemory, _clear)
count.register(AboveMemory, _count)
publish_batch.register(AboveMemory, _publish)


def _tune(problem: Problem, batch: int | None) -> Tuning:
    release = {"name": "toy-above", "epsilon": problem.epsilon, "batch": batch or 2}
    return Tuning({"name": "htinf", "arms": problem.arms, "alpha": 2.0, "sigma": 3.0}, release)


add_to_catalogue(
    Algorithm("toy-above", "learns how often losses are large", "prior work", tune=_tune)
)
