"""Inequalities on compact sets that docs/theory/centred.md leaves to interval arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from mpmath import iv, mp, mpf

from bandanna.theory import centred

Interval = Any
MOST_BOXES = 20_000


@pytest.fixture(autouse=True)
def _digits() -> Any:
    before = iv.prec
    iv.prec = 80
    yield
    iv.prec = before


def ends(x: Interval) -> tuple[mpf, mpf]:
    """Return the two ends of an interval, exactly."""
    low, high = x._mpi_
    return mp.make_mpf(low), mp.make_mpf(high)


def r(y: Interval) -> Interval:
    """Return what the first two orders leave, with ``y = 1 / (2 z)``."""
    grown = iv.exp(y)
    sinh = (grown - 1 / grown) / 2
    coth = (grown * grown + 1) / (grown * grown - 1)
    d = iv.log(sinh / y) / (2 * y)
    return d / (2 * y) * (iv.mpf(1) / 2 + (y * coth - 1) / (2 * y) + d / 2)


def test_the_rest_of_centred_exp3() -> None:
    """``r <= REST`` for y from 1 to 10; by hand it is below outside."""
    boxes = [(1.0, 10.0)]
    for _ in range(MOST_BOXES):
        if not boxes:
            return
        low, high = boxes.pop()
        if not ends(r(iv.mpf([low, high])))[1] <= centred.REST:
            middle = (low + high) / 2
            boxes += [(low, middle), (middle, high)]
    pytest.fail("not proved")


def slack(v: Interval, s: Interval, e: Interval) -> Interval:
    """Return the left minus the right side of the inequality for v above 1/2."""
    x = s * s
    rho = 2 * (1 - x)
    w = iv.mpf(1) / 2 - e * rho
    left = e * (1 - v / 4 - e * rho * (1 - v / 2)) / (1 - v * w)
    right = v * (4 - 2 * v * s / (1 + s)) / (8 * (8 - 4 * v * s))
    return left - right - (1 - v / 2) * x * e * e / (iv.mpf(1) / 2 - v * x * e)


def margin(v: Interval, s: Interval, e: Interval) -> Interval:
    """Return the right minus the left side before anything is divided: good away from s = 1."""
    x = s * s
    rho = 2 * (1 - x)
    w = iv.mpf(1) / 2 - e * rho
    costs = w * w / (1 - v * w) - iv.mpf(1) / 4 + x * rho * e * e / (iv.mpf(1) / 2 - v * x * e)
    return v * x / (8 - 4 * v * s) - costs


def exposed(v: float) -> Interval:
    """Return e, which increases with v."""
    at = iv.mpf(v)
    return (iv.sqrt(1 + at * at / 4) - 1) / at


def test_the_cost_of_an_arm_that_is_nearly_certain() -> None:
    """The lemma on Tsallis-INF's centred estimates, for v from 1/2 to 2 and x above 1/2."""
    root = ends(iv.sqrt(iv.mpf(2)))[1]
    boxes = [((0.5, 2.0), (0.7071, 1.0))]
    for _ in range(MOST_BOXES):
        if not boxes:
            return
        (v0, v1), (s0, s1) = boxes.pop()
        if ends(iv.mpf(v0) * iv.mpf(s0))[0] > root:
            continue  # beyond the largest rate
        e = iv.mpf([ends(exposed(v0))[0], ends(exposed(v1))[1]])
        box = iv.mpf([v0, v1]), iv.mpf([s0, s1]), e
        x = box[1] ** 2
        dividers = 1 - box[0] * (iv.mpf(1) / 2 - 2 * e * (1 - x)), iv.mpf(1) / 2 - box[0] * x * e
        finite = v1 * s1 < 1.9 and all(ends(divider)[0] > 0 for divider in dividers)
        if finite and (ends(slack(*box))[0] > 0 or ends(margin(*box))[0] > 0):
            continue
        if v1 - v0 > s1 - s0:
            middle = (v0 + v1) / 2
            boxes += [((v0, middle), (s0, s1)), ((middle, v1), (s0, s1))]
        else:
            middle = (s0 + s1) / 2
            boxes += [((v0, v1), (s0, middle)), ((v0, v1), (middle, s1))]
    pytest.fail("not proved")
