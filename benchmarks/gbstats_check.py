"""What GrowthBook's gbstats says of the trial, for ``benchmarks.scorecards`` and its test.

gbstats needs NumPy 1, so it has an environment of its own, without Bandanna:

    python3 -m venv build/gbstats && build/gbstats/bin/pip install gbstats==0.8.0
    build/gbstats/bin/python benchmarks/gbstats_check.py > tests/scorecard/gbstats.json
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from gbstats.frequentist.tests import (  # type: ignore[import-not-found]
    FrequentistConfig,
    TwoSidedTTest,
)
from gbstats.models.statistics import (  # type: ignore[import-not-found]
    ProportionStatistic,
    RatioStatistic,
    SampleMeanStatistic,
)

TRIAL = Path(__file__).parents[1] / "examples" / "trial.csv"
ARMS = "zidovudine", "zidovudine + didanosine"
TIMES = (1, 25)
"""How often each row is counted: intervals of all kinds agree where they are narrow."""

Rows = list[tuple[float, float, float]]


def rows(arm: str) -> Rows:
    """Return what was seen of the patients with a treatment: cells now, before, and progress."""
    with TRIAL.open(encoding="utf-8", newline="") as file:
        return [
            (float(row["cd4"]), float(row["cd4_before"]), float(row["progressed"]))
            for row in csv.DictReader(file)
            if row["treatment"] == arm
        ]


def mean_of(values: list[float]) -> SampleMeanStatistic:
    """Return a mean as gbstats wants it."""
    return SampleMeanStatistic(len(values), sum(values), sum(value**2 for value in values))


def of_gbstats(metric: str, arm: Rows) -> Any:
    """Return one arm's statistic."""
    cells, before, progressed = ([row[k] for row in arm] for k in range(3))
    if metric == "progressed":
        return ProportionStatistic(len(arm), sum(progressed))
    if metric == "cd4":
        return mean_of(cells)
    products = sum(a * b for a, b, _ in arm)
    return RatioStatistic(len(arm), mean_of(cells), mean_of(before), products)


def main() -> None:
    """Print what it says, as JSON: a difference and a lift, each with its ends."""
    found = {}
    for times in TIMES:
        arms = [rows(arm) * times for arm in ARMS]
        for metric in ("cd4", "progressed", "cd4/cd4_before"):
            one = [of_gbstats(metric, arm) for arm in arms]
            said = {"means": [float(part.mean) for part in one]}
            for kind in ("absolute", "relative"):
                result = TwoSidedTTest(
                    *one, FrequentistConfig(difference_type=kind)
                ).compute_result()
                said[kind] = [float(result.expected), *map(float, result.ci)]
            found[f"{metric} {times}"] = said
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
