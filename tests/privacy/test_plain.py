"""Releases without noise: the mean as it is, or nothing at all."""

from __future__ import annotations

import math

import pytest

from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.privacy import PlainRelease
from bandanna.privacy.plain import SilentRelease


@pytest.mark.parametrize("size", [None, 2, 5])
def test_the_mean_is_published_as_it_is_and_promises_nothing(size: int | None) -> None:
    release = PlainRelease(4, longest=8)
    rounds = size or 4
    assert release.release(UNITS, size) == pytest.approx(1 / rounds)
    assert release.release(100 * UNITS, size) == 1.0
    assert release.guarantee().epsilon == math.inf
    assert "sees every loss as it is" in release.guarantee().because
    assert release.to_dict() == {"name": "plain", "batch": 4, "longest": 8}


def test_the_compiled_form_has_what_a_unit_is_worth() -> None:
    assert PlainRelease(4).fast() == (1.0 / UNITS,)
    assert PlainRelease(4, longest=8).fast() == (0.0,)  # Laplace noise of no scale
    assert type(PlainRelease(4).fast()) is not type(PlainRelease(4, longest=8).fast())
    assert PlainRelease(3).to_dict() == {"name": "plain", "batch": 3}
    assert PlainRelease(1, longest=2).longest == 2
    with pytest.raises(InputError, match="longest must be"):
        PlainRelease(4, longest=3)


def test_nothing_is_published_and_everything_is_promised() -> None:
    release = SilentRelease(3)
    assert release.release(2 * UNITS) == 0.0
    promised = release.guarantee()
    assert (promised.epsilon, promised.delta, promised.model) == (0.0, 0.0, "local")
    assert promised.at_delta(1e-6).epsilon == promised.at_delta(0.0).epsilon == 0.0
    assert promised.curve is not None
    assert promised.curve(1e-6) == 0.0
    assert release.fast().worth == 0.0
    assert SilentRelease(1).batch == 1
    assert promised.facts == {"mechanism": "silent", "batch": 3}
    assert "feedback" in promised.protects
    assert "do not depend on feedback" in promised.because
    assert "not used" in promised.mechanism
