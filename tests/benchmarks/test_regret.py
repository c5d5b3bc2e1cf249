"""What the learners must show, over few runs; ``make soak`` measures it over many.

Each assertion is at least six standard errors from what was measured, so that a false alarm has
probability below 1e-6; seeds are fixed.
"""

from __future__ import annotations

import pytest
from benchmarks.timing import Row

from benchmarks import regret


def broken(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not row.holds]


def test_guarantees() -> None:
    assert not broken(regret.guarantees())


@pytest.mark.soak
def test_adaptive_against_one_bit_and_htinf() -> None:
    """Geometric means were 0.48, 0.48 and 0.35 over 20 runs each."""
    assert not broken(regret.adaptive(runs=10)[:3])


def test_changing_worlds() -> None:
    """They were 45 000 and 37 000 below the best fixed arm, and dp-klucb 57 000 and 61 000."""
    assert not broken(regret.changing(runs=6))


def test_a_number_above_its_limit_is_said_to_be() -> None:
    assert broken([regret.at_most("x", 1.2, 1.0, error=0.1)])
    assert not broken([regret.at_most("x", 1.05, 1.0, error=0.1)])
