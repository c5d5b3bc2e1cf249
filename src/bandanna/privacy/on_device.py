"""The one-bit release on people's own devices: what arrives here is a bit, never a loss.

Every device draws its bit itself, in a batch of one: randomised response, by the same integers as
``OneBitRelease`` and checked by the device before it uses them (``bandanna.device`` and
``clients/device``). The release happened there; here the bit is handed on as it came, once. So the
operator, who sees everything here, is among those whom the guarantee holds against.

A bit that never comes is replaced by one that is drawn here from the default loss, by the same
law. It says nothing about anybody, and its mean is that of a device whose person gave no feedback.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.mechanism import Finding
from bandanna.privacy.one_bit import OneBitMechanism, OneBitRelease
from bandanna.privacy.release import Tally
from bandanna.privacy.statements import DRAWN_ON_DEVICE, PROTECTED_ON_DEVICE
from bandanna.version import __version__


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

    def guarantee(self) -> Guarantee:
        """Return the exact promise, which holds against the operator too."""
        law = DeviceMechanism(1, UNITS, self.a, self.b, self.denominator)
        promise = self.promise(
            mechanism=(
                f"one-bit release on each person's own device, in batches of 1: a 1 with "
                f"probability (a + b S)/D, a = {self.a}, b = {self.b}, D = {self.denominator}, S "
                f"the loss in units of 1/{UNITS}; the operator sees who asked when, the arm and "
                f"the bit"
            ),
            law=law,
            curve=self._epsilon_at,
            group=self._group_at,
        )
        return replace(promise, protects=PROTECTED_ON_DEVICE, assumptions=(DRAWN_ON_DEVICE,))


class BitTally(Tally):
    """One bit, from its arrival until it is handed on."""

    def __init__(self) -> None:
        self._bits: list[int] | None = []

    def add(self, units: int, ticket: Ticket | None = None) -> None:
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
