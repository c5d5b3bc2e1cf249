"""Deciding by context: what is learned on digits, on a category among noise, and on nothing."""

from __future__ import annotations

import math

import numpy as np

from bandanna._core.types import JSON
from bandanna.contextual.simulation import ContextRun, ContextTable, digits_table, simulate_context
from bandanna.environments import Bernoulli
from bandanna.policy import PrivateBandit
from bandanna.privacy.epochs import PROTECTS, Protects
from bandanna.simulation.runs import simulate
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point

DIGITS = {"20 components": 20, "16 pixels": None}
NO_NOISE = "no noise"
PEOPLE = 4000
MEANS = (0.3, 0.4, 0.5)


def reproduce(quick: bool) -> Reproduction:
    """Measure rewards under both promises, beside no privacy."""
    settings = frozen_settings("context", quick)
    rows: list[list[str]] = []
    drawn: list[Point] = []
    least: dict[Protects, float] = {}
    for label, components in DIGITS.items():
        table = digits_table(components)
        for protects in (*PROTECTS, None):
            runs = _runs(table, settings, protects)
            name = protects or NO_NOISE
            last = float(np.mean([run.last_fifth for run in runs]))
            whole = float(np.mean([run.reward for run in runs]))
            rows.append([f"digits, {label}", name, f"{whole:.3f}", f"{last:.3f}"])
            rows[-1].append(f"{runs[0].single:.3f}")
            drawn += _curve(f"digits, {label}", name, runs, settings["parts"])
            if protects is not None:
                least[protects] = min(last, least.get(protects, 1.0))
    found = {}
    for kind, informative in (("category", True), ("nothing", False)):
        table = one_category(informative=informative)
        for protects in PROTECTS:
            runs = _runs(table, settings, protects, bernoulli=True)
            whole = float(np.mean([run.reward for run in runs]))
            last = float(np.mean([run.last_fifth for run in runs]))
            found[kind, protects] = last if informative else 1.0 - whole
            rows.append([kind, protects, f"{whole:.3f}", f"{last:.3f}", f"{runs[0].single:.3f}"])
    alone = _without_context(settings)
    worst = max(found["nothing", protects] for protects in PROTECTS) / alone
    category = min(found["category", protects] for protects in PROTECTS)
    return Reproduction(
        name="context",
        claim=f"deciding by context, epsilon {settings['epsilon']:g}, T = {settings['rounds']:,}",
        headings=["problem", "protects", "reward", "in the last fifth", "best single arm"],
        rows=rows,
        verdicts=[
            *(
                Verdict(
                    f"digits are learned with {protects} protected",
                    f"{least[protects]:.3f} in the last fifth",
                    f"at least {settings[key]:g}",
                    least[protects] >= settings[key],
                )
                for protects, key in zip(PROTECTS, ("feedback", "both"), strict=True)
            ),
            Verdict(
                "a category is found among six features that say nothing",
                f"{category:.3f} in the last fifth",
                f"at least {settings['category']:g}",
                category >= settings["category"],
            ),
            Verdict(
                "contexts that say nothing cost little",
                f"{worst:.3f} times the loss of the default policy without context",
                f"at most {settings['nothing']:g} times",
                worst <= settings["nothing"],
            ),
        ],
        settings=settings,
        figure=Figure("Deciding by context", "rounds", "reward", drawn),
    )


def one_category(*, informative: bool) -> ContextTable:
    """Return a category among six noise features; it decides which arm is best, or nothing does."""
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 3, PEOPLE)
    columns: dict[str, object] = {"kind": kind}
    columns |= {f"noise{i}": rng.uniform(-1, 1, PEOPLE) for i in range(6)}
    features: dict[str, object] = {"kind": [0, 1, 2]}
    features |= {f"noise{i}": (-1, 1) for i in range(6)}
    rewards = np.tile(MEANS, (PEOPLE, 1))
    if informative:
        rewards = np.where(kind[:, np.newaxis] == np.arange(3), 0.6, 0.3)
    return ContextTable.from_rewards(columns, features, rewards)


def _runs(
    table: ContextTable, settings: JSON, protects: Protects | None, *, bernoulli: bool = False
) -> list[ContextRun]:
    epsilon = None if protects is None else settings["epsilon"]
    chosen: Protects = protects or "feedback"
    size = epsilon, settings["delta"], settings["rounds"], chosen
    return [
        simulate_context(table, *size, seed=seed, bernoulli=bernoulli)
        for seed in range(settings["seeds"])
    ]


def _without_context(settings: JSON) -> float:
    """Return the mean loss of the default policy where no context says anything."""
    rounds = int(settings["rounds"])
    world = Bernoulli([1.0 - mean for mean in MEANS], rounds)
    policies = {"alone": PrivateBandit(len(MEANS), settings["epsilon"], rounds)}
    runs = simulate(policies, world, replicates=20, seed=1, checkpoints=1)
    return float(1.0 - max(MEANS) + runs.regret("alone").mean() / rounds)


def _curve(panel: str, name: str, runs: list[ContextRun], parts: int) -> list[Point]:
    curves = np.array([[reward for _, reward in run.curve(parts)] for run in runs])
    half = 1.96 * curves.std(axis=0, ddof=1) / math.sqrt(len(runs))
    ends = [end for end, _ in runs[0].curve(parts)]
    return [
        Point(panel, name, float(end), float(mean), max(float(mean - h), 1e-3), float(mean + h))
        for end, mean, h in zip(ends, curves.mean(axis=0), half, strict=True)
    ]
