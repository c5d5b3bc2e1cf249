"""Types that every package uses: decisions, guarantees and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

from bandanna._core.html import table

ArmName = str | int
Model = Literal["central", "local", "none"]
Unit = Literal["round", "person", "value"]
MOST_GROUPED = 10**12
"""Rounds, persons or values in a group."""
SMALLEST_DELTA = 1e-250
"""Below this, floating point cannot follow a privacy curve."""
WEAK_EPSILON = 3.0
"""Above this an even guess about a person can become more than 95% sure."""
UNITS = 2**20
"""Grid units in a loss of 1. Rounding moves a loss by less than one part in two million."""

JSON = dict[str, Any]
"""A document: what JSON calls an object. The reader checks what it finds."""


class BandannaError(Exception):
    """Anything Bandanna refuses to do; the message says what was wrong and what would work."""


class InputError(BandannaError, ValueError):
    """A value that cannot be used. Nothing was changed."""


class DecisionError(BandannaError):
    """Feedback that does not belong to a waiting decision. Nothing was changed."""

    reason: str = "unknown"
    """``different``, ``given up`` or ``forgotten`` where the decision had its feedback."""


class InaccurateWarning(UserWarning):
    """A private answer that noise may have moved far; the message says how far."""


class StateFileError(BandannaError):
    """A saved policy that cannot be read or written."""


def without_frames(error: BaseException) -> BaseException:
    """Return an error without the frames it came through.

    Their variables hold feedback, and an error reporter may report variables too.
    """
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


class Decision(NamedTuple):
    """One choice, and all that is needed to credit its feedback later.

    A plain tuple: keep it, send it, store it (``decision._asdict()``) and hand it back to
    ``observe`` when the feedback arrives, in any order. It holds nothing private.

    Examples
    --------
    >>> import bandanna as bd
    >>> decision = bd.PrivateBandit(arms=["red", "blue"], epsilon=1.0, seed=0).decide()
    >>> bd.Decision(**decision._asdict()) == decision
    True
    """

    arm: ArmName
    """The arm to play, by its name."""
    index: int  # type: ignore[assignment]  # tuples have a method of that name; not needed here
    """Position of the arm in the list of arms."""
    round: int
    """Which decision of its policy this is, from 0."""
    batch: int
    """Rounds of one batch share an arm and are released together."""
    position: int
    """Position in the batch, from 0."""
    policy: str
    """Identity of the policy that decided."""
    chance: float | None = None
    """With which probability this arm was chosen, for off-policy estimates; None where that is not
    known. Rounds of one batch share a draw. FTPL's is an estimate, by resampling."""


@dataclass(frozen=True)
class Guarantee:
    """A differential privacy promise, in full: how much, for whom, and why.

    Attributes
    ----------
    epsilon, delta
        The parameters that hold for one ``unit``. An infinite epsilon means no promise.
    protects
        The neighbouring relation: what may change without the output changing much.
    model
        ``central`` when feedback is collected before noise is added to a batch, ``local`` when
        every single value is released by itself, ``none`` when there is no promise.
    mechanism
        The release the promise rests on, with its numbers.
    because
        The argument, in one sentence, with its source.
    assumptions
        What must be true outside this software.
    facts
        The mechanism's numbers, from which exactly this epsilon and delta can be computed again.
        Empty for a guarantee that was derived from another one.
    curve
        The smallest epsilon for each delta, where one is known.
    group
        An epsilon for a number of units and a delta, however they fall into batches.
    unit
        What one step of the neighbouring relation changes: the feedback of one round, everything
        of one person, or one value behind a range.

    Examples
    --------
    >>> import bandanna as bd
    >>> promise = bd.PrivateBandit(2, epsilon=0.5, rounds=1000).guarantee
    >>> promise.epsilon, promise.model, round(promise.guess, 3)
    (0.5, 'central', 0.622)
    >>> promise.for_group(3).epsilon
    1.5
    """

    epsilon: float
    delta: float
    protects: str
    model: Model
    mechanism: str
    because: str
    assumptions: tuple[str, ...] = ()
    facts: JSON = field(default_factory=dict, repr=False, hash=False)
    curve: Callable[[float], float] | None = field(default=None, repr=False, compare=False)
    group: Callable[[int, float], float] | None = field(default=None, repr=False, compare=False)
    unit: Unit = field(default="round", repr=False, compare=False)
    restated: Callable[[int, float], str] | None = field(default=None, repr=False, compare=False)
    """An assumption that has epsilon in it: what it says of so many units, and an epsilon."""
    size: int = field(default=1, repr=False, compare=False)
    """Units that it is about."""

    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""
        return math.isfinite(self.epsilon) and self.delta < 1.0

    def at_epsilon(self, epsilon: float, size: int = 1) -> Guarantee:
        """Return it with another epsilon, for so many times the units: in its assumptions too."""
        size *= self.size
        changed = replace(self, epsilon=epsilon, size=size)
        if self.restated is None:
            return changed
        before, now = self.restated(self.size, self.epsilon), self.restated(size, epsilon)
        said = tuple(now if one == before else one for one in self.assumptions)
        return replace(changed, assumptions=said)

    def assuming(self, *assumptions: str) -> Guarantee:
        """The same guarantee with further assumptions spelled out."""
        return replace(self, assumptions=self.assumptions + assumptions)

    def for_group(self, size: int, *, delta: float | None = None) -> Guarantee:
        """Return what holds for someone behind several rounds, or for several people together.

        Without ``delta`` by the lemma "Group Privacy". With one, by the mechanism's own
        composition in the worst split of the rounds over batches, where that is known.

        Examples
        --------
        >>> import bandanna as bd
        >>> bd.PrivateBandit(arms=2, epsilon=0.5).guarantee.for_group(3).epsilon
        1.5
        >>> local = bd.PrivateBandit(arms=2, epsilon=0.1, batch=1).guarantee
        >>> round(local.for_group(100, delta=1e-6).epsilon, 3)
        4.775
        """
        whole = isinstance(size, Integral) and not isinstance(size, bool)
        if not whole or not 1 <= size <= MOST_GROUPED:
            got = "more" if whole and size > 1 else repr(size)
            raise InputError(f"a group has a whole number of {self.unit}s, 1 to 10**12; got {got}.")
        size = int(size)
        if size == 1 and delta is None:
            return self
        together = replace(
            self.at_epsilon(times_up(size, self.epsilon), size),
            delta=group_delta(self.epsilon, self.delta, size),
            protects=f"any {size} {self.unit}s together; of each, {self.protects}",
            because=f"{self.because}; {size} {self.unit}s by group privacy",
            facts={},
            curve=None,
            group=None,
        )
        if delta is None:
            return together
        if together.delta >= 1.0:
            raise InputError(f"for {size} {self.unit}s together nothing is promised: delta is 1.")
        delta = _checked_delta(delta, together.delta)
        if self.group is None or delta < SMALLEST_DELTA:
            return replace(together, delta=delta)
        return replace(
            together.at_epsilon(min(together.epsilon, self.group(size, delta))),
            delta=delta,
            because=f"{self.because}; {size} {self.unit}s by composition in the worst split over "
            f"batches",
        )

    def repeated(self, times: int) -> Guarantee:
        """Return what holds if the same losses may have been released several times."""
        return replace(
            self.at_epsilon(times_up(times, self.epsilon)),
            delta=min(1.0, times_up(times, self.delta)),
            because=f"{self.because}; its file was resumed {times} times, and what was open in it "
            f"may have been released as often (Lemma 'Basic Composition')",
            facts={},
            curve=None,
            group=None,
        )

    def at_delta(self, delta: float) -> Guarantee:
        """Return the same promise with a smaller epsilon and the given delta.

        Examples
        --------
        >>> import bandanna as bd
        >>> promise = bd.PrivateBandit(arms=2, epsilon=0.5, batch=4).guarantee
        >>> round(promise.at_delta(0.01).epsilon, 3)
        0.472
        """
        delta = _checked_delta(delta, self.delta)
        if delta == self.delta:
            return self
        if self.curve is None or delta < SMALLEST_DELTA:
            return replace(self, delta=delta, facts={})
        return replace(
            self.at_epsilon(min(self.epsilon, self.curve(delta))),
            delta=delta,
            because=f"{self.because}; at this delta by the mechanism's exact privacy curve",
            facts={},
        )

    @property
    def guess(self) -> float:
        """How often a guess between two equally likely values can be right, at most.

        ``(e^epsilon + delta) / (1 + e^epsilon)``, for an observer who sees everything that is
        published and knows everything else. Without any information it is 0.5.

        Examples
        --------
        >>> import bandanna as bd
        >>> round(bd.PrivateBandit(arms=2, epsilon=0.5).guarantee.guess, 3)
        0.622
        """
        return 1.0 - (1.0 - self.delta) / (1.0 + math.exp(min(self.epsilon, 700.0)))

    def _repr_html_(self) -> str:
        headline, *rest = str(self).splitlines()
        rows = [[part.strip() for part in line.split(":", 1)] for line in rest]
        return table(headline, [], rows)

    def __str__(self) -> str:
        promise = (
            f"epsilon = {plain(self.epsilon)}, delta = {plain(self.delta)} ({self.model})"
            if self.private
            else "no privacy: delta is 1"
            if math.isfinite(self.epsilon)
            else "no privacy: epsilon is infinite"
        )
        lines = [promise]
        if self.private and self.epsilon > WEAK_EPSILON:
            lines.append(f"weak:      {weakness(self)}")
        lines += [f"protects:  {self.protects}", f"mechanism: {self.mechanism}"]
        lines.append(f"because:   {self.because}")
        lines.extend(f"assumes:   {assumption}" for assumption in self.assumptions)
        return "\n".join(lines)


def plain(number: float) -> str:
    """Write a number in full, without a needless fraction."""
    return repr(float(number)).removesuffix(".0")


def at_most(number: float) -> str:
    """Write a number in four digits that is not below it.

    Examples
    --------
    >>> at_most(0.73451), at_most(0.1 * 3), at_least(1 / 3), at_least(2.0)
    ('0.7346', '0.3', '0.3333', '2')
    """
    return _four_digits(number * (1.0 - 1e-12), ROUND_CEILING)


def at_least(number: float) -> str:
    """Write a number in four digits that is not above it."""
    return _four_digits(number * (1.0 + 1e-12), ROUND_FLOOR)


def _four_digits(number: float, rounding: str) -> str:
    return f"{float(Context(prec=4, rounding=rounding).create_decimal(Decimal(number))):g}"


def weakness(promise: Guarantee) -> str:
    """Return what a large epsilon means, in odds."""
    return (
        f"someone who thinks two values equally likely can guess right up to "
        f"{percent_up(promise.guess)} of the time; an epsilon of 1 or less is commonly advised"
    )


def percent_up(share: float) -> str:
    """Write a share in percent, rounded up to as many nines as it takes to stay below 100%.

    Examples
    --------
    >>> percent_up(0.6225), percent_up(0.99995460)
    ('62.3%', '99.996%')
    """
    for digits in range(1, 13):
        scale = 10**digits
        percent = math.ceil(share * 100 * scale) / scale
        if percent < 100.0:
            return f"{percent:.{digits}f}%"
    return "100%"


def times_up(times: int, number: float) -> float:
    """Return a product that is not below the exact one."""
    product = times * number
    if math.isfinite(product) and Fraction(product) < times * Fraction(number):
        return math.nextafter(product, math.inf)
    return product


def _checked_delta(delta: object, least: float) -> float:
    if not isinstance(delta, Real) or not delta < 1 or delta < least:
        raise InputError(f"delta must be from {least:g} to below 1; got {delta!r}.")
    return float(delta)


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """Return the delta of a group: it grows by ``1 + e^eps + ... + e^((size - 1) eps)``."""
    if delta == 0.0:
        return 0.0
    if size * epsilon > 700.0:
        return 1.0
    if size > 10**5:  # the same sum, rounded up: one term after the other would take too long
        terms = math.expm1(size * epsilon) / math.expm1(epsilon) if epsilon else size
        return min(1.0, delta * terms * (1.0 + 1e-12))
    return min(1.0, delta * math.fsum(math.exp(k * epsilon) for k in range(size)))


def no_guarantee(mechanism: str, because: str) -> Guarantee:
    """Spell out the absence of a promise."""
    return Guarantee(math.inf, 0.0, "nothing", "none", mechanism, because)
