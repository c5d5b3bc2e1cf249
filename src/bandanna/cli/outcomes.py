"""Options about further outcomes: metrics, their means by arm, and guardrails."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from bandanna._core.types import InputError
from bandanna.cli.data import takes_group
from bandanna.cli.options import numbers
from bandanna.spec import parameters


class OutcomeOptions(NamedTuple):
    """Options about metrics."""

    metric: Annotated[
        list[str] | None,
        typer.Option(help="A further outcome and its range: refund=0,1. Repeat it."),
    ] = None
    metric_means: Annotated[
        list[str] | None,
        typer.Option(help="A metric's mean for each arm: refund=0.02,0.02,0.3. Repeat it."),
    ] = None
    guardrail: Annotated[
        list[str] | None,
        typer.Option(
            help="Retire an arm that is further from --control in a metric: refund=0.02 above it, "
            "negative numbers below it. Repeat it."
        ),
    ] = None

    @property
    def policy(self) -> dict[str, object]:
        """What they say of policies, checked."""
        ranges = _read("--metric", self.metric)
        limits = _read("--guardrail", self.guardrail)
        found: dict[str, object] = {}
        if ranges:
            found["metrics"] = {name: tuple(ends) for name, ends in ranges.items()}
        if limits:
            if wrong := [name for name, values in limits.items() if len(values) != 1]:
                raise InputError(f"--guardrail takes one number: {wrong[0]}=0.02.")
            found["guardrails"] = {name: values[0] for name, values in limits.items()}
        return {name: parameters()[name].check(value) for name, value in found.items()}

    @property
    def means(self) -> dict[str, list[float]]:
        """The mean of each metric for each arm."""
        return _read("--metric-means", self.metric_means)


NO_OUTCOMES = OutcomeOptions()
takes_outcomes = takes_group("outcome_options", OutcomeOptions)
"""Gives a command an option for each of ``OutcomeOptions``, where it has ``outcome_options``."""


def _read(option: str, given: list[str] | None) -> dict[str, list[float]]:
    """Read ``name=1,2`` given several times."""
    found: dict[str, list[float]] = {}
    for text in given or []:
        name, equals, values = text.partition("=")
        if not name or not equals:
            raise InputError(
                f"{option} needs a name and numbers, such as refund=0,1; got {text!r}."
            )
        if name in found:
            raise InputError(f"{option} names {name!r} twice.")
        found[name] = numbers(option, values)
    return found
