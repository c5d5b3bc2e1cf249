"""``bandanna simulate --context``: policies that decide by context, on a table or a log."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bandanna._core.checks import as_float, spelled
from bandanna._core.types import InputError
from bandanna.cli.options import LogColumns, read_log, read_range, takes_group
from bandanna.cli.output import print_sample, print_table, without_nan

if TYPE_CHECKING:
    from bandanna.contextual import ContextTable


DIGITS = {"digits": 20, "digits-pixels": None}
"""Tables that come with the library, and how many components their pictures are encoded in."""


class ContextOptions(NamedTuple):
    """Options about contexts."""

    context: Annotated[
        str | None,
        typer.Option(help="Decide by context: a table of people, or digits; or a log, by --arm."),
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(help="A feature, its range or categories: age=18,90. Repeat it."),
    ] = None
    label: Annotated[
        str | None, typer.Option(help="Column with each row's best arm, which earns 1.")
    ] = None
    outcomes: Annotated[
        str | None, typer.Option(help="Columns with each arm's reward from 0 to 1: a,b,c.")
    ] = None
    html: Annotated[Path | None, typer.Option(help="With --context: write a report.")] = None


NO_CONTEXT = ContextOptions()
takes_context = takes_group("contexts", ContextOptions)
"""Gives a command an option for each of ``ContextOptions``, where it declares ``contexts``."""


class Asked(NamedTuple):
    """What is simulated."""

    epsilon: float
    delta: float
    rounds: int
    replicates: int
    seed: int


def simulate_contexts(
    options: ContextOptions,
    columns: LogColumns,
    asked: Asked,
    others: Mapping[str, object],
    *,
    replay: bool,
    as_json: bool,
) -> None:
    """Play both promises on a table, beside no privacy and the best single arm."""
    if options.context is None:
        raise InputError("--feature, --label, --outcomes and --html go with --context.")
    wrong = [name for name, value in others.items() if value is not None]
    if wrong:
        raise InputError(f"--context brings its arms and algorithms; leave out {wrong[0]}.")
    if replay:
        _replay(options, columns, asked, as_json=as_json)
        return
    from bandanna.contextual.simulation import HEADINGS, compare_promises

    table, notes = _table(options, columns, quiet=as_json)
    found = compare_promises(
        table,
        asked.epsilon,
        asked.delta,
        asked.rounds,
        replicates=asked.replicates,
        seed=asked.seed,
    )
    if options.html is not None:
        from bandanna.report.context_report import write_context_report

        name = Path(options.context).name
        command = ["bandanna", *sys.argv[1:]]
        title = f"What does deciding by context earn on {name}?"
        write_context_report(found, options.html, title=title, command=command, notes=notes)
    if as_json:
        typer.echo(json.dumps(without_nan(found.to_dict()), indent=2, allow_nan=False))
        return
    print_table(
        f"Reward by context, {asked.rounds:,} rounds, {found.arms} arms, {found.features} encoded "
        f"features, epsilon {asked.epsilon:g}, delta {asked.delta:g}, {asked.replicates} runs",
        HEADINGS,
        found.table,
        f"Rewards: {found.about}.\nThe runs are simulations: they protect nobody.",
    )
    typer.echo(found.sentence)


def _replay(options: ContextOptions, columns: LogColumns, asked: Asked, *, as_json: bool) -> None:
    """Estimate the reward of each promise from a log whose arms were drawn at random."""
    from bandanna.contextual import replay
    from bandanna.privacy.epochs import PROTECTS

    log, notes = _log(options, columns, quiet=as_json)
    chance = "chance" if columns.propensity else None
    size = asked.epsilon, asked.delta
    found = {
        protects: replay(log, _features(options), *size, protects, chance=chance, seed=asked.seed)
        for protects in PROTECTS
    }
    if as_json:
        rows = [{"protects": name, **vars(one), "about": one.about} for name, one in found.items()]
        typer.echo(json.dumps({"rows": rows, "notes": notes}, indent=2))
        return
    print_table(
        f"Reward by replay, epsilon {asked.epsilon:g}, delta {asked.delta:g}",
        ["protects", "reward", "s.e.", "rounds that count"],
        [
            [name, f"{one.reward:.3f}", f"{one.error:.4f}", f"{one.matched:,}"]
            for name, one in found.items()
        ],
        f"{next(iter(found.values())).about.capitalize()}.\n{notes[0]}",
    )


def _table(
    options: ContextOptions, columns: LogColumns, *, quiet: bool
) -> tuple[ContextTable, list[str]]:
    from bandanna.contextual import ContextTable
    from bandanna.environments.frames import read_columns

    assert options.context is not None
    ways = {"--label": options.label, "--outcomes": options.outcomes, "--arm": columns.arm}
    given = [name for name, value in ways.items() if value is not None]
    if options.context in DIGITS:
        if given or options.feature:
            raise InputError(f"{options.context} has its features and labels; leave out others.")
        from bandanna.contextual.simulation import digits_table

        return digits_table(DIGITS[options.context]), []
    if len(given) != 1:
        raise InputError(
            "with --context say what arms earn, in one way: --label, the column with each row's "
            "best arm; --outcomes, a column for each arm; or of a log --arm and --outcome."
        )
    path, features = Path(options.context), _features(options)
    if options.label is not None:
        labels = read_columns(path, [options.label])[options.label]
        return ContextTable.from_labels(path, features, labels), []  # type: ignore[arg-type]
    if options.outcomes is not None:
        import numpy as np

        names = [name.strip() for name in options.outcomes.split(",")]
        found = read_columns(path, names)
        rewards = np.stack([found[name].astype(np.float64) for name in names], axis=1)
        return ContextTable.from_rewards(path, features, rewards), []
    log, notes = _log(options, columns, quiet=quiet)
    return ContextTable.from_log(log, features), notes


def _log(
    options: ContextOptions, columns: LogColumns, *, quiet: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return a log's columns with rewards from 0 to 1, after saying what it is a sample of."""
    import numpy as np

    from bandanna.environments.frames import read_columns
    from bandanna.environments.log import UNPROTECTED

    path = Path(str(options.context))
    sample = getattr(read_log(path, columns).as_environment(), "sample", None)
    if sample is not None and not quiet:
        print_sample(sample)
    features = list(_features(options))
    chance = [columns.propensity] if columns.propensity else []
    found = read_columns(path, [*features, str(columns.arm), str(columns.outcome), *chance])
    low, high = read_range(columns.loss_range)
    outcome = found[str(columns.outcome)].astype(np.float64)
    outcome = np.clip(outcome, low, high) if columns.clip else outcome
    scaled = (outcome - low) / (high - low)
    log = {name: found[name] for name in features}
    log |= {"arm": found[str(columns.arm)], "reward": scaled if columns.reward else 1.0 - scaled}
    if columns.propensity:
        log["chance"] = found[columns.propensity]
    return log, [UNPROTECTED]


def _features(options: ContextOptions) -> dict[str, object]:
    """Read features as they are typed: two numbers are a range, anything else categories."""
    found: dict[str, object] = {}
    for text in options.feature or []:
        name, equals, listed = text.partition("=")
        parts = [part.strip() for part in listed.split(",")]
        if not equals or len(parts) < 2:
            raise InputError(
                f"--feature is a column and its range or categories, such as age=18,90 or "
                f"plan=basic,gold; got {text!r}."
            )
        numbers = [as_float(spelled(part)) for part in parts]
        whole = all(number == number for number in numbers)  # noqa: PLR0124  # NaN
        if whole and len(parts) == 2:
            found[name.strip()] = (numbers[0], numbers[1])
        else:
            found[name.strip()] = [int(n) for n in numbers] if whole else parts
    if not found:
        raise InputError(
            "with --context declare features, which are public: --feature age=18,90 --feature "
            "plan=basic,gold."
        )
    return found
