"""The command line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna.types import BandannaError, InputError
from bandanna.version import __version__

if TYPE_CHECKING:
    from bandanna.policies import BatchedBandit
    from bandanna.simulation import Results

app = typer.Typer(
    help="Differentially private adversarial bandits.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

NO_PRIVACY, UNIFORM = "no-privacy", "uniform"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bandanna {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Differentially private adversarial bandits."""


@app.command()
def simulate(
    arms: Annotated[
        int | None, typer.Option(help="Number of arms; 10 where the environment leaves it open.")
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
    replicates: Annotated[int, typer.Option(help="Runs of each algorithm.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed; the same one gives the same numbers.")] = 0,
    cores: Annotated[int | None, typer.Option(help="Threads; by default one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare algorithms by their regret over many runs."""
    horizon = whole_number("--rounds", rounds)
    from bandanna.environments import make_environment
    from bandanna.simulation import simulate as run

    source = make_environment(environment, arms, horizon)
    names = list(dict.fromkeys(name.strip() for name in algorithms.split(",") if name.strip()))
    policies = {name: _policy(name, source.arms, epsilon, horizon) for name in names}
    if not policies:
        raise InputError("--algorithms names none; one-bit is a good start.")
    results = run(policies, source, replicates=replicates, seed=seed, cores=cores)
    setting = {
        "environment": environment,
        "arms": source.arms,
        "rounds": horizon,
        "epsilon": epsilon,
        "replicates": replicates,
        "seed": seed,
    }
    if as_json:
        uniform = float(results.uniform_regret[-1])
        rows = [{**row, **_privacy(policies[str(row["policy"])])} for row in results.summary()]
        extra = {"against": results.against, "uniform_regret": uniform, "rows": rows}
        typer.echo(json.dumps(setting | extra, indent=2))
    else:
        _print_table(results, policies, setting)


def whole_number(option: str, text: str) -> int:
    """Read a count that may be written as 1e6."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not (1 <= number <= 1e15 and number.is_integer()):
        raise InputError(f"{option} must be a whole number such as 100000 or 1e6; got {text!r}.")
    return int(number)


def _policy(name: str, arms: int, epsilon: float, rounds: int) -> BatchedBandit:
    from bandanna.policies import ALGORITHMS, Bandit, PrivateBandit

    if name == NO_PRIVACY:
        return Bandit(arms)
    if name == UNIFORM:
        return Bandit(arms, learner="uniform")
    if name not in ALGORITHMS:
        known = ", ".join((*ALGORITHMS, NO_PRIVACY, UNIFORM))
        raise InputError(f"unknown algorithm {name!r}; there are {known}.")
    return PrivateBandit(arms, epsilon, rounds, name)


def _privacy(policy: BatchedBandit) -> dict[str, float | str | None]:
    """Epsilon and model for one row; JSON has no infinity, so no promise is null."""
    promise = policy.recipe.release.guarantee()
    epsilon = promise.epsilon if promise.private else None
    return {"epsilon": epsilon, "delta": promise.delta, "model": promise.model}


def _print_table(
    results: Results, policies: dict[str, BatchedBandit], setting: dict[str, object]
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=(
            f"Regret after {setting['rounds']:,} rounds, {setting['arms']} arms, "
            f"{setting['environment']}, {setting['replicates']} runs"
        ),
        caption=_caption(results),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("algorithm")
    table.add_column("privacy if deployed")
    for heading in ("batch", "mean", "± s.e.", "5%", "median", "95%", "of uniform"):
        table.add_column(heading, justify="right")
    for row in results.summary():
        privacy = _privacy(policies[str(row["policy"])])
        promise = f"eps {privacy['epsilon']:g} {privacy['model']}" if privacy["epsilon"] else "none"
        numbers = [f"{row[key]:,.0f}" for key in ("mean", "standard_error", "q05", "q50", "q95")]
        share = f"{row['share_of_uniform']:.1%}"
        table.add_row(str(row["policy"]), promise, f"{row['batch']:,}", *numbers, share)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


def _caption(results: Results) -> str:
    lines = [
        f"Regret: loss minus that of {results.against}.",
        f"The uniform player's is {results.uniform_regret[-1]:,.0f}.",
    ]
    if any(float(row["mean"]) < 0 for row in results.summary()):
        lines.append("Below zero: better than every fixed arm.")
    return "\n".join(lines)


def main() -> None:
    """Run the command line; a mistake of the user's gets a sentence, not a traceback."""
    try:
        app()
    except BandannaError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
