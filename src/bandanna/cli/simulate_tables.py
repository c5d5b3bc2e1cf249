"""What ``bandanna simulate`` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from bandanna.cli.options import without_nan
from bandanna.cli.tables import print_table

if TYPE_CHECKING:
    from bandanna.policies import Policy
    from bandanna.simulation import Results

HEADINGS = ("algorithm", "privacy if deployed", "batch", "mean", "s.e.", "5%", "median", "95%")


def print_json(results: Results, policies: dict[str, Policy], setting: dict[str, object]) -> None:
    """Print regret and privacy as JSON."""
    rows = []
    for row in results.summary():
        policy, guard = policies[str(row["policy"])], results.guard(str(row["policy"]))
        more = {} if guard is None else {"false_alarm": guard.false_alarm}
        rows.append({**row, **more, **_privacy(policy), "ran": policy.algorithm})
    extra = {
        "segments": results.segments,
        "against": results.against,
        "about": results.about,
        "uniform_regret": float(results.uniform_regret[-1]),
        "rows": rows,
    }
    typer.echo(json.dumps(without_nan(setting | extra), indent=2, allow_nan=False))


def _privacy(policy: Policy) -> dict[str, float | str | None]:
    """Epsilon and model for one row; JSON has no infinity, so no promise is null."""
    promise = policy.guarantee
    epsilon = promise.epsilon if promise.private else None
    return {"epsilon": epsilon, "delta": promise.delta, "model": promise.model}


def print_results(
    results: Results, policies: dict[str, Policy], setting: dict[str, object]
) -> None:
    """Print regret and privacy as a table."""
    from bandanna.simulation.contestants import shown_name

    rows = []
    for row in results.summary():
        privacy = _privacy(policies[str(row["policy"])])
        promise = "none"
        if privacy["epsilon"] is not None:
            promise = f"eps {privacy['epsilon']:g} {privacy['model']}"
        if privacy["delta"]:
            promise = f"{promise}, delta {privacy['delta']:g}"
        values = [
            _number(row[key], ",.0f") for key in ("mean", "standard_error", "q05", "q50", "q95")
        ]
        values.append(_number(row["share_of_uniform"], ".1%"))
        if results.ahead is not None:
            values.append(_number(row["segment_mean"], ",.0f"))
        name = shown_name(str(row["policy"]), policies[str(row["policy"])].algorithm)
        rows.append([name, promise, f"{row['batch']:,}", *values])
    experts = f"{setting['experts']} experts, " if "experts" in setting else ""
    print_table(
        f"Regret after {setting['rounds']:,} rounds, {setting['arms']} arms, {experts}"
        f"{setting['environment']}, {setting['replicates']} runs",
        [*HEADINGS, "of uniform", *(["vs segments"] if results.ahead is not None else [])],
        rows,
        "\n".join([*_least(setting), _caption(results)]),
    )


def _least(setting: dict[str, object]) -> list[str]:
    """Say what no private algorithm can go below, where that is known."""
    if setting["least_private"] is None:
        return []
    return [
        f"Over long runs no algorithm with epsilon {setting['epsilon']:g} that is good on all "
        f"steady losses has less than {setting['least_private']:,.0f}."
    ]


def _number(value: float | str, style: str) -> str:
    return "-" if value != value else format(value, style)  # noqa: PLR0124  # NaN


def _caption(results: Results) -> str:
    lines = [
        f"Regret: loss minus that of {results.against}.",
        f"The uniform player's is {results.uniform_regret[-1]:,.0f}."
        if results.comparator != "experts"
        else f"Following experts at random (uniform) has {results.uniform_regret[-1]:,.0f}.",
    ]
    lines += [f"{note[0].upper()}{note[1:]}." for note in results.notes]
    if results.best_arm is not None and results.arm_names:
        lines.append(f"The best arm is {results.arm_names[results.best_arm]}.")
    if results.best_expert is not None and results.expert_names:
        lines.append(f"The best expert is {results.expert_names[results.best_expert]}.")
    if any(float(row["mean"]) < 0 for row in results.summary()):
        lines.append("Below zero: better than every fixed arm.")
    return "\n".join(lines)
