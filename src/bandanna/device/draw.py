"""From a loss to the bit that leaves: whole numbers, and randomness of the operating system."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence

from bandanna._core import checks
from bandanna.device.parameters import Parameters, RefusalError

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
