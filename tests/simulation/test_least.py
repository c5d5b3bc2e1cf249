"""The private lower bound is said where the losses' law is known, and nowhere else."""

from __future__ import annotations

import pytest

from bandanna.environments import (
    Bernoulli,
    ClinicalTrial,
    ConstrainedAdversary,
    Logged,
    OneGoodExpert,
    PunishLeader,
    SinusoidalDrift,
)
from bandanna.simulation.comparators import least_regret
from bandanna.theory.stationary import stationary_lower_bound


def test_steady_losses_have_one() -> None:
    means = [0.3, 0.5, 0.6]
    known = stationary_lower_bound(means, 10_000, 0.2)
    assert least_regret(Bernoulli(means, 10_000), 0.2) == pytest.approx(known)
    trial = least_regret(ClinicalTrial(10**6), 0.2)
    assert trial is not None
    assert trial > 0
    assert least_regret(ClinicalTrial(10_000), 0.2) is None  # too short for it


@pytest.mark.parametrize(
    "environment",
    [
        ConstrainedAdversary(3, 1000),
        SinusoidalDrift(3, 1000),
        PunishLeader(3, 1000),
        OneGoodExpert(3, 2, 1000),
        Bernoulli([0.5, 0.5], 1000),  # nothing to be lost
    ],
    ids=lambda environment: environment.name,
)
def test_others_have_none(environment: object) -> None:
    assert least_regret(environment, 0.5) is None  # type: ignore[arg-type]


def test_a_log_of_successes_has_one_in_its_units() -> None:
    columns = {"arm": ["a"] * 10 + ["b"] * 10, "seen": [0] * 8 + [1] * 2 + [0] * 5 + [1] * 5}
    log = Logged(columns, arm="arm", outcome="seen", rounds=1000)
    known = stationary_lower_bound([0.2, 0.5], 1000, 0.5)
    assert least_regret(log, 0.5) == pytest.approx(known, rel=1e-5)
    wide = Logged(columns, arm="arm", outcome="seen", loss_range=(0, 2), rounds=1000)
    assert least_regret(wide, 0.5) is None  # half of the range: not 0 or 1
