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
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.checks import MAX_SLOTS
from bandanna._core.compiled import kernel
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, discrete_laplace, normal
from bandanna._core.types import SMALLEST_DELTA, Guarantee, InputError, Model, no_guarantee
from bandanna.privacy.calibration import (
    GAUSSIAN_FLOOR,
    SLACK,
    SMALLEST_COMPOSED,
    gaussian_delta,
    gaussian_multiplier,
)
from bandanna.privacy.mechanism import (
    Finding,
    Mechanism,
    Numerics,
    PrivacyLoss,
    continuous_laplace_loss,
    gaussian_loss,
)
from bandanna.privacy.noise import gaussian_vector, laplace_vector, within_reach
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
class EpochMechanism(Mechanism):
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
    def model(self) -> Model:
        """Sums are kept until an epoch is released."""
        return "central"

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
    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that the multiplier suits epsilon and delta."""

    @abstractmethod
    def needed(self, epsilon: float) -> Deviations:
        """Return the scales that the multiplier asks for."""

    def check(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough on every number."""
        possible = {
            "units": self.units == GRID,
            "features": self.features <= MAX_FEATURES,
            "slots": self.slots <= (MAX_SLOTS if self.by_person else 1),
            "multiplier": 1e-3 <= self.multiplier <= 1e15,
            "delta": delta == 0 or SMALLEST_DELTA <= delta < 1,
        }
        wrong = [entry for entry, good in possible.items() if not good]
        if wrong:
            yield Finding(wrong[0], False, "no release has such a number")
            return
        yield from self.prove(epsilon, delta)
        for entry, scale in self.needed(epsilon)._asdict().items():
            same = getattr(self, entry) == scale
            yield Finding(entry, same, f"one person's move asks for noise of scale {scale:.6g}")


class EpochGaussian(EpochMechanism):
    """Gaussian noise, contexts public."""

    name: ClassVar[str] = "epoch-gaussian"
    sampler: ClassVar[str] = "OpenDP discrete Gaussian, i64"
    both: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = (
        "one outcome moves the sums of an epoch by at most length 1, and the exact curve of the "
        f"Gaussian mechanism has this (epsilon, delta); {DISJOINT}",
    )

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, by the exact curve and by dp-accounting."""
        found = gaussian_delta(epsilon * (1.0 - SLACK), self.multiplier)
        enough = found <= delta * (1.0 - SLACK)  # noise on integers needs the rest
        yield Finding("epsilon", enough, f"the Gaussian mechanism's exact delta is {found:.6g}")
        if enough and delta >= SMALLEST_COMPOSED:
            numeric = gaussian_loss(self.multiplier).get_delta_for_epsilon(epsilon)
            agrees = bool(numeric <= delta * (1.0 + 1e-3))
            yield Finding("epsilon", agrees, f"dp-accounting finds delta {numeric:.6g}")
        if enough:
            most = gaussian_multiplier(epsilon, delta) * (1.0 + 1e-9)
            if self.multiplier > most:
                yield Finding("multiplier", False, "is not the noise of this epsilon and delta")

    def needed(self, epsilon: float) -> Deviations:
        """Return the deviations that the multiplier asks for."""
        size = self.arms, self.features, self.slots
        return gaussian_deviations(self.multiplier, epsilon, *size, both=self.both)

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of so many rounds, in different epochs."""
        single = gaussian_loss(self.multiplier, numerics)
        return single if rounds == 1 else single.self_compose(rounds)


class EpochLaplace(EpochMechanism):
    """Laplace noise, contexts public."""

    name: ClassVar[str] = "epoch-laplace"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"
    both: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = (
        "what one person moves in an epoch adds up to at most epsilon scales of the noise; "
        f"{DISJOINT}",
    )

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, in exact fractions."""
        enough = Fraction(self.multiplier) * Fraction(epsilon) >= 1 - Fraction(1, 2**50)
        yield Finding("multiplier", enough, "scale times epsilon covers a total move of 1")
        if enough and self.multiplier != 1.0 / epsilon:
            yield Finding("multiplier", False, "is not the noise of this epsilon")
        yield Finding("delta", delta == 0, "pure noise needs no delta")

    def needed(self, epsilon: float) -> Deviations:
        """Return the scales that one person's move asks for."""
        return laplace_deviations(epsilon, self.features, self.slots, both=self.both)

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one number that moves as far as all may."""
        single = continuous_laplace_loss(self.multiplier, numerics)
        return single if rounds == 1 else single.self_compose(rounds)


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


class PersonGaussian(EpochGaussian):
    """Gaussian noise, contexts public, for everything a person says."""

    name: ClassVar[str] = "epoch-gaussian-person"
    by_person: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (f"{EpochGaussian.reasons[0]}; {SLOTS_GAUSSIAN}",)


class PersonLaplace(EpochLaplace):
    """Laplace noise, contexts public, for everything a person says."""

    name: ClassVar[str] = "epoch-laplace-person"
    by_person: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (f"{EpochLaplace.reasons[0]}; {SLOTS_LAPLACE}",)


class PersonMomentsGaussian(MomentsGaussian):
    """Gaussian noise, contexts protected too, for everything of a person."""

    name: ClassVar[str] = "epoch-moments-gaussian-person"
    by_person: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (f"{MomentsGaussian.reasons[0]}; {SLOTS_GAUSSIAN}",)


class PersonMomentsLaplace(MomentsLaplace):
    """Laplace noise, contexts protected too, for everything of a person."""

    name: ClassVar[str] = "epoch-moments-laplace-person"
    by_person: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (f"{MomentsLaplace.reasons[0]}; {SLOTS_LAPLACE}",)


EPOCH_MECHANISMS: tuple[type[EpochMechanism], ...] = (
    *(EpochGaussian, EpochLaplace, MomentsGaussian, MomentsLaplace),
    *(PersonGaussian, PersonLaplace, PersonMomentsGaussian, PersonMomentsLaplace),
)


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


class Statistics(NamedTuple):
    """What an epoch releases, in grid units: products by arm and pair, sums by arm and feature."""

    products: NDArray[np.int64]
    """Pairs ``i <= j`` in order of rows. Exact, and in other units, where contexts are public."""
    sums: NDArray[np.int64]


@dataclass(frozen=True)
class EpochRelease:
    """Publish the statistics of an epoch, with noise.

    Parameters
    ----------
    protects
        ``"feedback"``, or ``"context and feedback"``.
    epsilon, delta
        The privacy parameters, for one round or for all slots of a person. Without a delta the
        noise is Laplace noise.
    arms, features
        How many arms, and how many numbers encode a context.
    slots
        Epochs that one person may be in.
    shortest
        Rounds in the shortest epoch.
    by_person
        Whether each person is known and kept to their slots: then persons are protected.

    Examples
    --------
    >>> release = EpochRelease("feedback", 1.0, 1e-6, arms=3, features=4)
    >>> release.guarantee().epsilon, round(release.scale, 2)
    (1.0, 4.22)
    """

    protects: Protects
    epsilon: float
    delta: float
    arms: int
    features: int
    slots: int = 1
    shortest: int = 1
    by_person: bool = False

    def __post_init__(self) -> None:
        if self.protects not in PROTECTS:
            known = " or ".join(map(repr, PROTECTS))
            raise InputError(f"protects must be {known}; got {self.protects!r}.")
        checks.set_fields(
            self,
            epsilon=checks.epsilon(self.epsilon),
            delta=checks.delta(self.delta),
            arms=checks.arms(self.arms),
            features=checks.whole("features", self.features, 1, MAX_FEATURES),
            slots=checks.whole("slots", self.slots, 1, MAX_SLOTS),
            shortest=checks.whole("shortest", self.shortest, 1, MOST_ROUNDS),
        )
        if self.slots > 1 and not self.by_person:
            raise InputError("slots are of persons; without by_person there is one.")
        if self.deviations.sums > 2.0**58:
            raise InputError(
                f"noise for epsilon {self.epsilon:g} would not fit 64-bit integers; use a larger "
                f"epsilon or a delta."
            )

    @property
    def both(self) -> bool:
        """Whether contexts are protected too."""
        return self.protects == "context and feedback"

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.delta > 0.0

    @property
    def mechanism(self) -> EpochMechanism:
        """What the promise rests on."""
        (kind,) = (
            kind
            for kind in EPOCH_MECHANISMS
            if (kind.both, kind.by_person) == (self.both, self.by_person)
            and issubclass(kind, EpochGaussian) == self.gaussian
        )
        multiplier = (
            gaussian_multiplier(self.epsilon, self.delta) if self.gaussian else 1.0 / self.epsilon
        )
        size = self.shortest, GRID, self.arms, self.features, self.slots
        return kind(*size, multiplier, *self.deviations)

    @property
    def deviations(self) -> Deviations:
        """Scales of the noise in grid units."""
        if not self.gaussian:
            return laplace_deviations(self.epsilon, self.features, self.slots, both=self.both)
        multiplier = gaussian_multiplier(self.epsilon, self.delta)
        size = self.arms, self.features, self.slots
        return gaussian_deviations(multiplier, self.epsilon, *size, both=self.both)

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of sums, for features of length 1 and outcomes to 1."""
        return self._deviation(self.deviations.sums / SUM_UNITS)

    @property
    def product_scale(self) -> float:
        """Standard deviation of the noise of squares; 0 where contexts are public."""
        return self._deviation(self.deviations.squares / PRODUCT_UNITS) if self.both else 0.0

    def _deviation(self, scale: float) -> float:
        return scale if self.gaussian else math.sqrt(2.0) * scale

    def release(self, exact: Statistics) -> Statistics:
        """Publish an epoch's statistics, with noise from the operating system. Call it once."""
        draw = gaussian_vector if self.gaussian else laplace_vector
        noise = self.deviations

        def noisy(numbers: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
            flat = numbers.ravel().tolist()
            extra = draw(scale, len(flat))
            added = [within_reach(a + b) for a, b in zip(flat, extra, strict=True)]
            return np.array(added, dtype=np.int64).reshape(numbers.shape)

        sums = noisy(exact.sums, noise.sums)
        if not self.both:
            return Statistics(exact.products.copy(), sums)
        products = np.empty_like(exact.products)
        square = square_pairs(self.features)
        products[:, square] = noisy(exact.products[:, square], noise.squares)
        products[:, ~square] = noisy(exact.products[:, ~square], noise.products)
        return Statistics(products, sums)

    def guarantee(self) -> Guarantee:
        """Return the promise and its reason."""
        law = "Gaussian" if self.gaussian else "Laplace"
        what = "sums of outcomes" + (" and products of features" if self.both else "")
        mechanism = self.mechanism
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            protects=mechanism.protected("", None),
            model="central",
            mechanism=f"discrete {law} noise on {what} of {self.features} features and "
            f"{self.arms} arms, once an epoch, of deviation {self.scale:.4g}",
            because=mechanism.reasons[0],
            assumptions=mechanism.assumptions(),
            facts=mechanism.facts(),
            unit="person" if self.by_person else "round",
        )


class SeededRelease:
    """The same law from a seeded stream, for simulation; it protects nobody."""

    def __init__(self, release: EpochRelease, stream: Stream) -> None:
        self._release = release
        self._stream = stream
        self.both, self.scale = release.both, release.scale
        self.product_scale = release.product_scale

    def release(self, exact: Statistics) -> Statistics:
        """Publish an epoch's statistics, with repeatable noise."""
        deviations, gaussian = self._release.deviations, self._release.gaussian
        sums, products = exact.sums.copy(), exact.products.copy()
        _add_noise(self._stream, sums, np.full(sums.shape[1], deviations.sums), gaussian)
        if self.both:
            square = square_pairs(self._release.features)
            scales = np.where(square, deviations.squares, deviations.products)
            _add_noise(self._stream, products, scales, gaussian)
        return Statistics(products, sums)

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee(
            "epoch release with seeded noise",
            "anyone who knows the seed can subtract the noise; for tests and simulation alone",
        )


class NoRelease:
    """Sums as they are: no privacy, for comparison."""

    scale = 0.0
    product_scale = 0.0
    both = False

    def release(self, exact: Statistics) -> Statistics:
        """Return the statistics as they are."""
        return Statistics(exact.products.copy(), exact.sums.copy())

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee("no noise", "epsilon is infinite: for comparison alone")


class Releasing(Protocol):
    """What publishes the statistics of epochs."""

    @property
    def both(self) -> bool:
        """Whether contexts are protected too."""

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of sums."""

    @property
    def product_scale(self) -> float:
        """Standard deviation of the noise of squares."""

    def release(self, exact: Statistics) -> Statistics:
        """Publish the statistics of an epoch."""

    def guarantee(self) -> Guarantee:
        """Return what is promised."""


def square_pairs(features: int) -> NDArray[np.bool_]:
    """Return which pairs ``i <= j``, in order of rows, are squares."""
    rows, columns = np.triu_indices(features)
    found: NDArray[np.bool_] = rows == columns
    return found


@kernel
def _add_noise(
    stream: Stream, numbers: NDArray[np.int64], scales: NDArray[np.float64], gaussian: bool
) -> None:
    for a in range(numbers.shape[0]):
        for i in range(numbers.shape[1]):
            if gaussian:
                numbers[a, i] += np.int64(np.rint(normal(stream) * scales[i]))
            else:
                numbers[a, i] += np.int64(discrete_laplace(stream, scales[i]))
