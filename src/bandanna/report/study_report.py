"""The report of a study as one HTML page that needs no network."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
from altair.typing import ChartType

from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.algorithms import find
from bandanna.environments.log import AS_TRUE, UNPROTECTED
from bandanna.planner.plan import row_of
from bandanna.report.charts import audit_chart, save_chart
from bandanna.report.headline import Headline, answer, arms_as_released, leads, listed, winners
from bandanna.report.page import render, write_page
from bandanna.report.study_charts import study_charts
from bandanna.report.style import in_order
from bandanna.simulation.baselines import SAME, shown_name
from bandanna.simulation.results import share_text
from bandanna.spec import Problem
from bandanna.studies.contexts import CONTEXTUAL
from bandanna.studies.results import StudyResults
from bandanna.studies.schema import AXES, SETTINGS

NUMBER_COLUMNS = {
    "mean": ("mean", ",.0f"),
    "standard_error": ("s.e.", ",.0f"),
    "q05": ("5%", ",.0f"),
    "q50": ("median", ",.0f"),
    "q95": ("95%", ",.0f"),
    "share_of_uniform": ("of uniform", ".1%"),
    "segment_mean": ("against segments", ",.0f"),
    "releases": ("releases", ",.0f"),
    "answered": ("named a best arm", ".1%"),
    "rounds_to_answer": ("rounds to answer", ",.0f"),
    "wrong_answers": ("wrong answers", ".1%"),
    "retired": ("retired by guardrails", ".1%"),
    "wrongly_retired": ("wrongly retired", ".1%"),
}
OPTIONAL = (
    *("segment_mean", "answered", "rounds_to_answer", "wrong_answers"),
    *("retired", "wrongly_retired"),
)
"""Columns that are left out where no cell has them."""


def guaranteed(row: JSON, about: JSON) -> str:
    """Return the regret that a cell's private algorithm guarantees, as ``plan`` does.

    It is in the units of the environment, whose range ``about`` has.
    """
    if row["epsilon"] is None or row["ran"] in CONTEXTUAL:  # none is proved
        return "-"
    # Plan has bounds for slots; metrics take a share of epsilon, and a control one of the rounds.
    if row.get("per_person") is not None or row.get("options") is not None:
        return "-"
    size = row["arms"], row["rounds"], row["epsilon"]
    problem = Problem(*size, row["experts"], row["delta"] or 0.0)
    experts, constants = problem.with_experts, row.get("constants")
    planned = row_of(find(row["ran"], with_experts=experts, constants=constants), problem)
    if planned.bound is None or row["batch"] not in (None, planned.bound.batch):
        return "-"
    low, high = about.get("range") or (0.0, 1.0)
    return "says nothing" if planned.vacuous else f"{planned.regret * (high - low):,.0f}"


def numbers_table(
    table: pl.DataFrame, environments: JSON | None = None
) -> tuple[list[JSON], list[JSON]]:
    """Lay out one row for each cell; axes with one value only are said in the setting."""
    axes = [name for name in SETTINGS if table[name].n_unique() > 1 or name in ("epsilon", "batch")]
    best = set(winners(table)["cell"])
    order = {name: index for index, name in enumerate(in_order(table["algorithm"]))}
    shared = [name for name in axes if AXES[name].shown.rivals_share]
    keys = sorted(shared, key=lambda name: AXES[name].shown.private)  # the problem comes first
    rank = pl.col("algorithm").replace_strict(order)
    sorted_rows = table.sort(*keys, rank, "batch", nulls_last=True, maintain_order=True)
    shown = {
        name: how
        for name, how in NUMBER_COLUMNS.items()
        if name not in OPTIONAL or table[name].count() > 0
    }
    columns: list[JSON] = [{"heading": "algorithm", "word": True}]
    columns += [{"heading": axis, "word": AXES[axis].column is str} for axis in axes]
    columns += [{"heading": heading, "word": False} for heading, _ in shown.values()]
    columns.append({"heading": "guaranteed at most", "word": False})
    rows = []
    for row in sorted_rows.iter_rows(named=True):
        cells = [shown_name(row["algorithm"], row["ran"]), *(_plain(row[axis]) for axis in axes)]
        cells += [_number(row[name], style) for name, (_, style) in shown.items()]
        cells.append(guaranteed(row, (environments or {}).get(row["environment"], {})))
        rows.append({"cells": cells, "best": row["cell"] in best})
    return columns, rows


def _plain(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}"


def _number(value: float | None, style: str) -> str:
    if value is None or value != value:  # noqa: PLR0124  # NaN
        return "-"
    if style == ".1%":
        return share_text(value)
    # Small regrets deserve a digit more.
    return format(value, ",.1f" if style == ",.0f" and 0 < abs(value) < 10 else style)


def caveats(results: StudyResults, table: pl.DataFrame) -> list[str]:
    """Return sentences about what is missing, what changes and what guards said."""
    lines = []
    if results.missing:
        lines.append(
            f"{results.missing} of {len(results.index['cells'])} cells have not been run yet; "
            f"this is what is there."
        )
    if table["mean"].min() < 0:  # type: ignore[operator]
        lines.append(
            "Regret below zero is better than every fixed arm, which is possible where the best "
            "arm changes or depends on the context. Such means cannot be shown on a logarithmic "
            "axis and are left out there."
        )
    return lines + _changes(table)


def _changes(table: pl.DataFrame) -> list[str]:
    """Say where the best arm changes, and what guards made of the losses."""
    lines = []
    changing = table.filter(pl.col("segment_mean").is_not_null()).unique(
        ["environment", "rounds", "arms", "experts"], maintain_order=True
    )
    for row in changing.iter_rows(named=True):
        best = "expert" if row["best_expert"] is not None else "arm"
        lines.append(
            f"On {row['environment']} the best {best} changes: {row['rounds']:,} rounds have "
            f"{row['segments']:,} segments, and playing the best {best} of each loses "
            f"{row['segment_mean'] - row['mean']:,.0f} less than the best fixed one. The column "
            f"'against segments' has the regret against that."
        )
    guarded = table.filter(pl.col("alarms").is_not_null(), ~pl.col("algorithm").str.ends_with(SAME))
    share = pl.col("alarms")
    alarms = guarded.group_by("environment", "algorithm", maintain_order=True).agg(
        low=share.min(), high=share.max(), chance=pl.col("false_alarm").max()
    )
    for environment, algorithm, low, high, chance in alarms.iter_rows():
        often = f"{high:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
        often = f"{often} of the runs" if high else "none of the runs"
        lines.append(
            f"{algorithm} is for steady losses. On {environment} its guard raised an alarm in "
            f"{often}. A false alarm has probability at most {chance:g} in a run."
        )
    return lines


def read_audit(path: Path) -> JSON:
    """Read what ``bandanna audit --json`` printed, and refuse anything else."""
    try:
        data: JSON = json.loads(path.read_text(encoding="utf-8"))
        for row in data["rows"]:
            _ = row["release"], float(row["claimed"]), float(row["audited"]), row["passed"]
            _ = float(row["audited_policy"]), data["note"]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not what bandanna audit --json prints.") from None
    return data


def audit_section(attacks: JSON) -> JSON:
    """Say what was attacked and what came of it."""
    rows = attacks["rows"]
    failed = sum(not row["passed"] for row in rows)
    verdict = "none was disproved" if not failed else f"{failed} were DISPROVED"
    names = listed(list(dict.fromkeys(row["release"] for row in rows)))
    sentence = f"We attacked {len(rows)} claims of the releases {names}: {verdict}."
    return {"sentence": sentence, "note": attacks["note"]}


EXPORTS = ("svg", "png", "pdf")


def write_report(
    results: StudyResults,
    path: str | Path,
    *,
    audit: str | Path | None = None,
    charts: str | None = None,
) -> list[Path]:
    """Write the report, and if asked every chart by itself; returns what was written.

    Parameters
    ----------
    results
        The results of a study, finished or not.
    path
        The HTML file.
    audit
        A file with what ``bandanna audit --json`` printed, to be shown as well.
    charts
        Also write each chart beside the report as ``svg``, ``png`` or ``pdf``.
    """
    path = Path(path)
    if charts is not None and charts not in EXPORTS:
        raise InputError(f"charts can be written as {', '.join(EXPORTS)}; got {charts!r}.")
    attacks = None if audit is None else read_audit(Path(audit))
    drawn = study_charts(results)
    page = _render(results, drawn, attacks)
    write_page(path, page)
    written = [path]
    if charts is not None:
        for name, chart in drawn.items():
            written.append(path.with_name(f"{path.stem}-{name.replace(' ', '-')}.{charts}"))
            save_chart(chart, written[-1])
    return written


def _render(results: StudyResults, drawn: dict[str, ChartType], attacks: JSON | None) -> str:
    table = results.table()
    shown = {str(index + 1): chart for index, chart in enumerate(drawn.values())}
    if attacks is not None:
        shown["audit"] = audit_chart(attacks["rows"])
    study = results.index["study"]
    columns, rows = numbers_table(table, results.environments)
    first = leads(results)
    names = in_order(table["algorithm"])
    places = table["environment"].unique(maintain_order=True).to_list()
    reasons = Counter(item.reason for item in results.skipped)
    return render(
        "study.html",
        shown,
        title=study.get("title") or study.get("question") or "A study of private bandits",
        kicker=study.get("title") or "Bandanna study",
        question=study.get("question") or f"How do {listed(names)} compare on {listed(places)}?",
        leads=said(first),
        answer=answer(table),
        arms=_arms(results, first),
        samples=[
            {"environment": name, **about["sample"]}
            for name, about in results.environments.items()
            if about.get("sample")
        ],
        unprotected=f"{UNPROTECTED} {AS_TRUE}",
        caveats=caveats(results, table),
        setting=_setting(results, table),
        charts=list(drawn),
        replicates=f"{study['replicates']:,}",
        columns=columns,
        rows=rows,
        skipped=[f"{count} times: {reason}" for reason, count in reasons.items()],
        skipped_count=len(results.skipped),
        promises=_promises(table, results.guarantees(), [lead.best["algorithm"] for lead in first]),
        audit=None if attacks is None else audit_section(attacks),
        toml=results.index["toml"],
        files=[about["file"] for about in results.environments.values() if about["file"]],
    )


def said(first: list[Headline]) -> list[str]:
    """Return the first sentences, with the environment's name where there are several."""
    if len(first) == 1:
        return [first[0].words]
    return [f"On {lead.environment}: {lead.words}" for lead in first]


def _arms(results: StudyResults, first: list[Headline]) -> list[JSON]:
    """Return what a deployed policy's releases would tell of the arms, for each environment."""
    arms = []
    for lead in first:
        if rows := arms_as_released(results, lead):
            where, best = f"{lead.environment}, " if len(first) > 1 else "", lead.best
            said = f"{where}{best['algorithm']} at epsilon {best['epsilon']:g}"
            title, outcome = f"{said}, {best['rounds']:,} rounds", lead.about.get("outcome")
            arms.append({"title": title, "rows": rows, "outcome": outcome or "loss"})
    return arms


def _setting(results: StudyResults, table: pl.DataFrame) -> list[tuple[str, str]]:
    study = results.index["study"]
    shown = [("algorithms", ", ".join(in_order(table["algorithm"])))]
    for axis in SETTINGS:
        values = table[axis].drop_nulls().unique(maintain_order=True).to_list()
        if values and (axis != "batch" or "batch" in results.index["grid"]):
            shown.append((axis, ", ".join(map(_plain, values))))
    against = table["against"].unique(maintain_order=True).to_list()
    for name, about in results.environments.items():
        if about["about"]:
            shown.append(("data", f"{name}: {about['about']}"))
    shown.append(("regret", f"total loss minus that of {' or '.join(against)}"))
    shown.append(("runs", f"{study['replicates']:,} of each, seed {study['seed']}"))
    return shown


def _promises(table: pl.DataFrame, guarantees: dict[str, Guarantee], led: list[str]) -> list[JSON]:
    """Return the guarantee of every private algorithm, at its smallest epsilon in the study.

    Those that the report speaks about first come first.
    """
    private = table.filter(pl.col("epsilon").is_not_null()).sort("epsilon", "rounds")
    promises = []
    for name in dict.fromkeys([*led, *in_order(private["algorithm"])]):
        cells = private.filter(pl.col("algorithm") == name)
        promise = guarantees[cells["cell"][0]]
        entries = [("protects", promise.protects), ("mechanism", promise.mechanism)]
        entries.append(("because", promise.because))
        entries += [("assumes", assumption) for assumption in promise.assumptions]
        headline = f"epsilon = {promise.epsilon:g}, delta = {promise.delta:g} ({promise.model})"
        epsilons = cells["epsilon"].unique().sort()
        if len(epsilons) > 1:
            headline += f"; likewise for {listed([f'{value:g}' for value in epsilons[1:]])}"
        promises.append({"name": name, "headline": headline, "entries": entries})
    return promises
