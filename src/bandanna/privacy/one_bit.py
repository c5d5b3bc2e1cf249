"""The one-bit release: a batch leaves as a single random bit.

Let a batch hold ``batch`` losses, each an integer from 0 to M = ``UNITS``, with sum S. With
integers a, b > 0 and ``D = 2 a + b * batch * M`` the released bit is 1 with probability
``(a + b S) / D``.

Privacy. One loss moves S by at most M, so it moves ``a + b S`` and its complement
``D - a - b S = a + b (batch * M - S)`` by at most ``b M``. Neither is ever below ``a``. The ratio
of the probability of either bit under two neighbouring batches is therefore at most
``(a + b M) / a``, and the release is epsilon-private exactly when that is at most
``exp(epsilon)``. The integers are chosen so that this holds, and it is checked with fractions,
not floats. Batches are disjoint and later ones depend on earlier ones only through released bits,
so the whole run has the same epsilon (the paper's Lemma "Privacy guarantee"), for every
epsilon > 0 and also against adversaries that adapt to the arms played.

Use. The bit's mean is ``(1 - s)/2 + s x`` for a batch of mean loss x, with
``s = b * batch * M / D``: an affine function, so any learner for losses in [0, 1] can be fed the
bit, at ``1/s`` times its regret.

On devices. ``DeviceRelease`` takes bits that people's own devices drew, each in a batch of one:
randomised response, by the same integers, checked by the device before it uses them
(``bandanna.device`` and ``clients/device``). The release happened there; here the bit is handed on
as it came, once. So the operator, who sees everything here, is among those whom the guarantee
holds against. A bit that never comes is replaced by one that is drawn here from the default loss,
by the same law. It says nothing about anybody, and its mean is that of a device whose person gave
no feedback.
"""

from __future__ import annotations

import math
import platform
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, uniform
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.inference import Law, Totals, law_of
from bandanna.privacy.composition import one_bit_group
from bandanna.privacy.exact_arithmetic import integers_satisfy, log_of, one_bit_integers
from bandanna.privacy.mechanism import (
    BinnedLaw,
    Finding,
    Numerics,
    PrivacyLoss,
    PureMechanism,
    on_the_grid,
    worst_loss,
)
from bandanna.privacy.release import ArmTotals, Metrics, Tally, publish
from bandanna.privacy.statements import DRAWN_ON_DEVICE, POST_PROCESSING
from bandanna.privacy.sums import PureRelease
from bandanna.version import __version__


@dataclass(frozen=True)
class OneBitMechanism(PureMechanism):
    """A bit that is 1 with probability ``(a + b S) / denominator``, S the batch's sum."""

    a: int
    b: int
    denominator: int

    name: ClassVar[str] = "one-bit"
    sampler: ClassVar[str] = "secrets.randbelow"
    reasons: ClassVar[tuple[str, ...]] = (
        f"(a + b M)/a <= exp(epsilon) with M = {UNITS}, the most one loss adds to S, "
        f"checked in exact arithmetic; {POST_PROCESSING}",
    )

    sampled_by: ClassVar[tuple[str, str]] = ("python", "3.11")

    @classmethod
    def sampler_version(cls) -> str:
        """Return the version of Python, whose ``secrets`` it is."""
        return f"python {platform.python_version()}"

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove the promise in exact arithmetic."""
        yield on_the_grid(self.units, UNITS)
        fits = self.denominator == 2 * self.a + self.b * self.batch * self.units
        yield Finding("denominator", fits, "equals 2 a + b * batch * units")
        holds = integers_satisfy(self.a, self.b, epsilon, self.units)
        yield Finding("epsilon", holds, "(a + b * units) / a <= exp(epsilon), in exact fractions")
        if holds and (self.a, self.b) != one_bit_integers(epsilon, UNITS):
            yield Finding("a", False, "a and b are not the integers of this epsilon")

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution.

        Over several rounds that of randomised response, the worst mechanism with this epsilon: our
        own worst pair is lopsided, and a person could turn it one way in one batch and the other
        way in the next.
        """
        if rounds > 1:
            return worst_loss(epsilon, rounds=rounds, step=numerics.step)
        from dp_accounting.pld import privacy_loss_distribution as pld  # loaded when first used

        high, low = Fraction(self.a + self.b * self.units), Fraction(self.a)
        one, other = (
            {1: log_of(sum_ / self.denominator), 0: log_of(1 - sum_ / self.denominator)}
            for sum_ in (high, low)
        )
        single: PrivacyLoss = pld.from_two_probability_mass_functions(
            one,
            other,
            symmetric=False,
            pessimistic_estimate=numerics.pessimistic,
            value_discretization_interval=numerics.step,
        )
        return single


@dataclass(frozen=True)
class OneBitRelease(PureRelease):
    """Publish a batch as one random bit, by integers and the operating system's randomness.

    Parameters
    ----------
    epsilon
        The privacy parameter, from 1e-9 to 100.
    batch
        Rounds in a batch, at least 1. With 1 it is randomised response, and locally private.

    Examples
    --------
    >>> release = OneBitRelease(epsilon=0.5, batch=4)
    >>> release.release(total=0) in (0.0, 1.0)
    True
    >>> release.guarantee().epsilon
    0.5
    """

    name: ClassVar[str] = "one-bit"
    mechanisms: ClassVar = (OneBitMechanism,)
    adds_up: ClassVar[bool] = False
    _words: ClassVar[tuple[str, str, str]] = ("of batches", "batch's sum", "")
    """Where it happens, to what, and who sees what."""
    a: int = field(init=False, repr=False)
    b: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        a, b = one_bit_integers(self.epsilon, UNITS)
        checks.set_fields(self, a=a, b=b)

    @property
    def denominator(self) -> int:
        """The integer D that the bit is drawn below."""
        return 2 * self.a + self.b * self.batch * UNITS

    @property
    def slope(self) -> float:
        """How strongly the bit's mean follows the mean loss: s in the module's notes."""
        return float(Fraction(self.b * self.batch * UNITS, self.denominator))

    def start(self, size: int | None = None) -> Tally:
        """Open a batch; the integers are for one size."""
        if size not in (None, self.batch):
            raise InputError(f"one-bit releases batches of {self.batch}; got {size!r}.")
        return super().start(size)

    def release(self, total: int, size: int | None = None) -> float:
        """Publish a batch's sum as a bit."""
        bit = secrets.randbelow(self.denominator) < self.a + self.b * self.clamped(total, size)
        return 1.0 if bit else 0.0

    def guarantee(self) -> Guarantee:
        """Return the exact promise."""
        (kind,) = self.mechanisms
        law = kind(self.batch, UNITS, self.a, self.b, self.denominator)
        numbers = f"a = {self.a}, b = {self.b}, D = {self.denominator}"
        where, what, seen = self._words
        words = (
            f"one-bit release {where} of {self.batch}: a 1 with probability (a + b S)/D, "
            f"{numbers}, S the {what} in units of 1/{UNITS}{seen}"
        )
        return self.promise(words, law, self._epsilon_at, self._group_at)

    def _epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon at a delta.

        Between sums S and S + M the bit 1 has chances (a + b S)/D and (a + b (S + M))/D. Their
        hockey-stick divergence at any epsilon falls as S grows, so S = 0 is the worst:
        ``delta = (a + b M - exp(epsilon) a) / D``; the bit 0 is its mirror image.
        """
        left = self.a + self.b * UNITS - Fraction(delta) * self.denominator
        if left <= self.a:
            return 0.0
        # The quotient and its logarithm are each off by at most two units in the last place.
        return min(self.epsilon, math.log1p(float(left / self.a - 1)) * (1.0 + 2.0**-50))

    def _group_at(self, size: int, delta: float) -> float:
        """Return an epsilon for several rounds at a delta, in the worst split over batches."""
        if size == 1:
            return self._epsilon_at(delta)
        return one_bit_group(self.epsilon, size, self.batch, delta)

    def law(self) -> Law:
        """Return that of bits, which have no noise but their own chance."""
        return law_of()

    def totals(self, seen: ArmTotals) -> Totals:
        """Return how many bits were 1, of how many, and how their mean depends on the mean loss.

        Slots that are missing from a batch count 1/2 (``policy/closing.py``): the mean of the
        bits then follows the mean loss less strongly. Default losses move it by what they differ
        from 1/2. For batches of different sizes the mean slope and offset are taken, which
        ``docs/theory/answers.md`` allows.
        """
        bits = seen.batches
        ones = (seen.total - 0.5 * seen.rounds) / self.batch + 0.5 * bits
        counted = seen.rounds / (bits * self.batch)
        slope = self.slope * counted
        moved = self.slope * seen.offset / (bits * self.batch)
        return Totals(ones, bits, 0.0, 0.5 * (1.0 - slope) + moved, slope)

    def guess(self, published: NDArray[np.float64]) -> NDArray[np.int64]:
        """Guess a canary where a bit is 1: among zeros, that is where it tells most."""
        return np.where(published[:, 0] > 0, 1, -1)

    def bins(self, total: int) -> BinnedLaw:
        """Return the exact law of what is published."""
        one = float(Fraction(self.a + self.b * total, self.denominator))
        return BinnedLaw(np.array([0.5]), np.array([1.0 - one, one]))

    def mean_loss(self, published: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean loss that shares of ones tell of."""
        bit = self.fast()
        return (published - bit.base) / (bit.slope * self.batch * UNITS)

    def fast(self) -> FastBit:
        """Return the numbers for the compiled form."""
        return FastBit(
            base=float(Fraction(self.a, self.denominator)),
            slope=float(Fraction(self.b, self.denominator)),
        )


class FastBit(NamedTuple):
    """Numbers for the compiled form."""

    base: float
    """Probability of a 1 when the sum is 0."""
    slope: float
    """What each grid unit adds to it."""


@step
def _publish(release: FastBit, total: int, size: int, stream: Stream) -> float:
    return 1.0 if uniform(stream) < release.base + release.slope * total else 0.0


publish.register(FastBit, _publish)


@dataclass(frozen=True)
class DeviceMechanism(OneBitMechanism):
    """The same bit, drawn on the person's device."""

    name: ClassVar[str] = "device-bit"
    sampler: ClassVar[str] = "crypto.getRandomValues or secrets.randbits, on the person's device"
    sampled_by: ClassVar[tuple[str, str]] = ("bandanna-device", "0.1")
    on_device: ClassVar[bool] = True

    @classmethod
    def sampler_version(cls) -> str:
        """Return the version of the device's code that goes with this library."""
        return f"bandanna-device {__version__}"

    def assumptions(self) -> tuple[str, ...]:
        """Return what is assumed of the code on devices."""
        return (DRAWN_ON_DEVICE,)

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove the promise in exact arithmetic."""
        yield Finding("batch", self.batch == 1, "a device releases one value by itself")
        yield from super().prove(epsilon)


@dataclass(frozen=True)
class DeviceRelease(OneBitRelease):
    """Hand on bits that were released on devices.

    Parameters
    ----------
    epsilon
        What one bit costs a person, from 1e-9 to 100.
    batch
        1: nobody's feedback meets anybody else's before it is released.

    Examples
    --------
    >>> tally = DeviceRelease(epsilon=1.0).start()
    >>> tally.add(1)
    >>> tally.publish()
    1.0
    """

    batch: int = 1
    name: ClassVar[str] = "device"
    mechanisms: ClassVar = (DeviceMechanism,)
    takes_bits: ClassVar[bool] = True
    _words: ClassVar[tuple[str, str, str]] = (
        "on each person's own device, in batches",
        "loss",
        "; the operator sees who asked when, the arm and the bit",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch != 1:
            raise InputError(f"a device releases single values: batch must be 1; got {self.batch}.")

    def start(self, size: int | None = None) -> BitTally:
        """Wait for a bit."""
        if size not in (None, 1):
            raise InputError(f"a device releases batches of 1; got {size!r}.")
        return BitTally()

    def in_process(self) -> OneBitRelease:
        """Return the release that does here what devices do: the same law, for losses."""
        return OneBitRelease(self.epsilon, 1)

    def default_feedback(self, units: int) -> int:
        """Draw the bit of a device that never answered, from the default loss."""
        return int(self.release(units))


class BitTally(Tally):
    """One bit, from its arrival until it is handed on."""

    def __init__(self) -> None:
        self._bits: list[int] | None = []

    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        """Take the bit: 0 or 1, and no loss."""
        assert self._bits is not None, "this batch has been published"
        if units not in (0, 1):
            raise InputError("a device sends a bit, 0 or 1; a loss is not taken here.")
        self._bits.append(units)

    def publish(self) -> float:
        """Hand the bit on, once; a fair coin if an interrupt kept it from being counted."""
        bits, self._bits = self._bits, None
        assert bits is not None, "this batch has been published"
        return float(bits[0] if bits else secrets.randbelow(2))

    def to_dict(self) -> JSON:
        """Nothing: the bit is among the ledger's."""
        return {}
