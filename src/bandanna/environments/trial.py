"""A real clinical trial as a bandit problem: ACTG 175, four treatments, 2 139 patients."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna.environments.segments import Segments

TREATMENTS = (
    "zidovudine",
    "zidovudine + didanosine",
    "zidovudine + zalcitabine",
    "didanosine",
)


@lru_cache(maxsize=1)
def trial_table() -> dict[str, NDArray[np.int64]]:
    """Return every column of the trial; one row is one patient."""
    path = resources.files("bandanna.environments") / "data" / "actg175.csv"
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    return {name: np.array([int(row[name]) for row in rows], dtype=np.int64) for name in rows[0]}


def trial_outcomes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every patient's treatment and outcome (1: the disease progressed, or death)."""
    table = trial_table()
    return table["arm"], table["event"]


class ClinicalTrial(Segments):
    """Each round a patient arrives, a treatment is chosen, and the loss is an outcome.

    The outcome is that of a patient drawn at random, with replacement, among those who really had
    that treatment. Outcomes are 0 or 1, so such draws are Bernoulli draws with the treatment's
    event rate, and that is how they are made.

    Parameters
    ----------
    rounds
        How many patients arrive; by default as many as the trial had.

    Examples
    --------
    >>> ClinicalTrial().rounds
    2139
    """

    name = "trial"
    arm_names = TREATMENTS

    def __init__(self, rounds: int | None = None) -> None:
        treatments, events = trial_outcomes()
        rates = [float(events[treatments == arm].mean()) for arm in range(len(TREATMENTS))]
        length = events.size if rounds is None else checks.rounds(rounds)
        super().__init__([rates], [length], bernoulli=True)
