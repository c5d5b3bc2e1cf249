"""What the promise of a release rests on: the numbers of its law, and the proof from them.

A mechanism is a frozen dataclass whose fields are entries of a certificate. From these numbers
alone it proves the promise again (``check``) and gives its privacy loss distribution (``loss``).
It lives in the file of its release, which lists it in ``mechanisms``.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, Self

from bandanna._core.types import JSON, Guarantee, InputError, Model
from bandanna.privacy.statements import batches_in_words, protected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SECOND_DELTA, TOLERANCE = 1e-9, 1e-3
"""Where dp-accounting's numerical epsilon is compared with a pure claim, and how far it may be off,
relatively."""


class Finding(NamedTuple):
    """One thing that was checked in a certificate."""

    entry: str
    holds: bool
    why: str


class BinnedLaw(NamedTuple):
    """The law of what a release publishes: edges between bins, and each bin's chance."""

    edges: NDArray[np.float64]
    chances: NDArray[np.float64]


class PrivacyLoss(Protocol):
    """The part of dp-accounting's privacy loss distributions that is used here."""

    def self_compose(self, num_times: int) -> PrivacyLoss:
        """Return the distribution of several independent runs."""

    def compose(self, other: PrivacyLoss) -> PrivacyLoss:
        """Return the distribution of two independent runs."""

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the smallest epsilon at a delta."""

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        """Return the smallest delta at an epsilon."""


class Numerics(NamedTuple):
    """How finely dp-accounting computes, and on which side it errs."""

    step: float
    pessimistic: bool = True

    @classmethod
    def fit_for(cls, epsilon: float, *, pessimistic: bool = True) -> Numerics:
        """Return a step that is small against an epsilon."""
        return cls(min(1e-4, epsilon / 2000), pessimistic)


@dataclass(frozen=True)
class Mechanism(ABC):
    """A law of noise by its numbers; ``batch`` rounds are released together."""

    batch: int
    units: int
    """The most that one loss moves what is released, before noise."""

    name: ClassVar[str]
    sampler: ClassVar[str]
    sampled_by: ClassVar[tuple[str, str]] = ("opendp", "0.14.2")
    """What draws the noise, and its first version that draws it right."""
    on_device: ClassVar[bool] = False
    """Whether people's own devices draw it, so that it also holds against the operator."""
    hides_presence: ClassVar[bool] = False
    """Whether it also hides who is in the data at all."""
    reasons: ClassVar[tuple[str, ...]]
    """The argument for the promise; where there are several, for other ways to set the numbers."""

    @property
    def model(self) -> Model:
        """Central, or local if every loss is released by itself."""
        return "local" if self.batch == 1 else "central"

    @property
    def sizes(self) -> str:
        """Say how many rounds are released together."""
        return batches_in_words(self.batch)

    def protected(self, algorithm: str, experts: int | None) -> str:
        """Return what the mechanism protects where persons are not known."""
        return protected(algorithm, experts, on_device=self.on_device)

    def assumptions(self) -> tuple[str, ...]:
        """Return what it assumes besides what every policy assumes."""
        return ()

    @property
    def alone(self) -> bool:
        """Whether no two rounds are ever released together, so that several compose."""
        return self.batch == 1

    @property
    def per_person(self) -> int | None:
        """Slots of a person that its own numbers cover; None if it protects rounds."""
        return None

    @property
    def bought(self) -> bool:
        """Whether the range of losses was bought with a part of its epsilon."""
        return False

    @property
    def grid(self) -> float:
        """How much epsilon integers may cost beyond the law that ``loss`` accounts for."""
        return 0.0

    @abstractmethod
    def check(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Prove the promise from the numbers, or say which entry is wrong."""

    @abstractmethod
    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of a person behind several rounds."""

    def promise(
        self, epsilon: float, words: str, protects: str | None = None, delta: float = 0.0
    ) -> Guarantee:
        """Return the guarantee of an epsilon, and a delta, that are proved."""
        return Guarantee(
            epsilon=epsilon,
            delta=delta,
            protects=protects or self.protected("", None),
            model=self.model,
            mechanism=words,
            because=self.reasons[0],
            assumptions=self.assumptions(),
            facts=self.facts(),
            unit="round" if self.per_person is None else "person",
        )

    @classmethod
    def sampler_version(cls) -> str:
        """Return the version of what draws the noise."""
        return f"opendp {metadata.version('opendp')}"

    @classmethod
    def good_sampler(cls, version: object) -> bool:
        """Whether a certificate's sampler is one that is known to draw right."""
        name, oldest = cls.sampled_by
        named = re.fullmatch(
            rf"{name} ([0-9]{{1,6}}(?:\.[0-9]{{1,6}}){{1,3}})[a-z0-9.+]*", str(version)
        )
        return named is not None and _ordered(named[1]) >= _ordered(oldest)

    def facts(self) -> JSON:
        """Return the entries of a certificate."""
        numbers = {key: getattr(self, key) for key in self.entries()}
        return {"mechanism": self.name, **numbers, "sampler": self.sampler}

    @classmethod
    def entries(cls) -> tuple[str, ...]:
        """Return the names of the numbers."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def read(cls, facts: JSON) -> Self:
        """Make the mechanism from what ``facts`` gave."""
        return cls(**{key: facts[key] for key in cls.entries()})

    @classmethod
    def impossible(cls, facts: JSON) -> Iterator[Finding]:
        """Whole numbers must be whole, and no number missing, negative, endless or a text.

        Entries of other types are looked at by their mechanisms.
        """
        for field in fields(cls):
            value = facts.get(field.name)
            if field.type in ("float", float) and not is_positive(value):
                yield Finding(field.name, False, "must be a finite number above 0, in range")
            if field.type in ("int", int) and (type(value) is not int or value < 1):
                yield Finding(field.name, False, "must be a whole number, at least 1")


class PureMechanism(Mechanism):
    """A mechanism whose delta is 0 and whose epsilon is proved in exact fractions."""

    @abstractmethod
    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove the promise in exact arithmetic."""

    def check(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Prove the promise, and ask dp-accounting, which shares no code with us."""
        yield Finding("delta", delta == 0, f"{self.name} is pure: delta is 0")
        exact = list(self.prove(epsilon))
        yield from exact
        # What exact arithmetic refutes needs no second opinion: too little noise takes a minute.
        if all(finding.holds for finding in exact):
            loss = self.loss(epsilon, 1, Numerics.fit_for(epsilon))
            numeric = float(loss.get_epsilon_for_delta(SECOND_DELTA)) + self.grid
            why = f"dp-accounting finds {numeric:.6g} at delta {SECOND_DELTA:g}"
            yield Finding("epsilon", numeric <= epsilon * (1 + TOLERANCE), why)


@lru_cache(maxsize=512)
def least_scale(moved: int, epsilon: float) -> float:
    """Return the smallest float scale for which ``moved / scale <= epsilon`` for certain."""
    scale = moved / epsilon
    while moved > Fraction(epsilon) * Fraction(scale):
        scale = math.nextafter(scale, math.inf)
    return scale


def prove_scale(moved: int, epsilon: float, scale: float) -> Iterator[Finding]:
    """Prove that noise of a scale hides what is moved, and that it is the scale of epsilon."""
    holds = moved <= Fraction(epsilon) * Fraction(scale)
    yield Finding("epsilon", holds, "units / scale <= epsilon, in exact fractions")
    if holds and scale != least_scale(moved, epsilon):
        yield Finding("scale", False, "is not the scale of this epsilon")


def on_the_grid(units: int, grid: int) -> Finding:
    """Check what one loss can move: that is fixed by the grid of losses."""
    return Finding("units", units == grid, f"one loss moves a sum by at most {grid}")


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def is_positive(value: object) -> bool:
    """Whether a value from a document is a finite number above 0."""
    return type(value) in (int, float) and 0 < float_of(value) < math.inf


def is_range(value: object) -> bool:
    """Whether a value from a document is two numbers, the smaller one first."""
    from bandanna._core.grid import check_range  # it loads NumPy, which plans do without

    if not isinstance(value, list) or not all(type(end) in (int, float) for end in value):
        return False
    try:
        check_range(tuple(value))
    except InputError:
        return False
    return True


def float_of(value: object) -> float:
    """Return a number from a document as a float; infinity where it does not fit."""
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return math.inf


def worst_loss(
    epsilon: float, delta: float = 0.0, rounds: int = 1, step: float | None = None
) -> PrivacyLoss:
    """Return dp-accounting's loss of randomised response: nothing with this promise loses more.

    Its losses are multiples of epsilon, so that a step of epsilon is exact.
    """
    from dp_accounting.pld import common  # loaded when first used
    from dp_accounting.pld import privacy_loss_distribution as pld

    worst = common.DifferentialPrivacyParameters(epsilon, delta)
    single: PrivacyLoss = pld.from_privacy_parameters(
        worst, value_discretization_interval=step or epsilon
    )
    return single if rounds == 1 else single.self_compose(rounds)


@lru_cache(maxsize=16)
def continuous_laplace_loss(scale: float, numerics: Numerics) -> PrivacyLoss:
    """Return dp-accounting's privacy loss distribution of Laplace noise, sensitivity 1."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # loaded when first used

    loss: PrivacyLoss = pld.from_laplace_mechanism(
        scale,
        sensitivity=1,
        pessimistic_estimate=numerics.pessimistic,
        value_discretization_interval=numerics.step,
    )
    return loss


@lru_cache(maxsize=16)  # one takes a tenth of a second, and a certificate asks several times
def gaussian_loss(sigma: float, numerics: Numerics | None = None) -> PrivacyLoss:
    """Return dp-accounting's privacy loss distribution of Gaussian noise, sensitivity 1."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # loaded when first used

    step, pessimistic = numerics or Numerics(min(1e-4, 1.0 / (2000.0 * sigma)))
    loss: PrivacyLoss = pld.from_gaussian_mechanism(
        sigma,
        sensitivity=1,
        pessimistic_estimate=pessimistic,
        value_discretization_interval=step,
    )
    return loss
