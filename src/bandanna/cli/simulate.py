"""``bandanna simulate``: compare algorithms by their regret over many runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna.checks import MAX_ROUNDS
from bandanna.cli.options import whole_number, without_nan
from bandanna.types import InputError

if TYPE_CHECKING:
    from bandanna.policies import BatchedBandit
    from bandanna.simulation import Results

HEADINGS = ("algorithm", "privacy if deployed", "batch", "mean", "s.e.", "5%", "median", "95%")


def simulate(
    arms: Annotated[
        str | None, typer.Option(help="Number of arms; 10 where the environment leaves it open.")
    ] = None,
    rounds: Annotated[str, typer.Option(help="Decisions in a run, such as 100000 or 1e6.")] = "1e5",
    epsilon: Annotated[float, typer.Option(help="Privacy parameter, above 0.")] = 0.1,
    environment: Annotated[
        str,
        typer.Option(
            help="bernoulli, switching, drift, constrained, punish-repeats, punish-leader, "
            "barrier or trial."
        ),
    ] = "bernoulli",
    algorithms: Annotated[
        str,
        typer.Option(
            help="Comma-separated: one-bit, htinf, exp3, ftpl, ldp-exp3, dp-exp3-lap, "
            "no-privacy, uniform."
        ),
    ] = "one-bit,htinf,ldp-exp3,no-privacy",
    replicates: Annotated[str, typer.Option(help="Runs of each algorithm.")] = "100",
    seed: Annotated[int, typer.Option(help="Seed; the same one gives the same numbers.")] = 0,
    cores: Annotated[int | None, typer.Option(help="Threads; by default one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare algorithms by their regret over many runs."""
    horizon = whole_number("--rounds", rounds, MAX_ROUNDS)
    runs = whole_number("--replicates", replicates)
    count = None if arms is None else whole_number("--arms", arms)
    from bandanna.environments import make_environment
    from bandanna.policies import make_policy
    from bandanna.simulation import simulate as run

    source = make_environment(environment, count, horizon)
    names = list(dict.fromkeys(name.strip() for name in algorithms.split(",") if name.strip()))
    policies = {name: make_policy(name, source.arms, epsilon, horizon) for name in names}
    if not policies:
        raise InputError("--algorithms names none; one-bit is a good start.")
    results = run(policies, source, replicates=runs, seed=seed, cores=cores)
    setting = {
        "environment": environment,
        "arms": source.arms,
        "rounds": horizon,
        "epsilon": epsilon,
        "replicates": runs,
        "seed": seed,
    }
    if as_json:
        uniform = float(results.uniform_regret[-1])
        rows = [{**row, **_privacy(policies[str(row["policy"])])} for row in results.summary()]
        extra = {"against": results.against, "uniform_regret": uniform, "rows": rows}
        typer.echo(json.dumps(without_nan(setting | extra), indent=2, allow_nan=False))
    else:
        _print_table(results, policies, setting)


def _privacy(policy: BatchedBandit) -> dict[str, float | str | None]:
    """Epsilon and model for one row; JSON has no infinity, so no promise is null."""
    promise = policy.recipe.release.guarantee()
    epsilon = promise.epsilon if promise.private else None
    return {"epsilon": epsilon, "delta": promise.delta, "model": promise.model}


def _print_table(
    results: Results, policies: dict[str, BatchedBandit], setting: dict[str, object]
) -> None:
    from bandanna.cli.tables import print_table

    rows = []
    for row in results.summary():
        privacy = _privacy(policies[str(row["policy"])])
        promise = f"eps {privacy['epsilon']:g} {privacy['model']}" if privacy["epsilon"] else "none"
        values = [
            _number(row[key], ",.0f") for key in ("mean", "standard_error", "q05", "q50", "q95")
        ]
        share = _number(row["share_of_uniform"], ".1%")
        rows.append([str(row["policy"]), promise, f"{row['batch']:,}", *values, share])
    print_table(
        f"Regret after {setting['rounds']:,} rounds, {setting['arms']} arms, "
        f"{setting['environment']}, {setting['replicates']} runs",
        [*HEADINGS, "of uniform"],
        rows,
        _caption(results),
    )


def _number(value: float | str, style: str) -> str:
    return "-" if value != value else format(value, style)  # noqa: PLR0124  # NaN


def _caption(results: Results) -> str:
    lines = [
        f"Regret: loss minus that of {results.against}.",
        f"The uniform player's is {results.uniform_regret[-1]:,.0f}.",
    ]
    if any(float(row["mean"]) < 0 for row in results.summary()):
        lines.append("Below zero: better than every fixed arm.")
    return "\n".join(lines)
