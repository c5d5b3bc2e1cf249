"""What an algorithm is: how it is tuned for a problem, and what it guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from bandanna._core.types import JSON, InputError, Model
from bandanna.problem import Problem
from bandanna.theory.named import named_learner
from bandanna.theory.tuning import TooFewRoundsError, Tuning, learner, release


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected regret."""

    source: str
    terms: dict[str, float]
    """What it adds up, by formula."""
    batch: int = 1
    settings: dict[str, float] = field(default_factory=dict)
    """What to run the algorithm with, where the bound chooses it."""

    @property
    def regret(self) -> float:
        """The whole bound."""
        return math.fsum(self.terms.values())


@dataclass(frozen=True)
class Algorithm:
    """One row of the catalogue.

    Attributes
    ----------
    name, line, source
        What people call it, one line about it, and whose it is.
    bound
        Its guarantee for a problem and, unless it is ``as_published``, for a batch, where None
        asks for the best. None where nothing is proved; ``InputError`` where it does not apply.
    tune
        What it runs with, for the same. Left out, its bound's settings.
    release, learner
        Their names; a learner is tuned by its name when another release or batch is put in.
    as_published
        Whether bound and tuning are for a batch of its own only.
    private, local
        Whether it promises anything, and whether it always releases every loss by itself.
    grows
        Whether it decides itself how long each batch is, from what was released before.
    unproved
        Where there is no bound, why.
    advised, needs_rounds, needs_delta
        Whether experts advise; whether the horizon must be known; whether delta must be above 0.
    late
        Whether its bound and tuning cover late feedback, the problem's ``delay``.
    delta
        What it spends of the problem's delta.
    over
        The bandit algorithm that it runs with an expert for every arm.
    """

    name: str
    line: str
    source: Literal["ours", "the paper", "prior work", "no privacy"]
    bound: Callable[..., Bound] | None = None
    tune: Callable[..., Tuning] | None = None
    release: str = "laplace"
    learner: str = "exp3"
    as_published: bool = False
    private: bool = True
    local: bool = False
    advised: bool = False
    grows: bool = False
    unproved: str = "none is proved."
    needs_rounds: bool = True
    needs_delta: bool = False
    late: bool = False
    delta: Callable[[Problem], float] = lambda problem: 0.0
    over: Algorithm | None = None

    @property
    def needs(self) -> str:
        """What must be given beside arms and epsilon, in words."""
        given = {"rounds": self.needs_rounds, "experts": self.advised, "delta": self.needs_delta}
        return ", ".join(name for name, needed in given.items() if needed)

    @property
    def replaceable(self) -> bool:
        """Whether learner, release and batch can be replaced: the paper's Algorithm 1 takes any."""
        return self.private and not self.grows and (not self.advised or self.over is not None)

    def model(self, batch: int | None) -> Model:
        """Return who sees feedback, as the release of such a batch promises it.

        In batches of one every loss is released by itself, unless it is spread over experts.
        """
        if not self.private:
            return "none"
        if self.grows:
            return "central"
        return "local" if self.local or (batch == 1 and self.release != "vector") else "central"

    def bounded(self, problem: Problem, batch: int | None = None) -> Bound:
        """Return its guarantee, or raise ``InputError`` with the reason why there is none."""
        if self.over is not None:
            found = self.over.bounded(problem.over_experts(), batch)
            terms = {term.replace("K", "N"): value for term, value in found.terms.items()}
            return replace(found, terms=terms, source=f"{found.source}, over experts")
        if self.bound is None:
            raise InputError(self.unproved)
        if problem.delay and not self.late:
            raise InputError("none is proved for late feedback.")
        found = self.bound(problem) if self.as_published else self.bound(problem, batch)
        if batch not in (None, found.batch):
            raise InputError(f"no bound is known for it in batches of {batch}.")
        return found

    def tuned(self, problem: Problem, batch: int | None = None) -> Tuning:
        """Return its parts; ``InputError`` where the problem is too small, with what is enough."""
        if self.needs_rounds:
            kind = "-conversion" if self.advised else ""
            problem.horizon(self.name, f"one-bit{kind}, adaptive{kind} or htinf{kind}")
        if self.over is not None:
            return self.over.tuned(problem.over_experts(), batch)
        if not self.late:
            problem = problem.but(delay=0)
        try:
            return self._tuned(problem, batch)
        except TooFewRoundsError as error:
            enough = self._enough(problem, batch)
            raise InputError(f"{error} {enough} rounds are enough.") from None

    def _tuned(self, problem: Problem, batch: int | None) -> Tuning:
        if self.as_published and batch is not None:
            through = release(self.release, problem, batch)
            return Tuning(named_learner(self.learner, problem, through), through)
        if self.tune is not None:
            return self.tune(problem) if self.as_published else self.tune(problem, batch)
        found = self.bounded(problem, batch)
        settings: JSON = {**found.settings}
        settings.pop("noise", None)
        if self.advised:
            settings["experts"] = problem.experts
        parts = learner(self.learner, problem.arms, **settings)
        return Tuning(parts, release(self.release, problem, found.batch))

    def _enough(self, problem: Problem, batch: int | None) -> int:
        """Return a number of rounds that is enough, though perhaps not the smallest."""

        def works(rounds: int) -> bool:
            try:
                self._tuned(problem.but(rounds=rounds), batch)
            except TooFewRoundsError:
                return False
            return True

        low = high = problem.rounds or 1
        while not works(high):
            low, high = high, 2 * high
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if works(middle) else (middle, high)
        return high


def conversion(algorithm: Algorithm) -> Algorithm:
    """Return the same algorithm with every expert an arm (the paper's Algorithm 6 over 1)."""
    name = f"{algorithm.name.removesuffix('-tight')}-conversion"
    return replace(
        algorithm,
        name=f"{name}-tight" if algorithm.name.endswith("-tight") else name,
        line=f"{algorithm.name} with every expert an arm",
        advised=True,
        over=algorithm,
    )
