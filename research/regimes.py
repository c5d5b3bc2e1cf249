"""The paper's table of regimes: by rate, and by what is really guaranteed."""

from __future__ import annotations

from research import Reproduction, Verdict, frozen_settings
from research.regime_map import regime_map


def reproduce(quick: bool) -> Reproduction:
    """Compare the recommended algorithm with all others over a grid of problems."""
    settings = frozen_settings("regimes", quick)
    found = regime_map(settings["arms"], settings["delta"], every=settings["every"])
    rows: list[list[str]] = []
    by_rate: list[Verdict] = []
    by_number: list[Verdict] = []
    for line in found.findings:
        regime = line.regime
        winners = ", ".join(f"{name} ({count})" for name, count in line.winners.items()) or "-"
        counts = [line.points, line.smallest_rate, line.promises, line.best, line.guaranteed]
        times = "-" if line.times_larger is None else f"{line.times_larger:,.0f}"
        numbers = [*(f"{count:,}" for count in counts), times]
        rows.append([regime.name, regime.algorithm, *numbers, winners])
        for kind, good, of, verdicts in (
            ("rate", line.smallest_rate, line.points, by_rate),
            ("guarantee in numbers", line.best, line.guaranteed, by_number),
        ):
            verdicts.append(
                Verdict(
                    f"{regime.condition}: {regime.algorithm} has the smallest {kind}",
                    f"at {good} of {of} problems",
                    f"at least {settings['share']:.0%}",
                    of > 0 and good >= settings["share"] * of,
                )
            )
    return Reproduction(
        name="regimes",
        claim="the paper's regimes for expert advice",
        headings=[
            "regime",
            "choice",
            "problems",
            "smallest rate",
            "its bound below T",
            "smallest bound",
            "any bound below T",
            "times the smallest, median",
            "instead",
        ],
        rows=rows,
        verdicts=[*by_rate, *by_number],
        settings=settings,
        figure=found,
    )
