"""A study's report: one HTML file that works offline."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
from altair.typing import ChartType

from bandanna.documents import write_whole
from bandanna.report.answer import answer, listed, winners
from bandanna.report.audit_section import audit_section, read_audit
from bandanna.report.charts import audit_chart, save_chart
from bandanna.report.lead import Lead, arms_as_released, leads
from bandanna.report.study_charts import study_charts
from bandanna.report.style import in_order
from bandanna.studies.results import StudyResults
from bandanna.studies.schema import AXES, SETTINGS
from bandanna.types import JSON, Guarantee, InputError
from bandanna.version import __version__

EXPORTS = ("svg", "png", "pdf")
NUMBERS = {
    "mean": ("mean", ",.0f"),
    "standard_error": ("s.e.", ",.0f"),
    "q05": ("5%", ",.0f"),
    "q50": ("median", ",.0f"),
    "q95": ("95%", ",.0f"),
    "share_of_uniform": ("of uniform", ".1%"),
    "releases": ("releases", ",.0f"),
}


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
    try:
        write_whole(path, page)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}.") from None
    written = [path]
    if charts is not None:
        for name, chart in drawn.items():
            written.append(path.with_name(f"{path.stem}-{name.replace(' ', '-')}.{charts}"))
            save_chart(chart, written[-1])
    return written


def _render(results: StudyResults, drawn: dict[str, ChartType], attacks: JSON | None) -> str:
    from jinja2 import Environment, PackageLoader

    table = results.table()
    specs = {str(place + 1): chart.to_dict() for place, chart in enumerate(drawn.values())}
    if attacks is not None:
        specs["audit"] = audit_chart(attacks["rows"]).to_dict()
    study = results.index["study"]
    columns, rows = _table(table)
    first = leads(results)
    pages = Environment(loader=PackageLoader("bandanna.report"), autoescape=True)
    return pages.get_template("study.html").render(
        version=__version__,
        title=study.get("title") or study.get("question") or "A study of private bandits",
        kicker=study.get("title") or "Bandanna study",
        question=study.get("question") or _question(table),
        leads=_said(first),
        answer=answer(table),
        arms=_arms(results, first),
        caveats=_caveats(results, table),
        setting=_setting(results, table),
        charts=list(drawn),
        replicates=f"{study['replicates']:,}",
        columns=columns,
        rows=rows,
        skipped=_skipped(results),
        skipped_count=len(results.skipped),
        promises=_promises(table, results.guarantees()),
        audit=None if attacks is None else audit_section(attacks),
        toml=results.index["toml"],
        files=[place["file"] for place in results.index["places"].values() if place["file"]],
        bundle=_bundle(),
        # Inside a script element no text may look like the end of one.
        specs=json.dumps(specs, allow_nan=False).replace("</", "<\\/"),
    )


def _said(first: list[Lead]) -> list[str]:
    """Return the first sentences, with the environment's name where there are several."""
    if len(first) == 1:
        return [first[0].words]
    return [f"On {lead.environment}: {lead.words}" for lead in first]


def _arms(results: StudyResults, first: list[Lead]) -> list[JSON]:
    """Return what a deployed policy's releases would tell of the arms, for each environment."""
    found = []
    for lead in first:
        rows = arms_as_released(results, lead)
        if rows:
            where = f"{lead.environment}, " if len(first) > 1 else ""
            best = lead.best
            said = f"{where}{best['algorithm']} at epsilon {best['epsilon']:g}"
            outcome = lead.about.get("outcome") or "loss"
            found.append(
                {"title": f"{said}, {best['rounds']:,} rounds", "rows": rows} | {"outcome": outcome}
            )
    return found


def _bundle() -> str:
    """Return the JavaScript that draws charts, for a page that works offline."""
    import vl_convert

    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub is wrong
    return script.replace("</script", "<\\/script")


def _question(table: pl.DataFrame) -> str:
    names = in_order(table["algorithm"])
    places = table["environment"].unique(maintain_order=True).to_list()
    return f"How do {listed(names)} compare on {listed(places)}?"


def _caveats(results: StudyResults, table: pl.DataFrame) -> list[str]:
    lines = []
    if results.missing:
        lines.append(
            f"{results.missing} of {len(results.index['cells'])} cells have not been run yet; "
            f"this is what is there."
        )
    if table["mean"].min() < 0:  # type: ignore[operator]
        lines.append(
            "Regret below zero is better than every fixed arm, which is possible where the best "
            "arm changes. Such means have no place on a logarithmic axis and are left out there."
        )
    return lines


def _setting(results: StudyResults, table: pl.DataFrame) -> list[tuple[str, str]]:
    study = results.index["study"]
    shown = [("algorithms", ", ".join(in_order(table["algorithm"])))]
    for axis in SETTINGS:
        values = table[axis].drop_nulls().unique(maintain_order=True).to_list()
        if not values:
            continue
        if axis == "batch" and "batch" not in results.index["grid"]:
            continue
        shown.append((axis, ", ".join(v if isinstance(v, str) else f"{v:,}" for v in values)))
    against = table["against"].unique(maintain_order=True).to_list()
    for place, about in results.index["places"].items():
        if about["about"]:
            shown.append(("data", f"{place}: {about['about']}"))
    shown.append(("regret", f"total loss minus that of {' or '.join(against)}"))
    shown.append(("runs", f"{study['replicates']:,} of each, seed {study['seed']}"))
    return shown


def _table(table: pl.DataFrame) -> tuple[list[JSON], list[JSON]]:
    """Lay out one row for each cell; axes with one value only are said in the setting."""
    axes = [name for name in SETTINGS if table[name].n_unique() > 1 or name in ("epsilon", "batch")]
    best = set(winners(table)["cell"])
    order = {name: place for place, name in enumerate(in_order(table["algorithm"]))}
    shared = [name for name in axes if AXES[name].rivals_share]
    keys = sorted(shared, key=lambda name: AXES[name].private)  # the problem, then its privacy
    rank = pl.col("algorithm").replace_strict(order)
    sorted_rows = table.sort(*keys, rank, "batch", nulls_last=True, maintain_order=True)
    columns: list[JSON] = [{"heading": "algorithm", "word": True}]
    columns += [{"heading": axis, "word": AXES[axis].column is str} for axis in axes]
    columns += [{"heading": heading, "word": False} for heading, _ in NUMBERS.values()]
    rows = []
    for row in sorted_rows.iter_rows(named=True):
        cells = [row["algorithm"], *(_plain(row[axis]) for axis in axes)]
        cells += [_number(row[name], style) for name, (_, style) in NUMBERS.items()]
        rows.append({"cells": cells, "best": row["cell"] in best})
    return columns, rows


def _plain(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}"


def _number(value: float | None, style: str) -> str:
    if value is None or value != value:  # noqa: PLR0124  # NaN
        return "-"
    # Small regrets deserve a digit more.
    return format(value, ",.1f" if style == ",.0f" and 0 < abs(value) < 10 else style)


def _skipped(results: StudyResults) -> list[str]:
    counts = Counter(item.reason for item in results.skipped)
    return [f"{count} times: {reason}" for reason, count in counts.items()]


def _promises(table: pl.DataFrame, guarantees: dict[str, Guarantee]) -> list[JSON]:
    """Return the guarantee of every private algorithm, at its smallest epsilon in the study."""
    private = table.filter(pl.col("epsilon").is_not_null()).sort("epsilon", "rounds")
    promises = []
    for name in in_order(private["algorithm"]):
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
