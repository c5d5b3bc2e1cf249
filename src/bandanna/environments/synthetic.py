"""Named synthetic environments, built from segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.environments.segments import Segments


class Bernoulli(Segments):
    """Losses that are 0 or 1, drawn independently.

    Parameters
    ----------
    arms
        Their mean losses; or how many, one with mean ``1/2 - gap/2``, the others ``1/2 + gap/2``.
    rounds
        Number of rounds.
    gap
        How much better the best arm is, above 0 and at most 1.
    best
        Index of the best arm.
    """

    name = "bernoulli"

    def __init__(
        self, arms: int | Sequence[float], rounds: int, gap: float = 0.2, best: int = 0
    ) -> None:
        means = arms if isinstance(arms, Sequence) else one_better(checks.arms(arms), best, gap)
        super().__init__([means], [checks.rounds(rounds)], bernoulli=True)


class Switching(Segments):
    """The best arm changes at equal intervals, moving on by one arm each time.

    Losses are constant between changes: the best arm's is ``1/2 - gap/2``, the others'
    ``1/2 + gap/2``. Regret is against the best *fixed* arm; with one change midway, the default,
    that is either of two arms, and a learner has to unlearn the first half.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        Difference between the best arm and the others, above 0 and at most 1.
    changes
        How often the best arm changes, at least 1.
    first
        Share of the rounds before the first change; the others are equally far apart.
    bernoulli
        Draw losses as 0 or 1 with those means.
    """

    name = "switching"

    def __init__(
        self,
        arms: int,
        rounds: int,
        gap: float = 0.8,
        changes: int = 1,
        first: float = 0.5,
        bernoulli: bool = False,
    ) -> None:
        arms = checks.arms(arms)
        changes = checks.whole("changes", changes, 1)
        rounds = checks.whole("rounds", rounds, changes + 1, checks.MAX_ROUNDS)
        checks.within("first", first, 0.0, 1.0)
        opening = min(max(round(first * rounds), 1), rounds - changes)
        edges = np.linspace(opening, rounds, changes + 1).round().astype(np.int64)
        lengths = np.concatenate(([opening], np.diff(edges)))
        means = [one_better(arms, segment % arms, gap) for segment in range(changes + 1)]
        super().__init__(means, lengths, bernoulli=bernoulli)


class ConstrainedAdversary(Segments):
    """The stochastically constrained adversary: gaps stay, levels swing, ever more slowly.

    Phases of length about ``1.6 ** n`` alternate between means near 0 and means near 1; the best
    arm is better by ``gap`` throughout. Losses are Bernoulli draws (Zimmert and Seldin 2021).

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        Difference between the best arm and the others, above 0 and at most 1.
    """

    name = "constrained"

    def __init__(self, arms: int, rounds: int, gap: float = 0.125) -> None:
        arms, rounds = checks.arms(arms), checks.rounds(rounds)
        _check_gap(gap)
        lengths: list[int] = []
        while sum(lengths) < rounds:
            lengths.append(min(int(np.ceil(1.6 ** len(lengths))), rounds - sum(lengths)))
        low = np.where(np.arange(arms) == 0, 0.0, gap)
        means = [low if phase % 2 == 0 else low + 1.0 - gap for phase in range(len(lengths))]
        super().__init__(means, lengths, bernoulli=True)


class Barrier(Segments):
    """The paper's instance for the limits of private bandits: losses 1/2 and 1, two arms.

    Parameters
    ----------
    rounds
        Number of rounds T.
    shift
        If given, the second arm's loss falls to 0 from this round on: the shifted instance, on
        which a private algorithm that stopped trying the second arm notices too late.
    """

    name = "barrier"

    def __init__(self, rounds: int, shift: int | None = None) -> None:
        rounds = checks.rounds(rounds)
        if shift is None:
            super().__init__([[0.5, 1.0]], [rounds])
            return
        if not 1 <= checks.whole("shift", shift, 1) < rounds:
            raise InputError(f"shift must be from 1 to rounds - 1 = {rounds - 1}; got {shift!r}.")
        super().__init__([[0.5, 1.0], [0.5, 0.0]], [shift, rounds - shift])


class LeakageInstance(Segments):
    """The paper's two neighbouring sequences on which EXP3 without noise gives itself away.

    All losses are 1, except that the second arm's first loss is 0 unless ``neighbour`` is set.

    Parameters
    ----------
    rounds
        Number of rounds T, at least 2.
    neighbour
        Take the neighbouring sequence.
    """

    name = "leakage"

    def __init__(self, rounds: int, neighbour: bool = False) -> None:
        rounds = checks.whole("rounds", rounds, 2, checks.MAX_ROUNDS)
        super().__init__([[1.0, 1.0 if neighbour else 0.0], [1.0, 1.0]], [1, rounds - 1])


def _check_gap(gap: float) -> None:
    if checks.within("gap", gap, 0.0, 1.0) == 0.0:
        raise InputError("gap must be above 0 and at most 1; got 0.")


def one_better(arms: int, best: int, gap: float) -> list[float]:
    """Return mean losses with one arm better than the others."""
    _check_gap(gap)
    if not 0 <= checks.whole("best", best, 0) < arms:
        raise InputError(f"best must be the index of an arm, 0 to {arms - 1}; got {best!r}.")
    return [0.5 - gap / 2 if arm == best else 0.5 + gap / 2 for arm in range(arms)]
