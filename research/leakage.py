"""The paper's figure: P_t(2) of EXP3 on two neighbouring sequences runs apart."""

from __future__ import annotations

import numpy as np

from bandanna.learners import Exp3
from research import Reproduction, Verdict, frozen_settings
from research.exp3_leakage import exp3_leakage, paper_construction, search_worse


def reproduce(quick: bool) -> Reproduction:
    """Follow EXP3 along the paper's two sequences, and look for worse ones."""
    settings = frozen_settings("leakage", quick)
    rate, share = settings["rate"], settings["tolerance"]
    rounds = round(100 / rate)
    learner = Exp3(2, learning_rate=rate, mixing=rate)
    leakage = exp3_leakage(learner, *paper_construction(rounds))
    stops = np.unique(np.geomspace(2, rounds, 13).astype(int)) - 1
    rows = [
        [
            f"{t + 1:,}",
            f"{leakage.first[t]:.6f}",
            f"{leakage.second[t]:.6f}",
            f"{leakage.per_round[t]:.5f}",
            f"{np.abs(leakage.along[: t + 1]).max():.4f}",
        ]
        for t in stops
    ]
    small_rate, small_rounds = settings["search_rate"], settings["search_rounds"]
    small = Exp3(2, learning_rate=small_rate, mixing=small_rate)
    paper = float(np.abs(exp3_leakage(small, *paper_construction(small_rounds)).along).max())
    worse = search_worse(small, small_rounds)[0]
    first, second = leakage.first[-1], leakage.second[-1]
    early, late = leakage.per_round[1], leakage.per_round[-1]
    within = f"gamma times {share:g}"
    return Reproduction(
        name="leakage",
        claim=f"EXP3's privacy loss grows with t (eta = gamma = {rate:g}, T = {rounds:,})",
        headings=["round", "P_t(2)", "P'_t(2)", "loss of the round", "largest loss so far"],
        rows=rows,
        verdicts=[
            Verdict(
                "P_t(2) tends to 1 - gamma/2",
                f"{first:.7f}",
                within,
                bool(abs(first - (1 - rate / 2)) < rate * share),
            ),
            Verdict(
                "P'_t(2) tends to gamma/2",
                f"{second:.3g}",
                within,
                bool(abs(second - rate / 2) < rate * share),
            ),
            Verdict(
                f"the loss of a round grows {settings['growth']:,}-fold and more",
                f"from {early:.2g} in round 2 to {late:.3g}",
                "none",
                bool(late > settings["growth"] * early),
            ),
            Verdict(
                f"a search finds worse sequences than the paper's (eta = gamma = {small_rate:g}, "
                f"T = {small_rounds:,})",
                f"total loss {worse:,.0f} against {paper:.2f}",
                "none",
                bool(worse > paper),
            ),
        ],
        settings=settings,
        figure=leakage,
    )
