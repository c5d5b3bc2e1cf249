"""Noise with the samplers' laws from a seeded generator, for tests of everything else."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from bandanna.privacy import log_release, noise


def repeatable_noise(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    """Replace the samplers of releases; both draw from one seed."""
    number = zlib.crc32(seed.encode())
    bits, sums = random.Random(number), np.random.default_rng(number)

    def sampler(scale: float, gaussian: bool = False) -> Callable[[list[int]], list[int]]:
        def add(values: list[int]) -> list[int]:
            size = len(values)
            if gaussian:
                drawn = np.rint(sums.normal(0.0, scale, size)).astype(np.int64)
            else:  # the difference of two geometric numbers has the discrete Laplace law
                stop = -np.expm1(-1.0 / scale)
                drawn = sums.geometric(stop, size) - sums.geometric(stop, size)
            return [int(value) + int(more) for value, more in zip(values, drawn, strict=True)]

        return add

    def chooser(scale: float) -> Callable[[list[int]], int]:
        return lambda scores: int(np.argmax(scores + sums.exponential(scale, len(scores))))

    monkeypatch.setattr(noise, "_sampler", sampler)
    monkeypatch.setattr(log_release, "_chooser", chooser)
    monkeypatch.setattr(noise, "_reserve", {})
    monkeypatch.setattr("secrets.randbelow", bits.randrange)
