"""The release on a person's own device: the Python twin of ``clients/device/bandanna-device.js``.

Nothing here needs NumPy. What both do, and what travels, is in ``docs/device-protocol.md``;
``clients/device/client.py`` is a device that remembers and sends.

At batch 1 a release has public parameters, which are made, checked and signed here, and a bit that
is drawn. On the wire every number is text, so that Python and JavaScript read and sign the same. A
device accepts parameters only if exact arithmetic proves that they keep the epsilon it allows.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bandanna import signatures
from bandanna._core import checks
from bandanna._core.types import BandannaError, InputError, plain
from bandanna.privacy.exact_arithmetic import integers_satisfy, one_bit_integers

__all__ = [
    "MODULE",
    "Parameters",
    "RefusalError",
    "canonical_document",
    "check_release",
    "draw_bit",
    "fingerprint",
    "make_release",
    "sign_release",
    "system_words",
    "to_units",
    "verify_release",
]

MODULE = Path(__file__).with_name("bandanna-device.js")
"""The ES module to serve to browsers; in a checkout a link to the one in ``clients/device``."""

HEADING = "bandanna device parameters 1"
NUMBERS = ("epsilon", "loss_low", "loss_high", "default_loss")
INTEGERS = ("a", "b", "denominator", "units", "batch")
UNITS = 2**20
"""Steps from the lowest to the highest loss, as on the library's grid; the number travels along."""
MOST_UNITS = 2**32

_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,30})?(e[-+]?[0-9]{1,3})?")
_INTEGER = re.compile(r"[1-9][0-9]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


T = TypeVar("T")


class RefusalError(BandannaError):
    """What a device does not do because it could cost the person more than was agreed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def demand(holds: bool, code: str, message: str) -> None:
    """Refuse unless something holds."""
    if not holds:
        raise RefusalError(code, message)


@dataclass(frozen=True)
class Parameters:
    """Parameters that were read and found to keep their epsilon."""

    epsilon: float
    low: float
    high: float
    default_loss: float
    a: int
    b: int
    denominator: int
    units: int


def make_release(
    epsilon: float,
    *,
    loss_low: float = 0.0,
    loss_high: float = 1.0,
    default_loss: float | None = None,
) -> dict[str, str]:
    """Return the parameters of a release as they travel; the default is the middle of the range.

    Examples
    --------
    >>> release = make_release(1.0)
    >>> release["epsilon"], release["batch"], check_release(release, allowed=1.0).units
    ('1', '1', 1048576)
    """
    epsilon = checks.epsilon(epsilon)
    a, b = one_bit_integers(epsilon, UNITS)
    default = (loss_low + loss_high) / 2 if default_loss is None else default_loss
    numbers = (epsilon, loss_low, loss_high, default)
    integers = (a, b, 2 * a + b * UNITS, UNITS, 1)
    release = dict(zip(NUMBERS, map(plain, numbers), strict=True))
    release |= dict(zip(INTEGERS, map(str, integers), strict=True))
    try:
        check_release(release, allowed=epsilon)
    except RefusalError as error:
        raise InputError(f"these parameters would be refused by every device: {error}.") from None
    return release


def check_release(release: object, allowed: float) -> Parameters:
    """Read parameters and prove that they cost at most ``allowed``; refuses otherwise."""
    epsilon, low, high, default = _read(release, NUMBERS, _NUMBER, float)
    a, b, denominator, units, batch = _read(release, INTEGERS, _INTEGER, int)
    demand(batch == 1, "parameters", "only a batch of 1 is local")
    demand(units <= MOST_UNITS, "parameters", "units must be at most 2**32")
    expected = 2 * a + b * units
    demand(denominator == expected, "parameters", "denominator must be 2 a + b units")
    demand(low < high and high - low < math.inf, "parameters", "the loss range is empty")
    demand(low <= default <= high, "parameters", "default_loss is out of range")
    possible = checks.MIN_EPSILON <= epsilon <= checks.MAX_EPSILON
    demand(possible, "parameters", "epsilon must be from 1e-9 to 100")
    demand(epsilon <= allowed, "epsilon", f"epsilon {epsilon} is above {allowed}")
    keeps = integers_satisfy(a, b, epsilon, units)
    demand(keeps, "epsilon", f"the integers are sharper than epsilon {epsilon}")
    return Parameters(epsilon, low, high, default, a, b, denominator, units)


def canonical_document(experiment: str, release: Mapping[str, str]) -> bytes:
    """Return the bytes that are signed. Values hold no spaces: there is one way to write them."""
    demand(bool(_NAME.fullmatch(experiment)), "parameters", "not an experiment's id")
    lines = [HEADING, f"experiment {experiment}"]
    lines += [f"{field} {release[field]}" for field in (*NUMBERS, *INTEGERS)]
    return "".join(f"{line}\n" for line in lines).encode()


def fingerprint(experiment: str, release: Mapping[str, str]) -> str:
    """Return a hash by which people see whether parameters changed."""
    return hashlib.sha256(canonical_document(experiment, release)).hexdigest()


def sign_release(private_key: bytes, experiment: str, release: Mapping[str, str]) -> dict[str, str]:
    """Return ``signature`` and ``key_id`` as they travel with a decision."""
    signature = signatures.sign(private_key, canonical_document(experiment, release))
    return {
        "signature": base64.b64encode(signature).decode(),
        "key_id": signatures.key_id(signatures.public_key(private_key)),
    }


def verify_release(
    public_keys: Sequence[bytes], experiment: str, release: Mapping[str, str], signature: object
) -> bool:
    """Whether one of the keys signed these parameters for this experiment."""
    try:
        raw = base64.b64decode(signature, validate=True) if isinstance(signature, str) else b""
    except (TypeError, binascii.Error, ValueError):
        return False
    document = canonical_document(experiment, release)
    return any(signatures.verify(key, document, raw) for key in public_keys)


def _read(
    release: object, fields: tuple[str, ...], form: re.Pattern[str], make: Callable[[str], T]
) -> list[T]:
    texts = [release.get(field) if isinstance(release, Mapping) else None for field in fields]
    for field, text in zip(fields, texts, strict=True):
        fits = isinstance(text, str) and form.fullmatch(text)
        demand(bool(fits), "parameters", f"{field} is no number")
    return [make(str(text)) for text in texts]


# --- from a loss to the bit that leaves -----------------------------------------------

Words = Callable[[int], Sequence[int]]
"""Gives so many fresh random whole numbers of 32 bits."""


def system_words(count: int) -> list[int]:
    """Return random 32-bit words from the operating system."""
    return [secrets.randbits(32) for _ in range(count)]


def to_units(parameters: Parameters, loss: float) -> int:
    """Put a loss on the grid: a whole number from 0 to ``units``."""
    low, high, units = parameters.low, parameters.high, parameters.units
    number = checks.as_float(loss)
    if not low <= number <= high:
        raise RefusalError("loss", f"a loss must be a number from {low:g} to {high:g}")
    return min(units, math.floor((number - low) / (high - low) * units + 0.5))


def draw_bit(parameters: Parameters, units: int, words: Words = system_words) -> int:
    """Draw the bit: a uniform number below D, by rejection from 32-bit words.

    The words are read as one big number, first word first, of which the lowest bits count. It is
    thrown away and drawn again when it is not below D.
    """
    length = (parameters.denominator - 1).bit_length()
    mask = (1 << length) - 1
    while True:
        drawn = 0
        for word in words(-(-length // 32)):
            drawn = drawn << 32 | word
        drawn &= mask
        if drawn < parameters.denominator:
            return int(drawn < parameters.a + parameters.b * units)
