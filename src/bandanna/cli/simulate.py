"""bandanna simulate: algorithms run against an environment or a log."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

import bandanna as bd
from bandanna._core import checks
from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.algorithms import contestants, find, needs_epsilon
from bandanna.cli.help import command
from bandanna.cli.options import (
    OF_A_LOG,
    Arm,
    Json,
    Outcome,
    Range,
    Reward,
    columns_of,
    read_log,
    read_range,
    setting,
    settings,
    whole_number,
)
from bandanna.cli.output import announce, note_weak, print_json, print_sample, print_table
from bandanna.spec import MAX_EXPERTS, expert_names, parameters

if TYPE_CHECKING:
    from bandanna.environments import Environment, ExpertEnvironment

    Source = Environment | ExpertEnvironment


def print_document(results: bd.Results, policies: dict[str, bd.Policy], setting: JSON) -> None:
    """Print regret and privacy as JSON."""
    from bandanna.simulation.baselines import price_in

    price = price_in(results, policies)
    rows = []
    for row in results.summary():
        policy, guard = policies[str(row["policy"])], results.guard(str(row["policy"]))
        more: JSON = {} if guard is None else {"false_alarm": guard.false_alarm}
        rows.append({**row, **more, **_privacy(policy), "ran": policy.algorithm})
    extra = {
        "segments": results.segments,
        "against": results.against,
        "about": results.about,
        "log": None if results.sample is None else results.sample.to_dict(),
        "uniform_regret": float(results.uniform_regret[-1]),
        "price": None if price is None else price.to_dict(),
        **({"best_reward": results.best_reward} if results.shows_reward else {}),
        "rows": rows,
    }
    print_json(setting | extra)


def _privacy(policy: bd.Policy) -> JSON:
    """Epsilon and model for one row; JSON has no infinity, so no promise is null."""
    promise = policy.guarantee
    epsilon = promise.epsilon if promise.private else None
    return {"epsilon": epsilon, "delta": promise.delta, "model": promise.model}


def print_results(results: bd.Results, policies: dict[str, bd.Policy], setting: JSON) -> None:
    """Print regret and privacy as a table."""
    from bandanna.simulation.baselines import price_in, shown_name
    from bandanna.simulation.results import share_text

    rows = []
    for row in results.summary():
        policy = policies[str(row["policy"])]
        privacy = _privacy(policy)
        promise = "none"
        if privacy["epsilon"] is not None:
            promise = f"eps {privacy['epsilon']:g} {privacy['model']}"
        if privacy["delta"]:
            promise = f"{promise}, delta {privacy['delta']:g}"
        cells = {
            "algorithm": shown_name(str(row["policy"]), policy.algorithm),
            "privacy if deployed": promise,
            "batch": f"{row['batch']:,}",
            **{title: _number(row[key], ",.0f") for title, key in NUMBERS.items()},
            "of uniform": share_text(row["share_of_uniform"]),
        }
        if results.ahead is not None:
            cells["vs segments"] = _number(row["segment_mean"], ",.0f")
        if results.shows_reward:
            cells["reward"] = _number(row["reward"], ".4g")
        rows.append(cells)
    experts = f"{setting['experts']} experts, " if "experts" in setting else ""
    captions, price = [], price_in(results, policies)
    if setting["least_private"] is not None:
        captions.append(
            f"Over long runs no algorithm with epsilon {setting['epsilon']:g} that is good on all "
            f"steady losses has less than {setting['least_private']:,.0f}."
        )
    if price is not None:
        captions.append(price.words)
    if results.sample is not None:
        print_sample(results.sample)
    print_table(
        f"Regret after {setting['rounds']:,} rounds, {setting['arms']} arms, {experts}"
        f"{setting['environment']}, {setting['replicates']} runs",
        [*rows[0]],
        [[*cells.values()] for cells in rows],
        "\n".join([*captions, _caption(results)]),
    )


NUMBERS = {"mean": "mean", "s.e.": "standard_error", "5%": "q05", "median": "q50", "95%": "q95"}
"""Columns of the table, and what is in them."""


def _number(value: float | str, style: str) -> str:
    return "-" if value != value else format(value, style)  # noqa: PLR0124  # NaN


def _caption(results: bd.Results) -> str:
    lines = [
        f"Regret: loss minus that of {results.against}.",
        f"The uniform player's is {results.uniform_regret[-1]:,.0f}."
        if results.comparator != "experts"
        else f"Following experts at random (uniform) has {results.uniform_regret[-1]:,.0f}.",
    ]
    notes = [note for note in results.notes if not note.startswith("log: ")]  # said above
    lines += [f"{note[0].upper()}{note[1:]}." for note in notes]
    if results.best_arm is not None and results.arm_names and results.sample is None:
        lines.append(f"The best arm is {results.arm_names[results.best_arm]}.")
    if any(float(row["mean"]) < 0 for row in results.summary()):
        lines.append("Below zero: better than every fixed arm.")
    return "\n".join(lines)


WITHOUT = "adaptive,phased,ab-test,one-bit,htinf,no-privacy"
WITH_EXPERTS = "auto,dp-klucb,one-bit-exp4,local-exp4,no-privacy,random-expert"
HOW_OFTEN = {"seed", "cores", "metric_means"}
"""Parameters of ``bd.simulate``; its ``metrics``, their means, have another name here."""
OF_ENVIRONMENTS = ("advice", "person", "experts", "clip")


def _listed(algorithms: str | None) -> str | None:
    """Print the names of the algorithms if they were asked for."""
    if algorithms == "list":
        for with_experts in (False, True):
            usual = contestants(with_experts=with_experts, comparison=False)
            also = [n for n in contestants(with_experts=with_experts) if n not in usual]
            also += ["best-expert"] if with_experts else []
            typer.echo(f"with{'' if with_experts else 'out'} experts: {', '.join(usual)}")
            typer.echo(f"  for comparison: {', '.join(also)}")
        raise typer.Exit
    return algorithms


@command(
    "bandanna simulate --arms 4 --rounds 1e5 --epsilon 0.5",
    "bandanna simulate visits.csv --arm plan --outcome visits --range 0,20 --reward",
)
def simulate(
    log: Annotated[
        Path | None,
        typer.Argument(help="A log, one row a decision: .csv or .parquet."),
    ] = None,
    arms: Annotated[
        str | None, typer.Option(help="Number of arms; 10 where the environment leaves it open.")
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(help="Decisions in a run, such as 1e6; 1e5, or what data allow."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy parameter, above 0.")] = 0.1,
    environment: Annotated[
        str | None,
        typer.Option(
            help="bernoulli (default), switching, drift, constrained, trial or others of "
            "docs/reference/environments.md; or a file with every arm's loss in every round."
        ),
    ] = None,
    arm: Arm = None,
    outcome: Outcome = None,
    loss_range: Range = None,
    reward: Reward = False,
    algorithms: Annotated[
        str | None,
        typer.Option(
            callback=_listed,
            help="Comma-separated names, such as adaptive,ab-test,no-privacy; 'list' prints all.",
        ),
    ] = None,
    replicates: Annotated[
        str | None, typer.Option(help="Runs of each algorithm; 100, with experts 10.")
    ] = None,
    further: Annotated[
        list[str] | None,
        setting("bd.PrivateBandit, bd.simulate or the environment: seed=4, experts=10, gap=0.3"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the regret of algorithms in many simulated runs."""
    note_weak(epsilon, quiet=as_json)
    asked = _sorted(further, environment, log)
    size = {
        "arms": None if arms is None else whole_number("--arms", arms),
        "rounds": None if rounds is None else whole_number("--rounds", rounds, MAX_ROUNDS),
        "experts": len(asked.experts) or None,
    }
    source: Source
    if log is not None:
        if (environment, size["arms"], size["experts"]) != (None,) * 3:
            raise InputError("a log brings its arms; leave out --environment and sizes.")
        source = read_log(
            log, arm, outcome, loss_range, reward=reward, rounds=size["rounds"], **asked.environment
        ).as_environment()
        environment = log.name
    elif arm or outcome or reward:
        raise InputError("--arm, --outcome and --reward are about a log; name it first.")
    else:
        environment = environment or _usual(asked)
        source = environment_of(environment, size, read_range(loss_range), asked.environment)
        source.expert_names = source.expert_names or tuple(map(str, asked.experts))
    with_experts = source.experts is not None
    runs = whole_number("--replicates", replicates or ("10" if with_experts else "100"))
    from bandanna.simulation.comparators import least_regret

    delta = float(asked.policy.pop("delta", 0.0))
    names = columns_of(algorithms or (WITH_EXPERTS if with_experts else WITHOUT))
    if not names:
        raise InputError("--algorithms names none; one-bit is a good start.")
    policies, left_out = _contestants(names, source, epsilon, delta, asked.policy)
    _announce(policies, source, runs, asked.runs.get("cores"))
    results = _play(policies, source, runs, asked.runs)
    slots = asked.policy.get("per_person")
    shown: JSON = {
        "environment": environment,
        "arms": source.arms,
        "rounds": source.rounds,
        "epsilon": epsilon,
        "replicates": runs,
        "seed": asked.runs["seed"],
        "least_private": None if slots else least_regret(source, epsilon),
    } | asked.policy
    shown |= {"delta": delta} if slots is not None or with_experts else {}
    shown |= {"experts": getattr(source, "experts", None)} if with_experts else {}
    if as_json:
        print_document(results, policies, shown | {"left_out": left_out})
        return
    print_results(results, policies, shown)
    for name, why in left_out.items():
        typer.echo(f"Left out: {name}: {why}")


class Given(NamedTuple):
    """What ``--set`` says, by whom it is for."""

    policy: JSON
    runs: JSON
    environment: JSON
    experts: tuple[ArmName, ...]


def _sorted(further: list[str] | None, environment: str | None, log: Path | None) -> Given:
    """Read ``--set``, and say of each name whether policies, runs or the environment take it."""
    from bandanna.environments import options_of

    declared = {name: one for name, one in parameters().items() if name not in OWN_OPTIONS}
    others = OF_A_LOG if log is not None else options_of(environment)
    given = settings(further, {*declared, *HOW_OFTEN, *OF_ENVIRONMENTS, *others})
    experts = given.pop("experts", None)
    if not (experts is None or isinstance(experts, list)):
        experts = whole_number("experts", str(experts), MAX_EXPERTS)
    runs = {name: given.pop(name) for name in HOW_OFTEN & set(given)}
    runs = {"seed": checks.whole("seed", runs.pop("seed", 0), at_least=0)} | runs
    policy = {
        name: declared[name].check(given.pop(name))
        for name in [*given]
        if name in declared and name not in others
    }
    return Given(policy, runs, given, () if experts is None else expert_names(experts))


OWN_OPTIONS = ("arms", "rounds", "epsilon", "experts", "algorithm", "loss_range", "losses")


def _usual(asked: Given) -> str:
    if "returning" in asked.environment:
        return "returning"
    return "one-good" if asked.experts else "bernoulli"


def environment_of(
    name: str, size: dict[str, int | None], loss_range: tuple[float, float], further: JSON
) -> Source:
    """Make an environment by name, or of files."""
    from bandanna.environments.frames import is_table
    from bandanna.studies.environments import read_source

    if is_table(name):
        further = further | {"range": loss_range}
    else:
        for column in ("person", "advice", "clip"):
            if column in further:
                raise InputError(
                    f"{column} is a column of data; name a log, or a file --environment."
                )
        if loss_range != (0.0, 1.0):
            raise InputError(f"environment {name!r} has losses from 0 to 1; leave out --range.")
    return read_source({"name": name, **further}, Path()).make(**size)


def _contestants(
    names: list[str], source: Source, epsilon: float, delta: float, options: JSON
) -> tuple[dict[str, bd.Policy], dict[str, str]]:
    """Return what plays, and why others cannot; an unknown name is a mistake, and refused.

    So is what no private algorithm can do.
    """
    from bandanna.simulation.baselines import make_contestant

    with_experts = source.experts is not None
    known, policies, left_out = contestants(with_experts=with_experts), {}, {}
    for name in names:
        if name not in known:
            find(name, with_experts=with_experts)
        try:
            policies[name] = make_contestant(name, source, epsilon, delta, **options)
        except InputError as error:
            left_out[name] = str(error)
    if left_out and not any(map(needs_epsilon, policies)):  # it is the question that does not fit
        raise InputError(next(iter(left_out.values())))
    return policies, left_out


def _announce(policies: dict[str, bd.Policy], source: Source, runs: int, cores: int | None) -> None:
    """Say how long it will take, after refusing what would never end."""
    from bandanna.simulation.arguments import check_size, seconds_of
    from bandanna.simulation.runs import CHECKPOINTS

    recipes = {name: policy.recipe for name, policy in policies.items()}
    check_size(recipes, source, runs, CHECKPOINTS)
    each = seconds_of(policies.values(), source.rounds)
    announce(runs * each / (cores or os.cpu_count() or 1))


def _play(policies: dict[str, bd.Policy], source: Source, runs: int, how: JSON) -> bd.Results:
    """Play all; beside the strongest without privacy also the best private one without it."""
    from bandanna.simulation.baselines import NO_PRIVACY, best_private, same_without

    same_runs = {"replicates": runs, "seed": how["seed"], "cores": how.get("cores")}
    results = bd.simulate(policies, source, **same_runs, metrics=how.get("metric_means"))
    best = best_private(results, policies)
    if best is None or NO_PRIVACY not in policies:
        return results
    same = same_without(policies[best].algorithm, source)
    if same is None or same[0] in policies:
        return results
    policies |= [same]
    more = bd.simulate(dict([same]), source, **same_runs)
    return replace(results, runs=results.runs | more.runs)
