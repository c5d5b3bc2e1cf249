"""The release of contextual policies: noisy sums of features and outcomes, once an epoch.

A person with encoded features ``phi`` (length at most 1), arm ``a`` and outcome ``y`` (from -1/2
to 1/2) adds ``phi y`` to the sums of arm ``a``. If contexts are protected too, they also add the
products ``phi phi'``. Every number is an integer on a grid, and the noise is discrete and drawn
exactly. A person is in one epoch, and every epoch is released once.

How far one person can move what is released (``docs/theory/context.md`` has the proofs):

- feedback protected, contexts public: the outcome changes, features and arm do not. The sums of
  one arm move by at most 1 in Euclidean length.
- contexts and feedback protected: everything about the person changes, the arm as well. Products
  (each unordered pair counted twice) and sums move by at most ``9 sqrt(2) / 8``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

from bandanna._core.checks import MAX_SLOTS
from bandanna._core.grid import UNITS
from bandanna.privacy.calibrated import CalibratedMechanism, GaussianNoise, LaplaceNoise
from bandanna.privacy.calibration import GAUSSIAN_FLOOR
from bandanna.privacy.mechanism import (
    Finding,
    Numerics,
    PrivacyLoss,
    continuous_laplace_loss,
)
from bandanna.privacy.statements import PUBLIC_CONTEXTS, PUBLIC_FEATURES

Protects = Literal["feedback", "context and feedback"]
PROTECTS: tuple[Protects, ...] = ("feedback", "context and feedback")

GRID = 2**14
"""Grid units in a feature vector of length 1."""

SUM_UNITS = GRID * UNITS
"""Grid units in ``phi y`` for length 1 and a change of the outcome by 1."""

PRODUCT_UNITS = GRID * GRID
"""Grid units in a product of features of length 1."""

MAX_FEATURES = 256
"""Most encoded features. Products of more would take more noise than they are worth."""

MOST_ROUNDS = 2**28
"""More rounds in an epoch could overflow 64-bit sums."""

BOTH_MOVE = 9.0 * math.sqrt(2.0) / 8.0
"""How far one person moves products and sums together, in Euclidean length."""

PROTECTED_FEEDBACK = (
    "the feedback of any one round, against everyone who sees all contexts, decisions and releases"
)
PROTECTED_BOTH = (
    "the context and the feedback of any one round, against all other people together, who see "
    "every release and their own decisions; the round's own decision depends on its context and "
    "is seen by its person alone (joint differential privacy)"
)
OWN_DECISION = (
    "each decision, its arm included, is shown to its own person only, and is not logged where "
    "others see it"
)
DISJOINT = (
    "each round is in one epoch, each epoch is released once, and the rest is post-processing"
)
SLOTS_GAUSSIAN = (
    "a person is counted once in an epoch and in no more epochs than stated, for which Gaussian "
    "mechanisms compose (Dong, Roth and Su 2022, Corollary 2)"
)
SLOTS_LAPLACE = (
    "a person is counted once in an epoch and in no more epochs than stated, which add up (Lemma "
    "'Basic Composition')"
)
BILLBOARD = (
    f"{DISJOINT}: everyone's decision depends on the releases and on their own context alone "
    f"(billboard lemma)"
)


class Deviations(NamedTuple):
    """Scale of the noise in grid units: of sums, of squares, and of products of two features."""

    sums: float
    squares: float
    products: float


def person_entries(arms: int, features: int, *, both: bool) -> int:
    """Return how many numbers an epoch releases."""
    pairs = features * (features + 1) // 2 if both else 0
    return arms * (features + pairs)


def gaussian_deviations(
    multiplier: float, epsilon: float, arms: int, features: int, slots: int, *, both: bool
) -> Deviations:
    """Return the deviations of Gaussian noise; ``multiplier`` is for a move of length 1."""
    count = slots * person_entries(arms, features, both=both)
    least = math.sqrt(GAUSSIAN_FLOOR * count / min(1.0, epsilon))
    each = multiplier * math.sqrt(slots) * (BOTH_MOVE if both else 1.0)
    return Deviations(
        max(each * SUM_UNITS, least),
        max(each * PRODUCT_UNITS, least),
        max(each * PRODUCT_UNITS / math.sqrt(2.0), least),
    )


def laplace_move(features: int, *, both: bool) -> Fraction:
    """Return the total that one person can move, sums and products in units of 1.

    Entries of a vector of length 1 add up to at most ``sqrt(d)``, rounded up to a fraction here.
    Products of pairs, each counted once, add up to at most ``(d + 1) / 2``. A person who is
    replaced moves both arms' numbers.
    """
    root = Fraction(math.isqrt(features * 2**40) + 1, 2**20)
    return (features + 1) + root if both else root


def laplace_deviations(epsilon: float, features: int, slots: int, *, both: bool) -> Deviations:
    """Return the scales of Laplace noise, rounded up."""
    each = float(laplace_move(features, both=both) * slots / Fraction(epsilon)) * (1.0 + 1e-12)
    return Deviations(each * SUM_UNITS, each * PRODUCT_UNITS, each * PRODUCT_UNITS)


@dataclass(frozen=True)
class EpochMechanism(CalibratedMechanism):
    """Noise on the sums of every arm and feature."""

    arms: int
    features: int
    """Numbers that a context is encoded in, the constant included."""
    slots: int
    """Epochs that one person may be in."""
    multiplier: float
    """Noise for a move of length 1, or of total 1, in one epoch."""
    sums: float
    """Scale of the noise of sums, in grid units."""
    squares: float
    products: float
    """Scales of the noise of products; where contexts are public there are none released."""

    both: ClassVar[bool]
    by_person: ClassVar[bool] = False

    @property
    def per_person(self) -> int | None:
        """Slots of a person, if it protects persons."""
        return self.slots if self.by_person else None

    @property
    def alone(self) -> bool:
        """Later epochs hold several rounds, however short the first is."""
        return False

    def protected(self, algorithm: str, experts: int | None) -> str:
        """Return what is protected."""
        return protected(self.per_person, both=self.both)

    def assumptions(self) -> tuple[str, ...]:
        """Return what is assumed besides what every policy assumes."""
        return assumed(both=self.both)

    @abstractmethod
    def needed(self, epsilon: float) -> Deviations:
        """Return the scales that the multiplier asks for."""

    @property
    def possible(self) -> dict[str, bool]:
        """Whether a release can have its numbers, by entry."""
        return {
            "units": self.units == GRID,
            "features": self.features <= MAX_FEATURES,
            "slots": self.slots <= (MAX_SLOTS if self.by_person else 1),
        }

    def check_scales(self, epsilon: float) -> Iterator[Finding]:
        """Check that there is noise enough on every number."""
        for entry, scale in self.needed(epsilon)._asdict().items():
            same = getattr(self, entry) == scale
            yield Finding(entry, same, f"one person's move asks for noise of scale {scale:.6g}")


class EpochGaussian(GaussianNoise, EpochMechanism):
    """Gaussian noise, contexts public."""

    name: ClassVar[str] = "epoch-gaussian"
    both: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = (
        "one outcome moves the sums of an epoch by at most length 1, and the exact curve of the "
        f"Gaussian mechanism has this (epsilon, delta); {DISJOINT}",
    )

    def needed(self, epsilon: float) -> Deviations:
        """Return the deviations that the multiplier asks for."""
        size = self.arms, self.features, self.slots
        return gaussian_deviations(self.multiplier, epsilon, *size, both=self.both)


class EpochLaplace(LaplaceNoise, EpochMechanism):
    """Laplace noise, contexts public."""

    name: ClassVar[str] = "epoch-laplace"
    covered: ClassVar[str] = "a total move of 1"
    both: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = (
        "what one person moves in an epoch adds up to at most epsilon scales of the noise; "
        f"{DISJOINT}",
    )

    def needed(self, epsilon: float) -> Deviations:
        """Return the scales that one person's move asks for."""
        return laplace_deviations(epsilon, self.features, self.slots, both=self.both)

    def one_loss(self, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one number that moves as far as all may."""
        return continuous_laplace_loss(self.multiplier, numerics)


class MomentsGaussian(EpochGaussian):
    """Gaussian noise, contexts protected too."""

    name: ClassVar[str] = "epoch-moments-gaussian"
    both: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (
        "one person, replaced with arm and all, moves the products and sums of an epoch by at most "
        "length 9 sqrt(2)/8, and the exact curve of the Gaussian mechanism has this (epsilon, "
        f"delta); {BILLBOARD}",
    )


class MomentsLaplace(EpochLaplace):
    """Laplace noise, contexts protected too."""

    name: ClassVar[str] = "epoch-moments-laplace"
    both: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (
        "what one person, replaced with arm and all, moves in an epoch adds up to at most epsilon "
        f"scales of the noise; {BILLBOARD}",
    )


def for_persons(kind: type[EpochMechanism]) -> type[EpochMechanism]:
    """Return the same mechanism for everything that a person says."""
    how = SLOTS_GAUSSIAN if issubclass(kind, EpochGaussian) else SLOTS_LAPLACE
    reasons = (f"{kind.reasons[0]}; {how}",)
    made = {"name": f"{kind.name}-person", "by_person": True, "reasons": reasons}
    return type(f"Person{kind.__name__}", (kind,), made)


EPOCH_MECHANISMS = {
    (issubclass(kind, EpochGaussian), kind.both, kind.by_person): kind
    for of_rounds in (EpochGaussian, EpochLaplace, MomentsGaussian, MomentsLaplace)
    for kind in (of_rounds, for_persons(of_rounds))
}
"""By whether noise is Gaussian, contexts are protected too, and persons are."""


def protected(slots: int | None, *, both: bool) -> str:
    """Return what is protected: a round, or all of a person with so many slots."""
    if slots is None:
        return PROTECTED_BOTH if both else PROTECTED_FEEDBACK
    where = "one epoch, ever" if slots == 1 else f"up to {slots} epochs, once in each"
    used = f"({where}; what they say beyond is not used)"
    hidden = "that they came, and how often, is not hidden"
    if both:
        return (
            f"all contexts and feedback of one person {used}, against all other people together, "
            f"who see every release and their own decisions; the person's own decisions depend on "
            f"their contexts and are seen by them alone (joint differential privacy); {hidden}"
        )
    return (
        f"all feedback of one person {used}, against everyone who sees all contexts, decisions and "
        f"releases; {hidden}"
    )


def assumed(*, both: bool) -> tuple[str, ...]:
    """Return what a contextual policy assumes besides what every policy assumes."""
    return (OWN_DECISION if both else PUBLIC_CONTEXTS, PUBLIC_FEATURES)
