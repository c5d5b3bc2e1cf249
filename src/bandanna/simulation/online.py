"""Runs of the object that users hold, round by round, for what compiled runs cannot rehearse.

Guardrails retire arms in the middle of a run and a control takes batches of its own. Both are
decided by ``Policy``, so these runs call it: slower, and the same by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.environments import Environment
from bandanna.environments.base import realised_once, sum_losses_once
from bandanna.policy import Policy
from bandanna.simulation.engine import ARMS, LOSSES, RELEASES, Run, empty_run, run_streams

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

METRICS = 1
"""Which generator of a run draws metrics."""


class MetricWorld(NamedTuple):
    """The values of one metric: means of arms, or a table of values by round and arm."""

    low: float
    high: float
    values: Floats
    """In the metric's units, shape (arms,) or (rounds, arms)."""

    @property
    def means(self) -> Floats:
        """The mean of each arm."""
        means: Floats = self.values if self.values.ndim == 1 else self.values.mean(axis=0)
        return means

    def value(self, now: int, arm: int, drawn: float) -> float:
        """Return the value of a round: of the table, or one end of the range with this mean."""
        if self.values.ndim == 2:
            return float(self.values[now, arm])
        share = (self.values[arm] - self.low) / (self.high - self.low)
        return self.high if drawn < share else self.low


Worlds = Mapping[str, MetricWorld]


def plays_online(policy: Policy) -> bool:
    """Whether a policy needs runs of the object itself."""
    spec = policy.spec
    return bool(spec.guardrails) or spec.least_share > 0.0 or spec.adjust is not None or spec.finds


def known_before(policies: Mapping[str, Policy], given: object, rounds: int) -> Floats | None:
    """Return what was known before each round, which some policies subtract; None if none does."""
    asking = [name for name, policy in policies.items() if policy.spec.adjust is not None]
    if not asking and given is None:
        return None
    if not asking:
        raise InputError("no policy subtracts what was known before; leave before= out.")
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (rounds,) or not np.isfinite(values).all():
        raise InputError(
            f"policy {asking[0]!r} subtracts what was known before: give it for each of {rounds:,} "
            f"rounds as before=, finite numbers."
        )
    return values


def metric_worlds(
    name: str, policy: Policy, given: Mapping[str, object], arms: int, rounds: int
) -> dict[str, MetricWorld]:
    """Return the values of a policy's metrics, checked.

    A metric without a guardrail changes no decision: if it is left out, it is in the middle.
    """
    declared, worlds = policy.spec.metrics or {}, {}
    for metric, (low, high) in declared.items():
        if metric not in given:
            if metric in (policy.spec.guardrails or {}):
                raise InputError(
                    f"policy {name!r} has a guardrail for {metric!r}: give its mean for each of "
                    f"{arms} arms, or its values by round and arm, as metrics={{{metric!r}: ...}}."
                )
            worlds[metric] = MetricWorld(low, high, np.full(arms, 0.5 * (low + high)))
            continue
        try:
            values = np.asarray(given[metric], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"the values of metric {metric!r} must be numbers.") from None
        if values.shape not in ((arms,), (rounds, arms)):
            raise InputError(
                f"metric {metric!r} needs a mean for each of {arms} arms, or a table of shape "
                f"({rounds}, {arms}); got shape {values.shape}."
            )
        if not np.all((values >= low) & (values <= high)):
            raise InputError(f"metric {metric!r} must be from {low:g} to {high:g} everywhere.")
        worlds[metric] = MetricWorld(low, high, values)
    return worlds


def check_metrics_used(given: Mapping[str, object], policies: Iterable[Policy]) -> None:
    """Refuse values of metrics that no policy has."""
    known = {metric for policy in policies for metric in policy.spec.metrics or {}}
    if unknown := sorted(set(given) - known):
        there = ", ".join(map(repr, sorted(known))) or "none"
        raise InputError(f"no policy has a metric {unknown[0]!r}; there are {there}.")


def beyond(policy: Policy, worlds: Worlds) -> NDArray[np.bool_]:
    """Return which arms truly are further from the control than a guardrail allows."""
    spec = policy.spec
    outside = np.zeros(len(policy.arms), dtype=bool)
    if spec.control is not None:
        control = policy.arms.index(spec.control)
        for metric, limit in (spec.guardrails or {}).items():
            apart = worlds[metric].means - worlds[metric].means[control]
            outside |= apart > limit if limit > 0.0 else apart < limit
    return outside


def play_online(
    policy: Policy,
    environment: Environment,
    worlds: Worlds,
    stops: Integers,
    seed: int,
    run: int,
    before: Floats | None = None,
) -> Run:
    """Play a policy once, as its user would: feedback in order, one round after the other."""
    streams = run_streams(seed, run)
    result = empty_run(environment.arms, stops)
    online = policy.rehearse(streams[ARMS], streams[RELEASES])
    drawn = np.random.default_rng([seed, run, METRICS])
    params, memory = environment.params(), environment.memory()
    low, high = policy.loss_range
    total, checkpoint = 0, 0
    known = None if before is None or policy.spec.adjust is None else before.tolist()
    for now in range(int(stops[-1])):
        decision = online.decide(before=None if known is None else known[now])
        arm = decision.index
        lost = sum_losses_once(params, memory, arm, now, now + 1, streams[LOSSES])
        total += lost
        result.plays[arm] += 1
        draws = drawn.random(len(worlds)).tolist()
        metrics = {
            name: world.value(now, arm, draw)
            for (name, world), draw in zip(worlds.items(), draws, strict=True)
        }
        online.observe(decision, loss=low + (high - low) * (lost / UNITS), metrics=metrics or None)
        if now + 1 == stops[checkpoint]:
            result.losses[checkpoint] = total
            realised_once(params, memory, result.realised[checkpoint])
            result.played[checkpoint] = result.plays
            checkpoint += 1
    state, report = online.state, online.report()
    for arm, told in state.totals.items():
        result.published[:, arm] = told.total, told.rounds
    retired = np.full(environment.arms, -1, dtype=np.int64)
    for one in state.retirements:
        retired[one.arm] = one.rounds
    race = report.race
    if race is not None and race.winner is not None:  # of the learner's arms
        report = report._replace(race=race._replace(winner=online.active[race.winner]))
    return result._replace(report=report, retired=retired)
