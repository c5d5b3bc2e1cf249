"""A bandit problem as a value: what planner, recipes, bounds and studies pass around."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from bandanna._core import checks
from bandanna._core.types import JSON, InputError


@dataclass(frozen=True)
class Problem:
    """How many arms and rounds, how private, and whether experts advise; checked once.

    Parameters
    ----------
    arms
        K, at least 2.
    rounds
        T; None while the horizon is unknown.
    epsilon
        The privacy parameter; infinite where no privacy is wanted.
    experts
        N; None without expert advice.
    delta
        What may be spent; algorithms that need none use none.
    delay
        How late feedback may come, in rounds: of a decision, before so many further ones have been
        made. 0 is feedback in order.
    changes, memory
        How often the best arm may change, and how many rounds to remember, for the algorithms
        that track; None leaves it to them.

    Examples
    --------
    >>> Problem(arms=4, rounds=1e5, epsilon=0.5)
    Problem(arms=4, rounds=100000, epsilon=0.5, experts=None, delta=0.0, delay=0)
    """

    arms: int
    rounds: int | None
    epsilon: float
    experts: int | None = None
    delta: float = 0.0
    delay: int = 0
    changes: int | None = field(default=None, repr=False)
    memory: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        rounds, experts = self.rounds, self.experts
        checks.settle(
            self,
            arms=checks.arms(self.arms),
            rounds=None if rounds is None else checks.rounds(rounds),
            epsilon=math.inf if self.epsilon == math.inf else checks.epsilon(self.epsilon),
            experts=None if experts is None else checks.whole("experts", experts, at_least=1),
            delta=checks.delta(self.delta),
            delay=checks.whole("delay", self.delay, 0, checks.MAX_ROUNDS),
            changes=None if self.changes is None else checks.whole("changes", self.changes, 1),
            memory=None if self.memory is None else checks.whole("memory", self.memory, 1),
        )

    @property
    def size(self) -> tuple[int, int, float]:
        """K, T and epsilon, for formulas; needs the rounds."""
        return self.arms, self.horizon("a bound"), self.epsilon

    @property
    def advised(self) -> bool:
        """Whether experts advise."""
        return self.experts is not None

    @property
    def advisers(self) -> int:
        """The number of experts, for formulas about several of them."""
        return checks.whole("experts", self.experts, at_least=2)

    def horizon(self, name: str, instead: str = "one-bit or htinf") -> int:
        """Require the number of rounds for something, and say what does without."""
        if self.rounds is None:
            raise InputError(
                f"{name} needs to know how many rounds it will run: pass rounds=. "
                f"Without a horizon use {instead}."
            )
        return self.rounds

    def but(self, **changes: float | None) -> Problem:
        """Return the same problem with other values, checked."""
        everything: JSON = {**vars(self), **changes}
        return Problem(**everything)

    def over_experts(self) -> Problem:
        """Return the bandit problem in which every expert is an arm."""
        return replace(self, arms=self.advisers, experts=None, delta=0.0)

    @property
    def assumed_of_feedback(self) -> str:
        """How late feedback may be for bounds to hold, in one sentence."""
        if self.delay:
            return f"Bounds hold for feedback that is at most {self.delay:,} rounds late."
        return "Bounds hold for feedback in order; a delay says how late it may be."

    def to_dict(self) -> JSON:
        """Return the six numbers, and those about changes where they are given."""
        about_changes = ("changes", "memory")
        known = vars(self).items()
        return {name: value for name, value in known if not (name in about_changes and not value)}

    def __str__(self) -> str:
        rounds = "" if self.rounds is None else f"{self.rounds:,} rounds, "
        experts = f", {self.experts:,} experts" if self.advised else ""
        late = f", feedback up to {self.delay:,} rounds late" if self.delay else ""
        return f"{rounds}{self.arms:,} arms{experts}, epsilon {self.epsilon:.4g}{late}"
