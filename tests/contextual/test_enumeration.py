"""The promise "context and feedback" on a case so small that everything is enumerated.

One person is replaced, context, outcome and all. Someone sees everything but that person's own
decision: the others' decisions and all that is published. Every sequence of arms is played with
its probability, releases are fixed to chosen values, and the probability (with the density of
the Laplace noise at these values) of everything that is seen is added up over the person's own arm.
It may differ by a factor of at most ``exp(epsilon)`` between the two inputs, for whatever is seen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.contextual import plays
from bandanna.contextual.features import Context
from bandanna.contextual.plays import LinearPlay
from bandanna.contextual.policy import PrivateContextual
from bandanna.contextual.steps import Scores
from bandanna.policy.state import Batch
from bandanna.privacy.epoch_sums import (
    Counts,
    EpochRelease,
    EpochTally,
    SeededEpochs,
    Statistics,
    square_pairs,
)

EPSILON, ARMS, PLANTED = 1.0, 2, 120
ENDS = (120, 123)
"""Two epochs; the planted person is the first of the second one."""
FIRST = tuple(t // 2 % 2 for t in range(PLANTED))
"""Arms in the first epoch, the same in all sequences: it is over before the person comes."""
ONE = [({"x": 1.0 - 2.0 * (t % 2)}, float(t % 2 == t // 2 % 2)) for t in range(PLANTED)]
ONE += [({"x": -1.0}, 0.0), ({"x": 0.5}, 1.0), ({"x": -0.5}, 1.0)]
OTHER = [*ONE[:PLANTED], ({"x": 1.0}, 1.0), *ONE[PLANTED + 1 :]]
PATHS = [(*FIRST, *path) for path in itertools.product(range(ARMS), repeat=3)]

People = list[tuple[dict[str, float], float]]
View = tuple[object, ...]


class Fixed(SeededEpochs):
    """Publishes chosen values, and keeps what they are published instead of."""

    def __init__(self, release: EpochRelease, values: list[Statistics]) -> None:
        super().__init__(release, new_stream(0))
        self.values = values
        self.kept: list[Statistics] = []

    def release(self, exact: Statistics) -> Statistics:
        self.kept.append(Statistics(exact.products.copy(), exact.sums.copy()))
        return self.values[len(self.kept) - 1]


class Arms:
    """Draws the arms it is told to, and multiplies their chances."""

    def __init__(self) -> None:
        self.told: Iterator[int] = iter(())

    def __call__(self, phi: Any, scores: Scores, stream: object) -> Any:
        found = scores.coefficients @ phi
        best = int(found.argmax())
        chances = 1.0 / (len(found) + scores.sharpness[0] * (found[best] - found))
        chances[best] = 1.0 - np.delete(chances, best).sum()
        arm = next(self.told)
        return arm, 1.0 / float(chances[arm])


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> Arms:
    made = Arms()
    monkeypatch.setattr(plays, "draw", made)
    return made


def density(release: EpochRelease, told: Statistics, exact: Statistics) -> float:
    """Return the log density of the noise, but for a constant."""
    noise = release.deviations
    scales = np.where(square_pairs(release.features), noise.squares, noise.products)
    moved = abs(told.sums - exact.sums).sum() / noise.sums
    return -float(moved + (abs(told.products - exact.products) / scales).sum())


def play(
    made: PrivateContextual, people: People, values: list[Statistics]
) -> tuple[View, float, list[Statistics]]:
    """Return what is seen of one sequence of arms, its log probability and the statistics."""
    promised = made.recipe.release
    assert isinstance(promised, EpochRelease)
    release = Fixed(promised, values)
    copy = made.copy_with(release, new_stream(0))
    play_of(copy).ends = ENDS
    seen, chance = [], 0.0
    for t, (context, reward) in enumerate(people):
        decision = copy.decide(context)
        assert decision.chance is not None
        chance += math.log(decision.chance)
        copy.observe(decision, reward=reward)
        seen += [decision.index] if t != PLANTED else []
    counts = [past.rounds.tolist() for past in copy.past]
    chance += sum(
        density(promised, told, exact) for told, exact in zip(values, release.kept, strict=False)
    )
    return (*seen, str(counts)), chance, release.kept


def largest_loss(kind: type[PrivateContextual], arms: Arms) -> float:
    """Return the largest privacy loss over everything that can be seen."""
    made = kind(ARMS, {"x": (-1, 1)}, EPSILON, 0.0, len(ONE), "context and feedback")
    worst = 0.0
    for values in chosen(made, arms):
        laws: list[dict[View, float]] = []
        for people in (ONE, OTHER):
            law: dict[View, float] = {}
            for path in PATHS:
                arms.told = iter(path)
                view, chance, _ = play(made, people, values)
                law[view] = float(np.logaddexp(law.get(view, -math.inf), chance))
            laws.append(law)
        for view in laws[0].keys() | laws[1].keys():
            first, second = (law.get(view, -math.inf) for law in laws)
            worst = max(worst, abs(first - second))
    return worst


def chosen(made: PrivateContextual, arms: Arms) -> Iterator[list[Statistics]]:
    """Choose values to release: what makes chances uneven, then what either input may give."""
    size = made.encoder.size
    nothing = Statistics(
        np.zeros((ARMS, size * (size + 1) // 2), dtype=np.int64),
        np.zeros((ARMS, size), dtype=np.int64),
    )
    for people, path in ((ONE, PATHS[0]), (OTHER, PATHS[-1])):
        arms.told = iter(path)
        first = play(made, people, [nothing] * 2)[2][0]
        arms.told = iter(path)
        second = play(made, people, [first, nothing])[2][1]
        yield [first, second]


def test_nothing_that_is_seen_tells_more_than_epsilon(arms: Arms) -> None:
    worst = largest_loss(PrivateContextual, arms)
    assert 0.3 * EPSILON < worst <= EPSILON * (1.0 + 1e-9)


def play_of(policy: PrivateContextual) -> LinearPlay:
    assert isinstance(policy.state.learned, LinearPlay)
    return policy.state.learned


def move_scores(policy: PrivateContextual, moved: np.ndarray) -> None:
    scores = Scores(policy.coefficients + moved, np.array([50.0]), np.zeros(ARMS))
    play_of(policy).scores = scores


def sums_of(batch: Batch) -> Counts:
    assert isinstance(batch.tally, EpochTally)
    return batch.tally.counted()


class ExactCounts(PrivateContextual):
    """Fault: how many people had each arm is published."""

    def _learn(self, batch: Batch | None) -> None:
        exact = None if batch is None else sums_of(batch).rounds.copy()
        super()._learn(batch)
        if exact is not None:
            self.past[-1].rounds[:] = exact


class RunningContexts(PrivateContextual):
    """Fault: scores use contexts and outcomes of the epoch that is running."""

    def decide(self, context: Context, **who: Any) -> bd.Decision:  # type: ignore[override]
        for batch in self.state.open.values():
            move_scores(self, sums_of(batch).sums / 2.0**30)
        return super().decide(context)


class LeakedShares(PrivateContextual):
    """Fault: a person's own decision changes the shares of the next one."""

    def decide(self, context: Context, **who: Any) -> bd.Decision:  # type: ignore[override]
        decision = super().decide(context)
        moved = np.zeros_like(self.coefficients)
        moved[decision.index, 0] = 1.0
        move_scores(self, moved)
        return decision


@pytest.mark.parametrize("fault", [ExactCounts, RunningContexts, LeakedShares])
def test_planted_faults_tell_more(fault: type[PrivateContextual], arms: Arms) -> None:
    assert largest_loss(fault, arms) > 1.05 * EPSILON
