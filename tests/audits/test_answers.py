"""The whole answer from a log under attack: slope, range, people who are cut, sums and squares.

It is the library's own code that is attacked, by someone who knows everybody else in the log.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandanna._core.grid import UNITS
from bandanna.audits.attack import audit
from bandanna.counted import squares_of
from bandanna.logs import _release, _released
from bandanna.logs.rows import Rows
from bandanna.privacy import bought

PEOPLE, EPSILON = 200, 2.0


def rows(outcome: float) -> Rows:
    """Return a log in which one person, the first, has another outcome."""
    rng = np.random.default_rng(1)
    before = rng.uniform(0.0, 1.0, PEOPLE)
    outcomes = 0.5 * before + rng.uniform(0.0, 0.5, PEOPLE)
    outcomes[0], before[0] = outcome, 0.0
    log = {"arm": np.arange(PEOPLE) % 2, "rev": outcomes, "before": before}
    asked: Any = {"arm": "arm", "outcome": "rev", "loss_range": (0.0, 100.0), "clip": True}
    return Rows.read(log, **asked, person=None, bins=(), adjust="before")


def seen(known: Rows) -> list[float]:
    """Answer once; return what was released, with everybody else taken out of it."""
    made = bought.buy(
        known.sample, EPSILON, auto=True, adjust="before", slope=None, adjusted_range=None
    )
    scale, counted = made.scale, known.counted(made.scale, clip=True)
    release = _release(counted, made.left(EPSILON))
    _, sums, squares, *_ = _released(release, counted, reward=False)
    values = known.sample.values(scale.slope)[1:]
    inside = (np.clip(values, *scale.ends) - scale.low) / (scale.high - scale.low)
    units = np.rint(inside * UNITS).astype(np.int64)[1::2]  # of the same arm
    own = sums[0, 0] - units.sum() / UNITS, squares[0, 0] - squares_of(units).sum() / UNITS
    outside = int(((values < scale.low) | (values > scale.high)).sum())
    cut = 0.0 if made.cut is None else made.cut * PEOPLE - outside
    together = made.left(EPSILON) * own[0] + 2.0 * bought.CUT * cut
    return [scale.slope, scale.low, scale.high, *own, cut, together]


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [False, True])
def test_the_attack_finds_a_share_that_is_left_out_and_nothing_else(
    left_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger share tells how many are cut; left out of the accounting, the sums get all.

    False alarms have probability 1e-6.
    """
    monkeypatch.setattr(bought, "CUT", 0.9 if left_out else 0.5)
    monkeypatch.setattr(bought, "STEPS", 4)  # fewer candidates, in less time
    monkeypatch.setattr(bought, "TENTHS", 2)
    if left_out:
        monkeypatch.setattr(bought.Bought, "left", lambda _, epsilon: epsilon)
    far, none = rows(100.0), rows(0.0)
    found = audit(
        lambda draws: np.array([seen(far) for _ in range(draws)]),
        lambda draws: np.array([seen(none) for _ in range(draws)]),
        EPSILON,
        draws=6_000,
        significance=1e-6,
        selection=0.3,
    )
    assert found.passed is not left_out, found
