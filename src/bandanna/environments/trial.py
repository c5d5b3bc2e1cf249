"""The clinical trial ACTG 175 as an environment, with experts built from its baseline columns."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib import resources
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Advice
from bandanna._core.grid import UNITS
from bandanna.environments.experts import ExpertEnvironment
from bandanna.environments.synthetic import Segments

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
    outcome = "progressions"
    """What reports call a loss of 1."""

    def __init__(self, rounds: int | None = None) -> None:
        treatments, events = trial_outcomes()
        rates = [float(events[treatments == arm].mean()) for arm in range(len(TREATMENTS))]
        length = events.size if rounds is None else checks.rounds(rounds)
        super().__init__([rates], [length], bernoulli=True)


LOW_CD4 = 350
"""Cells per cubic millimetre; fewer mean that the disease is further on."""


class TrialExperts(ExpertEnvironment):
    """Choose treatments by rules on what is known of a patient.

    There are 64 experts: one for each treatment, and for each of five questions and each pair of
    treatments one who gives the first if the answer is yes and the second otherwise.

    Parameters
    ----------
    rounds
        How many patients arrive; by default as many as the trial had.
    seed
        For the order of patients and the outcomes.
    """

    name = "trial-rules"
    arms = len(TREATMENTS)
    arm_names = TREATMENTS
    spread = False

    def __init__(self, rounds: int | None = None, *, seed: int = 0) -> None:
        self._rules = treatment_rules()
        self.rounds = self._rules.stratum.size if rounds is None else checks.rounds(rounds)
        self.seed = checks.whole("seed", seed, at_least=0)
        self.expert_names = self._rules.names
        self.experts = len(self.expert_names)

    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Draw patients and, for every treatment, the outcome of one who is alike."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        patients = rng.integers(0, self._rules.stratum.size, stop - start)
        risks = self._rules.risks[self._rules.stratum[patients]]
        losses = np.where(rng.random(risks.shape) < risks, UNITS, 0).astype(np.int64)
        return losses, self._rules.votes[patients]


class Rules(NamedTuple):
    """Patients, and what each rule says of them."""

    names: tuple[str, ...]
    votes: NDArray[np.uint8]
    stratum: NDArray[np.int64]
    risks: NDArray[np.float64]
    """(strata, arms): share of patients with an event; outcomes drawn among them are draws with
    this probability."""


@lru_cache(maxsize=1)
def treatment_rules() -> Rules:
    """Make the rules and the strata from the trial's table."""
    table = trial_table()
    low = (table["cd4"] < LOW_CD4).astype(np.int64)
    stratum = (table["history"] - 1) * 4 + table["symptom"] * 2 + low
    cell = stratum * len(TREATMENTS) + table["arm"]
    risks = np.bincount(cell, weights=table["event"]) / np.bincount(cell)
    questions = {
        f"CD4 below {LOW_CD4}": low == 1,
        "treated before": table["history"] > 1,
        "has symptoms": table["symptom"] == 1,
        "Karnofsky score below 100": table["karnofsky"] < 100,
        "younger than 35": table["age"] < 35,
    }
    names, votes = [], []
    for arm, treatment in enumerate(TREATMENTS):
        names.append(treatment)
        votes.append(np.full(stratum.size, arm))
    for question, answer in questions.items():
        for yes, no in permutations(range(len(TREATMENTS)), 2):
            names.append(f"{question}: {TREATMENTS[yes]}, otherwise {TREATMENTS[no]}")
            votes.append(np.where(answer, yes, no))
    return Rules(
        tuple(names),
        np.array(votes, dtype=np.uint8).T.copy(),
        stratum,
        risks.reshape(-1, len(TREATMENTS)),
    )
