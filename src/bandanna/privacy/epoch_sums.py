"""What an epoch adds up, and how it leaves: integer sums, published once with noise.

A person with encoded features ``phi``, arm ``a`` and outcome ``y`` adds ``phi y`` to the sums of
arm ``a``, and ``phi phi'`` to its products. ``privacy/epochs.py`` says how far one person can move
them, and what the noise promises.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.checks import MAX_SLOTS
from bandanna._core.compiled import kernel, once, step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, discrete_laplace, normal
from bandanna._core.types import JSON, Guarantee, InputError, no_guarantee
from bandanna.privacy.calibration import gaussian_multiplier
from bandanna.privacy.epochs import (
    EPOCH_MECHANISMS,
    GRID,
    MAX_FEATURES,
    MOST_ROUNDS,
    PRODUCT_UNITS,
    PROTECTS,
    SUM_UNITS,
    Deviations,
    EpochMechanism,
    Protects,
    gaussian_deviations,
    laplace_deviations,
)
from bandanna.privacy.noise import with_noise
from bandanna.privacy.release import Metrics, Release, ReleasedEpoch, Seeded, Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EXACT_UNITS = 2**24
"""Units of products where contexts are public: they are not released with noise."""

_SAFE = GRID * (1.0 - 2.0**-40)
HALF = UNITS // 2


# --- counting ---------------------------------------------------------------------------------


class Statistics(NamedTuple):
    """What an epoch releases, in grid units: products by arm and pair, sums by arm and feature."""

    products: Integers
    """Pairs ``i <= j`` in order of rows. Exact, and in other units, where contexts are public."""
    sums: Integers


class Counts(NamedTuple):
    """What an epoch adds up, in grid units, and the map that people's features go through."""

    transform: Floats
    """Shape (features, features)."""
    products: Integers
    """Shape (arms, pairs of features)."""
    sums: Integers
    """Shape (arms, features)."""
    rounds: Integers
    """Feedback counted, by arm."""
    mapped: Floats
    """Room to compute in, and so is the next."""
    whole: Integers


def new_counts(transform: Floats, arms: int) -> Counts:
    """Return the sums of an epoch before the first feedback."""
    size = transform.shape[0]
    pairs = size * (size + 1) // 2
    return Counts(
        np.ascontiguousarray(transform),
        np.zeros((arms, pairs), dtype=np.int64),
        np.zeros((arms, size), dtype=np.int64),
        np.zeros(arms, dtype=np.int64),
        np.zeros(size),
        np.zeros(size, dtype=np.int64),
    )


@step
def count(phi: Floats, arm: int, loss: int, both: bool, counts: Counts) -> None:
    """Add a person's features and outcome to the sums of the arm they had.

    The outcome is a reward, centred: ``1/2 - loss``. Features are mapped, shortened to length 1
    and rounded towards 0 to the grid.
    """
    size = phi.size
    mapped, whole = counts.mapped, counts.whole
    square = 0.0
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += counts.transform[i, j] * phi[j]
        mapped[i] = total
        square += total * total
    # Contexts public: the sum of phi y is shortened. Protected: phi is, in products and sums.
    shorten = 1.0 if square <= 1.0 else 1.0 / math.sqrt(square)
    norm = np.int64(0)
    for i in range(size):
        whole[i] = np.int64(mapped[i] * shorten * _SAFE)
        norm += whole[i] * whole[i]
    while norm > GRID * GRID:  # cannot happen but by rounding; the promise rests on it
        norm = np.int64(0)
        for i in range(size):
            whole[i] -= np.sign(whole[i])
            norm += whole[i] * whole[i]
    outcome = np.int64(HALF - min(max(loss, 0), UNITS))
    k = 0
    if both:
        outcome = np.int64(np.rint(outcome * shorten))
        for i in range(size):
            for j in range(i, size):
                counts.products[arm, k] += whole[i] * whole[j]
                k += 1
    else:
        for i in range(size):
            for j in range(i, size):
                product = shorten * mapped[i] * mapped[j]
                counts.products[arm, k] += np.int64(np.rint(product * EXACT_UNITS))
                k += 1
    for i in range(size):
        counts.sums[arm, i] += whole[i] * outcome
    counts.rounds[arm] += 1


count_once = once(count)


class EpochTally(Tally):
    """The sums of an epoch's feedback."""

    def __init__(self, release: OfEpochs, counts: Counts) -> None:
        self._release = release
        self._counts: Counts | None = counts

    def counted(self) -> Counts:
        """Return the sums so far: private."""
        assert self._counts is not None, "this epoch has been published"
        return self._counts

    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        """Add what a person's features and outcome are worth to the sums of their arm."""
        assert ticket is not None, "an epoch's sums need the encoded context"
        count_once(ticket.advice, ticket.arm, units, self._release.both, self.counted())

    def publish(self) -> ReleasedEpoch:
        """Publish the sums, once; where contexts are protected, not which arms people had."""
        counts, self._counts = self._counts, None
        assert counts is not None, "this epoch has been published"
        rounds = counts.rounds.copy()
        if self._release.both:  # which arms people had depends on their contexts
            rounds[0], rounds[1:] = rounds.sum(), 0
        try:
            released = self._release.release(Statistics(counts.products, counts.sums))
        finally:
            counts.products[:], counts.sums[:], counts.rounds[:] = 0, 0, 0
        return ReleasedEpoch(released.products, released.sums, counts.transform, rounds)

    def to_dict(self) -> JSON:
        """Return the map and the sums."""
        return {name: getattr(self.counted(), name).tolist() for name in (*SUMS, "transform")}

    def opened_with(self) -> JSON:
        """Return the map; the sums follow from rounds and their tickets."""
        return {"transform": self.counted().transform.tolist()}


SUMS = ("products", "sums", "rounds")


# --- releases ---------------------------------------------------------------------------------


class OfEpochs(Release):
    """What publishes the statistics of epochs."""

    name = "epochs"
    in_epochs = True
    batch = 1
    arms: int
    features: int

    @property
    @abstractmethod
    def both(self) -> bool:
        """Whether contexts are protected too."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Standard deviation of the noise of sums."""

    @property
    @abstractmethod
    def product_scale(self) -> float:
        """Standard deviation of the noise of squares."""

    @abstractmethod
    def release(self, exact: Statistics) -> Statistics:
        """Publish the statistics of an epoch."""

    def start(self, size: int | None = None, transform: Floats | None = None) -> EpochTally:
        """Open an epoch with a map; by default features stay as they are."""
        mapped = np.eye(self.features) if transform is None else transform
        return EpochTally(self, new_counts(mapped, self.arms))

    def resume(self, saved: JSON, losses: list[int], size: int) -> EpochTally:
        """Go on with the map and sums of an epoch; without sums, before its first feedback."""
        tally = self.start(size, _floats(saved["transform"], (self.features, self.features)))
        for name in SUMS if len(saved) > 1 else ():
            array = getattr(tally.counted(), name)
            array[:] = _whole(saved[name], array.shape)
        return tally

    def seeded(self, stream: Stream) -> OfEpochs:
        """Refuse: there is nothing to repeat."""
        raise TypeError("this release is for comparison alone")

    def to_dict(self) -> JSON:
        """Refuse, unless it can be made again."""
        raise TypeError("this release is for simulation and cannot be saved")


def read_released(saved: JSON, arms: int, features: int) -> ReleasedEpoch:
    """Return what ``ReleasedEpoch.to_dict`` wrote down, checked."""
    pairs = features * (features + 1) // 2
    return ReleasedEpoch(
        _whole(saved["products"], (arms, pairs)),
        _whole(saved["sums"], (arms, features)),
        _floats(saved["transform"], (features, features)),
        _whole(saved["rounds"], (arms,)),
    )


def _floats(values: object, shape: tuple[int, ...]) -> Floats:
    made = np.array(values, dtype=np.float64)
    if made.shape != shape or not np.isfinite(made).all():
        raise ValueError("its numbers are impossible")
    return made


def _whole(values: object, shape: tuple[int, ...]) -> Integers:
    made = np.array(values)
    if made.dtype.kind != "i" or made.shape != shape:
        raise ValueError("its sums are impossible")
    return made.astype(np.int64)


@dataclass(frozen=True)
class EpochRelease(OfEpochs):
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

    name: ClassVar[str] = "epochs"
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
            choices = " or ".join(map(repr, PROTECTS))
            raise InputError(f"protects must be {choices}; got {self.protects!r}.")
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
        kind = EPOCH_MECHANISMS[self.gaussian, self.both, self.by_person]
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
        noise = self.deviations

        def noisy(numbers: Integers, scale: float) -> Integers:
            added = with_noise(numbers.ravel().tolist(), scale, gaussian=self.gaussian)
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
        words = (
            f"discrete {law} noise on {what} of {self.features} features and {self.arms} arms, "
            f"once an epoch, of deviation {self.scale:.4g}"
        )
        return mechanism.promise(self.epsilon, words, delta=self.delta)

    def seeded(self, stream: Stream) -> SeededEpochs:
        """Return the same release with repeatable noise, which protects nobody."""
        return SeededEpochs(self, stream)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name} | {one.name: getattr(self, one.name) for one in fields(self)}


class SeededEpochs(Seeded[EpochRelease], OfEpochs):
    """The same law from a seeded stream, for simulation; it protects nobody."""

    both, scale, product_scale = False, 0.0, 0.0

    def __init__(self, release: EpochRelease, stream: Stream) -> None:
        super().__init__(release, stream)
        self.arms, self.features = release.arms, release.features
        self.both, self.scale = release.both, release.scale
        self.product_scale = release.product_scale

    def release(self, exact: Statistics) -> Statistics:
        """Publish an epoch's statistics, with repeatable noise."""
        deviations, gaussian = self._release.deviations, self._release.gaussian
        sums, products = exact.sums.copy(), exact.products.copy()
        _add_noise(self.stream, sums, np.full(sums.shape[1], deviations.sums), gaussian)
        if self.both:
            square = square_pairs(self._release.features)
            scales = np.where(square, deviations.squares, deviations.products)
            _add_noise(self.stream, products, scales, gaussian)
        return Statistics(products, sums)


class NoRelease(OfEpochs):
    """Sums as they are: no privacy, for comparison."""

    both, scale, product_scale = False, 0.0, 0.0

    def __init__(self, arms: int, features: int) -> None:
        self.arms, self.features = arms, features

    def release(self, exact: Statistics) -> Statistics:
        """Return the statistics as they are."""
        return Statistics(exact.products.copy(), exact.sums.copy())

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee("no noise", "epsilon is infinite: for comparison alone")


def square_pairs(features: int) -> NDArray[np.bool_]:
    """Return which pairs ``i <= j``, in order of rows, are squares."""
    rows, columns = np.triu_indices(features)
    squares: NDArray[np.bool_] = rows == columns
    return squares


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
