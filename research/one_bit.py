"""Our release against the paper's: regret of one-bit and of HTINF on the same losses."""

from __future__ import annotations

import math

import numpy as np

from bandanna._core.types import JSON
from bandanna.environments import make_environment
from bandanna.simulation.baselines import make_policy
from bandanna.simulation.results import statistics
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem
from bandanna.theory import htinf
from bandanna.theory.tsallis import one_bit_bound
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point

RIVALS = ("one-bit", "htinf")


def reproduce(quick: bool) -> Reproduction:
    """Compare guarantees and measured regret, environment by environment."""
    settings = frozen_settings("one-bit", quick)
    arms, rounds = settings["arms"], settings["rounds"]
    rows, drawn, worse, ratios = [], [], [], []
    for epsilon in settings["epsilon"]:
        for entry in settings["environments"]:
            options = {key: value for key, value in entry.items() if key != "name"}
            label = " ".join([entry["name"], *(f"{key} {value}" for key, value in options.items())])
            environment = make_environment(entry["name"], arms, rounds, **options)
            runs = simulate(
                {name: make_policy(name, Problem(arms, rounds, epsilon)) for name in RIVALS},
                environment,
                replicates=settings["replicates"],
                seed=settings["seed"],
                checkpoints=1,
            )
            ours, theirs = runs.regret("one-bit"), runs.regret("htinf")
            error = float(np.std(ours - theirs, ddof=1)) / math.sqrt(ours.size)
            beyond = float(ours.mean() - theirs.mean()) / error
            worse.append((beyond, label, epsilon))
            ratio = float(ours.mean() / theirs.mean())
            positive = ours.mean() > 0 and theirs.mean() > 0
            ratios += [ratio] if positive else []
            cells = [label, f"{epsilon:g}"]
            for name, regret in (("one-bit", ours), ("htinf", theirs)):
                found = statistics(regret)
                cells.append(f"{found['mean']:,.0f} ({found['standard_error']:,.0f})")
                drawn += _point(label, name, epsilon, found)
            rows.append([*cells, f"{ratio:.2f}" if positive else "-"])
    beyond, label, epsilon = max(worse)
    guarantee = _guarantees(settings)
    typical, allowed = float(np.median(ratios)), settings["errors"]
    return Reproduction(
        name="one-bit",
        claim=f"one-bit against the paper's HTINF, K = {arms}, T = {rounds:,}",
        headings=["environment", "epsilon", "one-bit (s.e.)", "htinf (s.e.)", "ratio"],
        rows=rows,
        verdicts=[
            Verdict(
                f"its guarantee's leading term is {settings['leading']:g} times smaller",
                f"{guarantee:.1f} times, at epsilon {settings['leading_epsilon']:g}",
                f"{settings['leading_tolerance']:.0%}",
                abs(guarantee / settings["leading"] - 1) <= settings["leading_tolerance"],
            ),
            Verdict(
                "its mean regret is never larger",
                f"at worst {beyond:+.1f} standard errors, in {label} at epsilon {epsilon:g}",
                f"{allowed:g} standard errors",
                beyond <= allowed,
            ),
            Verdict(
                "it has clearly less regret in the middle of the environments",
                f"median ratio {typical:.2f}",
                f"at most {settings['median_ratio']:g}",
                typical <= settings["median_ratio"],
            ),
        ],
        settings=settings,
        figure=Figure("Our release against the paper's", "epsilon", "regret", drawn),
    )


def _point(label: str, name: str, epsilon: float, found: dict[str, float]) -> list[Point]:
    half = 1.96 * found["standard_error"]
    if found["mean"] - half <= 0:  # cannot be shown on a logarithmic axis
        return []
    mean = found["mean"]
    return [Point(label, name, epsilon, mean, mean - half, mean + half)]


def _guarantees(settings: JSON) -> float:
    """Return how many times the paper's leading term is ours."""
    size = (settings["arms"], settings["leading_rounds"], settings["leading_epsilon"])
    theirs = next(iter(htinf.paper_bound(Problem(*size)).terms.values()))
    return theirs / next(iter(one_bit_bound(Problem(*size)).terms.values()))
