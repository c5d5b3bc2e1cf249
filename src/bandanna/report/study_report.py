"""A study's report: one HTML file that works offline."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
from altair.typing import ChartType

from bandanna._core.documents import write_whole
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.report.answer import answer, listed
from bandanna.report.audit_section import audit_section, read_audit
from bandanna.report.caveats import caveats
from bandanna.report.charts import audit_chart, save_chart
from bandanna.report.lead import Lead, arms_as_released, leads
from bandanna.report.numbers import numbers_table
from bandanna.report.study_charts import study_charts
from bandanna.report.style import in_order
from bandanna.studies.results import StudyResults
from bandanna.studies.schema import SETTINGS
from bandanna.version import __version__

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
    columns, rows = numbers_table(table)
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
        caveats=caveats(results, table),
        setting=_setting(results, table),
        charts=list(drawn),
        replicates=f"{study['replicates']:,}",
        columns=columns,
        rows=rows,
        skipped=_skipped(results),
        skipped_count=len(results.skipped),
        promises=_promises(table, results.guarantees(), [lead.best["algorithm"] for lead in first]),
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


def _skipped(results: StudyResults) -> list[str]:
    counts = Counter(item.reason for item in results.skipped)
    return [f"{count} times: {reason}" for reason, count in counts.items()]


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
