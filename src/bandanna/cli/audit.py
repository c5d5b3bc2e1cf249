"""bandanna audit: attacks on releases, policies and persons."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import bandanna as bd
from bandanna._core.checks import whole
from bandanna._core.types import JSON, InputError
from bandanna.cli.help import command
from bandanna.cli.options import Json, numbers, whole_number
from bandanna.cli.output import announce, print_json, print_table

if TYPE_CHECKING:
    from bandanna.audits.attack import AuditResult
    from bandanna.privacy.sums import PureRelease


FEWEST_RUNS, MOST_RUNS, DRAWS_A_RUN = 200, 2000, 500
"""A run plays a policy through all slots of a person, so there are fewer of them than draws."""

VISIT_SECONDS = 6e-5


def runs_for(draws: int) -> int:
    """Return how often a policy is played on either input."""
    return max(FEWEST_RUNS, min(MOST_RUNS, draws // DRAWS_A_RUN))


def _person_seconds(draws: int, batch: int, slots: int) -> float:
    """Guess how long an attack through one person takes."""
    visits = 2 * (slots + 5) * 5 * batch
    return 1.5 + 2 * runs_for(draws) * visits * VISIT_SECONDS


def _attack_person(
    kind: type[PureRelease],
    claim: float,
    delta: float,
    slots: int,
    batch: int,
    draws: int,
    seed: int,
    advance: Callable[[], None],
) -> JSON:
    """Attack a bandit through one person with some slots, who visits more often than that."""
    from bandanna.audits.people import audit_person

    options: JSON = {"release": kind.name, "batch": batch, "per_person": slots, "delta": delta}
    policy = bd.PrivateBandit(2, claim, **options, seed=seed)
    attacked = audit_person(policy, runs=runs_for(draws), seed=seed)
    advance()
    assert attacked.attack is not None
    return {
        "release": kind.name,
        "batch": batch,
        "claimed": claim,
        "delta": delta,
        "slots": slots,
        "slot_epsilon": policy.recipe.release.guarantee().epsilon,
        "batches_changed": attacked.batches,
        "largest_change": attacked.most,
        **_found(attacked.attack),
        "runs": runs_for(draws),
        "passed": attacked.passed,
    }


def _found(attack: AuditResult) -> JSON:
    """Return what an attack found."""
    significance = attack.significance
    return {"audited": attack.epsilon, "event": attack.event, "significance": significance}


WRONG_SAMPLER = 1e-6
STEPS = 4
"""Steps of an attack: the release alone, in a bandit, with experts, and its sampler."""

OF_RELEASES = {
    "release": "{release}",
    "claimed": "{claimed:g}",
    "alone": "{audited:.4f}",
    "in a bandit": "{audited_policy:.4f}",
    "with experts": "{audited_experts:.4f}",
    "sampler's p": "{sampler_p_value:.3g}",
}
OF_PERSONS = {
    "release": "{release}",
    "claimed": "{claimed:g}",
    "slots": "{slots:,}",
    "eps a slot": "{slot_epsilon:.4g}",
    "batches changed": "{batches_changed:,}",
    "by": "{largest_change:g}",
    "found": "{audited:.4f}",
}
"""Columns of the tables, and what is in them."""


@command("bandanna audit --epsilon 0.5,1 --draws 2e5")
def audit(
    epsilon: Annotated[
        str, typer.Option(help="Claims to attack, comma-separated.")
    ] = "0.1,0.5,1,2",
    release: Annotated[str, typer.Option(help="one-bit, laplace or all.")] = "all",
    batch: Annotated[int, typer.Option(help="Rounds in a batch.")] = 1,
    draws: Annotated[str, typer.Option(help="Draws on either input.")] = "1e6",
    exact: Annotated[
        bool, typer.Option("--exact", help="Attack the noise that protects people; slower.")
    ] = False,
    person: Annotated[
        str | None,
        typer.Option(help="Attack whole policies through one person with this many slots: 1,20."),
    ] = None,
    delta: Annotated[float, typer.Option(help="With --person: the person's delta.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the fast noise.")] = 0,
    chart: Annotated[
        Path | None, typer.Option(help="Write a chart: .html, .svg, .png or .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack releases and whole policies, to find broken promises.

    Passing an audit does not prove privacy.
    """
    from bandanna.audits.attack import NO_PROOF
    from bandanna.privacy.sums import PureRelease
    from bandanna.simulation.progress import Progress

    claims, count = numbers("--epsilon", epsilon), whole_number("--draws", draws, 1e9)
    whole("--batch", batch, at_least=1)
    known = {
        name: kind
        for name, kind in bd.privacy.RELEASES.items()
        if issubclass(kind, PureRelease) and not kind.takes_bits
    }  # those that an epsilon and a batch make
    if release not in (*known, "all"):
        raise InputError(f"--release must be {', '.join(known)} or all; got {release!r}.")
    kinds = [*known.values()] if release == "all" else [known[release]]
    attacks: list[Callable[[Callable[[], None]], JSON]]
    if person is None:
        if delta != 0.0:
            raise InputError("--delta goes with --person: one round is pure.")
        seconds, steps = len(kinds) * len(claims) * _seconds(count, batch, exact), STEPS
        attacks = [
            partial(_attack, kind(claim, batch), claim, count, exact, seed)
            for kind in kinds
            for claim in claims
        ]
    else:
        if exact:
            raise InputError("a person is always attacked with --exact noise; leave it out.")
        slots = [whole_number("--person", text) for text in person.split(",")]
        each = sum(_person_seconds(count, batch, some) for some in slots)
        seconds, steps = len(kinds) * len(claims) * each, 1
        attacks = [
            partial(_attack_person, kind, claim, delta, some, batch, count, seed)
            for kind in kinds
            for some in slots
            for claim in claims
        ]
    announce(seconds)
    with Progress(len(attacks) * steps, label="attacking") as bar:
        rows = [attack(bar.advance) for attack in attacks]
    if chart is not None:
        from bandanna.report.charts import audit_chart, save_chart

        save_chart(audit_chart(rows), chart)
    if as_json:
        print_json({"rows": rows, "note": NO_PROOF})
    elif person is not None:
        runs = f"{rows[0]['runs']:,} runs on either input"
        _print(f"Lower bounds on a person's epsilon, {runs}", OF_PERSONS, rows)
    else:
        _print(f"Lower bounds on epsilon, {rows[0]['draws']:,} draws", OF_RELEASES, rows)
    raise typer.Exit(0 if all(row["passed"] for row in rows) else 1)


def _print(title: str, columns: dict[str, str], rows: list[JSON]) -> None:
    """Print what attacks found, and verdicts."""
    from bandanna.audits.attack import NO_PROOF

    print_table(
        f"{title}, significance {rows[0]['significance']:g}",
        [*columns, "verdict"],
        [
            [
                *(cell.format(**row) for cell in columns.values()),
                "passed" if row["passed"] else "FAILED",
            ]
            for row in rows
        ],
        NO_PROOF,
    )


def _attack(
    release: PureRelease,
    claim: float,
    draws: int,
    exact: bool,
    seed: int,
    advance: Callable[[], None],
) -> JSON:
    from bandanna.audits.policies import audit_policy
    from bandanna.audits.releases import audit_release, sampler_fit

    how: JSON = {"exact": exact, "seed": seed}
    on_release = audit_release(release, draws=draws, **how)
    advance()
    canaries = _canaries(draws, release.batch)
    on_policies = []
    for policy in (
        bd.PrivateBandit(2, claim, release=release),
        bd.PrivateExperts(3, 2, claim, algorithm="one-bit", release=release),
    ):
        runs = max(100, canaries // 20)
        on_policies.append(audit_policy(policy, batches=canaries, runs=runs, **how))
        advance()
    bandit, experts = on_policies
    fit = sampler_fit(release, draws=min(draws, 100_000), **how)
    advance()
    return {
        "release": release.name,
        "batch": release.batch,
        "claimed": claim,
        **_found(on_release),
        "audited_policy": bandit.epsilon,
        "audited_experts": experts.epsilon,
        "side_doors": [attacked.side_door for attacked in on_policies if attacked.side_door],
        "sampler_p_value": fit,
        "draws": draws,
        "passed": on_release.passed
        and fit > WRONG_SAMPLER
        and all(attacked.passed for attacked in on_policies),
    }


def _canaries(draws: int, batch: int) -> int:
    """Return how many batches of a policy are attacked."""
    return max(1000, min(20_000, draws // (50 * batch)))


def _seconds(draws: int, batch: int, exact: bool) -> float:
    """Guess how long one attack takes; what protects people is drawn slowly."""
    alone = draws * (3e-5 if exact else 1e-7)
    return 1.5 + alone + 2e-4 * batch * _canaries(draws, batch)
