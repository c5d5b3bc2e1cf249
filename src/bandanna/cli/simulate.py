"""``bandanna simulate``: compare algorithms by their regret over many runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna.checks import MAX_ROUNDS
from bandanna.cli.options import whole_number, without_nan
from bandanna.theory.catalogue import contestants
from bandanna.types import InputError

if TYPE_CHECKING:
    from bandanna.policies import Policy
    from bandanna.simulation import Results

HEADINGS = ("algorithm", "privacy if deployed", "batch", "mean", "s.e.", "5%", "median", "95%")


def simulate(
    arms: Annotated[
        str | None, typer.Option(help="Number of arms; 10 where the environment leaves it open.")
    ] = None,
    rounds: Annotated[str, typer.Option(help="Decisions in a run, such as 100000 or 1e6.")] = "1e5",
    epsilon: Annotated[float, typer.Option(help="Privacy parameter, above 0.")] = 0.1,
    delta: Annotated[
        float, typer.Option(help="What batched and calibrated EXP4 may spend; 0 is pure.")
    ] = 0.0,
    experts: Annotated[
        str | None, typer.Option(help="Number of experts: a problem with expert advice.")
    ] = None,
    spread: Annotated[
        bool, typer.Option("--spread", help="Experts advise distributions over arms.")
    ] = False,
    environment: Annotated[
        str | None,
        typer.Option(
            help="bernoulli (default), switching, drift, constrained, punish-repeats, "
            "punish-leader, barrier or trial. With experts: one-good (default), clustered, "
            "switching-experts; digits and trial-rules bring their own experts."
        ),
    ] = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            help=f"Comma-separated: {', '.join(contestants(advised=False))}. With experts: "
            f"{', '.join(contestants(advised=True))}, best-expert."
        ),
    ] = None,
    replicates: Annotated[
        str | None, typer.Option(help="Runs of each algorithm; 100, with experts 10.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed; the same one gives the same numbers.")] = 0,
    cores: Annotated[int | None, typer.Option(help="Threads; by default one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare algorithms by their regret over many runs."""
    horizon = whole_number("--rounds", rounds, MAX_ROUNDS)
    count = None if arms is None else whole_number("--arms", arms)
    advisers = None if experts is None else whole_number("--experts", experts)
    from bandanna.environments import advised as has_experts
    from bandanna.environments import make_environment

    advised = advisers is not None or (environment is not None and has_experts(environment))
    runs = whole_number("--replicates", replicates or ("10" if advised else "100"))
    from bandanna.simulation import simulate as run
    from bandanna.simulation.contestants import make_contestant

    if advised:
        environment = environment or "one-good"
        options = {"spread": True} if spread else {}
        source = make_environment(environment, count, horizon, advisers, **options)
        default = "auto,one-bit-conversion,one-bit-exp4,local-exp4,no-privacy,random-expert"
        names = _names(algorithms or default)
    else:
        if spread:
            raise InputError("--spread is about experts' advice; it needs --experts.")
        environment = environment or "bernoulli"
        source = make_environment(environment, count, horizon)
        names = _names(algorithms or "one-bit,htinf,ldp-exp3,no-privacy")
    policies = {name: make_contestant(name, source, epsilon, delta) for name in names}
    results = run(policies, source, replicates=runs, seed=seed, cores=cores)
    setting: dict[str, object] = {
        "environment": environment,
        "arms": source.arms,
        "rounds": horizon,
        "epsilon": epsilon,
        "replicates": runs,
        "seed": seed,
    }
    if advised:
        setting |= {"experts": getattr(source, "experts", None), "delta": delta}
    if as_json:
        uniform = float(results.uniform_regret[-1])
        rows = [{**row, **_privacy(policies[str(row["policy"])])} for row in results.summary()]
        extra = {"against": results.against, "uniform_regret": uniform, "rows": rows}
        typer.echo(json.dumps(without_nan(setting | extra), indent=2, allow_nan=False))
    else:
        _print_table(results, policies, setting)


def _names(algorithms: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in algorithms.split(",") if name.strip()))
    if not names:
        raise InputError("--algorithms names none; one-bit is a good start.")
    return names


def _privacy(policy: Policy) -> dict[str, float | str | None]:
    """Epsilon and model for one row; JSON has no infinity, so no promise is null."""
    promise = policy.recipe.release.guarantee()
    epsilon = promise.epsilon if promise.private else None
    return {"epsilon": epsilon, "delta": promise.delta, "model": promise.model}


def _print_table(results: Results, policies: dict[str, Policy], setting: dict[str, object]) -> None:
    from bandanna.cli.tables import print_table

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
        share = _number(row["share_of_uniform"], ".1%")
        chosen = policies[str(row["policy"])].algorithm
        name = f"auto: {chosen}" if row["policy"] == "auto" else str(row["policy"])
        rows.append([name, promise, f"{row['batch']:,}", *values, share])
    experts = f"{setting['experts']} experts, " if "experts" in setting else ""
    print_table(
        f"Regret after {setting['rounds']:,} rounds, {setting['arms']} arms, {experts}"
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
