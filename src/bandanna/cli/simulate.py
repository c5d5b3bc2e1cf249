"""bandanna simulate: algorithms run against an environment or a log."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bandanna._core import checks
from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import ArmName, InputError
from bandanna.algorithms import contestants, find, needs_epsilon
from bandanna.cli.options import (
    NO_COLUMNS,
    NO_OUTCOMES,
    LogColumns,
    OutcomeOptions,
    Replay,
    environment_of,
    read_log,
    read_range,
    takes_log_columns,
    takes_outcomes,
    takes_spec_options,
    whole_number,
    without_log,
)
from bandanna.cli.output import announce, note_weak, print_sample, print_table, without_nan
from bandanna.cli.simulate_context import (
    NO_CONTEXT,
    Asked,
    ContextOptions,
    simulate_contexts,
    takes_context,
)
from bandanna.spec import MAX_EXPERTS, expert_names

if TYPE_CHECKING:
    from bandanna.environments import Environment, ExpertEnvironment
    from bandanna.policy import Policy
    from bandanna.simulation import Results
    from bandanna.spec import Losses


HEADINGS = ("algorithm", "privacy if deployed", "batch", "mean", "s.e.", "5%", "median", "95%")


def print_json(results: Results, policies: dict[str, Policy], setting: dict[str, object]) -> None:
    """Print regret and privacy as JSON."""
    from bandanna.simulation.baselines import price_in

    price = price_in(results, policies)
    rows = []
    for row in results.summary():
        policy, guard = policies[str(row["policy"])], results.guard(str(row["policy"]))
        more: dict[str, object] = {} if guard is None else {"false_alarm": guard.false_alarm}
        if (retired := results.retired(str(row["policy"]))) is not None:
            more |= {"retired": retired.rightly, "wrongly_retired": retired.wrongly}
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
    from bandanna.simulation.baselines import shown_name
    from bandanna.simulation.results import share_text

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
        values.append(share_text(row["share_of_uniform"]))
        if results.ahead is not None:
            values.append(_number(row["segment_mean"], ",.0f"))
        if results.shows_reward:
            values.append(_number(row["reward"], ".4g"))
        name = shown_name(str(row["policy"]), policies[str(row["policy"])].algorithm)
        rows.append([name, promise, f"{row['batch']:,}", *values])
    experts = f"{setting['experts']} experts, " if "experts" in setting else ""
    if results.sample is not None:
        print_sample(results.sample)
    print_table(
        f"Regret after {setting['rounds']:,} rounds, {setting['arms']} arms, {experts}"
        f"{setting['environment']}, {setting['replicates']} runs",
        [*HEADINGS, "of uniform", *_further_headings(results)],
        rows,
        "\n".join([*_least(setting), *_price(results, policies), _caption(results)]),
    )


def _further_headings(results: Results) -> list[str]:
    segments = ["vs segments"] if results.ahead is not None else []
    return [*segments, *(["reward"] if results.shows_reward else [])]


def _least(setting: dict[str, object]) -> list[str]:
    """Say what no private algorithm can go below, where that is known."""
    if setting["least_private"] is None:
        return []
    return [
        f"Over long runs no algorithm with epsilon {setting['epsilon']:g} that is good on all "
        f"steady losses has less than {setting['least_private']:,.0f}."
    ]


def _price(results: Results, policies: dict[str, Policy]) -> list[str]:
    """Say what privacy costs, where baselines were played."""
    from bandanna.simulation.baselines import price_in

    found = price_in(results, policies)
    return [] if found is None else [found.words]


def _number(value: float | str, style: str) -> str:
    return "-" if value != value else format(value, style)  # noqa: PLR0124  # NaN


def _caption(results: Results) -> str:
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


PolicyOptions = dict[str, Any]
NO_OPTIONS: PolicyOptions = {}
WITHOUT = "adaptive,phased,ab-test,one-bit,htinf,no-privacy"
WITH_EXPERTS = "auto,dp-klucb,one-bit-exp4,local-exp4,no-privacy,random-expert"


def _listed(algorithms: str | None) -> str | None:
    """Print the names of all algorithms if they were asked for."""
    if algorithms == "list":
        typer.echo(f"without experts: {', '.join(contestants(with_experts=False))}")
        typer.echo(f"with experts: {', '.join(contestants(with_experts=True))}, best-expert")
        raise typer.Exit
    return algorithms


@takes_spec_options
@takes_log_columns
@takes_context
@takes_outcomes
def simulate(
    arms: Annotated[
        str | None, typer.Option(help="Number of arms; 10 where the environment leaves it open.")
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(help="Decisions in a run, such as 1e6; 1e5, or what data allow."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy parameter, above 0.")] = 0.1,
    delta: Annotated[
        float, typer.Option(help="Second privacy parameter, such as 1e-6; 0 is pure.")
    ] = 0.0,
    experts: Annotated[
        str | None, typer.Option(help="Number of experts who advise, or their names: lr,rf.")
    ] = None,
    spread: Annotated[
        bool, typer.Option("--spread", help="Experts advise distributions over arms.")
    ] = False,
    environment: Annotated[
        str | None,
        typer.Option(
            help="bernoulli (default), switching, drift, constrained, trial or others of "
            "docs/reference/environments.md; or a file with every arm's loss in every round."
        ),
    ] = None,
    returning: Annotated[
        float | None,
        typer.Option(help="People come back with this probability; rounds are then slots."),
    ] = None,
    policy_options: PolicyOptions = NO_OPTIONS,
    outcome_options: OutcomeOptions = NO_OUTCOMES,
    advice: Annotated[
        str | None,
        typer.Option(
            help="What each expert advised: a file, or with a log its columns, comma-separated."
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="A log, one row a decision: .csv or .parquet."),
    ] = None,
    columns: LogColumns = NO_COLUMNS,
    replay: Replay = False,
    contexts: ContextOptions = NO_CONTEXT,
    algorithms: Annotated[
        str | None,
        typer.Option(
            callback=_listed,
            help="Comma-separated names, such as adaptive,ab-test,no-privacy; 'list' prints all.",
        ),
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option(help="any, steady or changing: also play what suits such losses."),
    ] = None,
    replicates: Annotated[
        str | None, typer.Option(help="Runs of each algorithm; 100, with experts 10.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed; the same one gives the same numbers.")] = 0,
    cores: Annotated[int | None, typer.Option(help="Threads; by default one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare the regret of algorithms in many simulated runs."""
    note_weak(epsilon, quiet=as_json)
    horizon = None if rounds is None else whole_number("--rounds", rounds, MAX_ROUNDS)
    count = None if arms is None else whole_number("--arms", arms)
    if any(contexts):
        asked = Asked(
            epsilon,
            delta,
            horizon or 100_000,
            whole_number("--replicates", replicates or "5"),
            seed,
        )
        others = {"--log": log, "--environment": environment, "--algorithms": algorithms}
        others |= {"--arms": arms, "--experts": experts}
        simulate_contexts(contexts, columns, asked, others, replay=replay, as_json=as_json)
        return
    named = _expert_names(experts)
    num_experts = len(named) or None
    source: Environment | ExpertEnvironment
    if log is not None:
        if (environment, count, num_experts) != (None,) * 3:
            raise InputError("--log brings its arms; leave out --environment and sizes.")
        source = read_log(
            log, columns, advice=advice, rounds=horizon, replay=replay
        ).as_environment()
        environment = log.name
    elif replay or any(columns._replace(loss_range=None, person=None)):  # a table has these too
        raise without_log("--log")
    elif returning is not None:
        if environment not in (None, "returning") or num_experts is not None or columns.person:
            raise InputError("--returning is an environment of its own, and without experts.")
        from bandanna.environments import make_environment

        environment = "returning"
        source = make_environment(
            environment,
            count,
            horizon or 100_000,
            returning=returning,
        )
    else:
        environment = environment or ("bernoulli" if num_experts is None else "one-good")
        source = environment_of(
            environment,
            count,
            horizon,
            num_experts,
            spread,
            advice,
            read_range(columns.loss_range),
            columns.person,
        )
        source.expert_names = source.expert_names or tuple(map(str, named))
    if spread and source.experts is None:
        raise InputError("--spread is about experts' advice; it needs --experts.")
    with_experts = source.experts is not None
    checks.whole("seed", seed, at_least=0)
    runs = whole_number("--replicates", replicates or ("10" if with_experts else "100"))
    from bandanna.simulation.comparators import least_regret

    slots = policy_options.get("per_person")
    policy_options = policy_options | outcome_options.policy
    policies, left_out = _contestants(
        _names(algorithms or (WITH_EXPERTS if with_experts else WITHOUT)),
        *(source, epsilon, delta, policy_options),
    )
    if losses is not None:
        policies[f"losses={losses}"] = _for_world(losses, source, epsilon)  # type: ignore[arg-type]
    _announce(policies, source, runs, cores)
    results = _play(policies, source, runs, seed, cores, outcome_options.means)
    setting: dict[str, object] = {
        "environment": environment,
        "arms": source.arms,
        "rounds": source.rounds,
        "epsilon": epsilon,
        "replicates": runs,
        "seed": seed,
        "least_private": None if slots else least_regret(source, epsilon),
    } | policy_options
    setting |= {"delta": delta} if slots is not None or with_experts else {}
    setting |= {"experts": getattr(source, "experts", None)} if with_experts else {}
    if as_json:
        print_json(results, policies, setting | {"left_out": left_out})
    else:
        print_results(results, policies, setting)
        typer.echo(
            "".join(f"Left out: {name}: {why}\n" for name, why in left_out.items()), nl=False
        )


def _contestants(
    names: list[str],
    source: Environment | ExpertEnvironment,
    epsilon: float,
    delta: float,
    options: Mapping[str, object],
) -> tuple[dict[str, Policy], dict[str, str]]:
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


def _announce(
    policies: dict[str, Policy],
    source: Environment | ExpertEnvironment,
    runs: int,
    cores: int | None,
) -> None:
    """Say how long it will take, after refusing what would never end."""
    from bandanna.simulation.arguments import check_size, seconds_of
    from bandanna.simulation.runs import CHECKPOINTS

    recipes = {name: policy.recipe for name, policy in policies.items()}
    check_size(recipes, source, runs, CHECKPOINTS)
    each = seconds_of(policies.values(), source.rounds)
    announce(runs * each / (cores or os.cpu_count() or 1))


def _play(
    policies: dict[str, Policy],
    source: Environment | ExpertEnvironment,
    runs: int,
    seed: int,
    cores: int | None,
    metrics: dict[str, list[float]],
) -> Results:
    """Play all; beside the strongest without privacy also the best private one without it."""
    from bandanna.simulation import simulate as run
    from bandanna.simulation.baselines import NO_PRIVACY, best_private, same_without

    results = run(policies, source, replicates=runs, seed=seed, cores=cores, metrics=metrics)
    best = best_private(results, policies)
    if best is None or NO_PRIVACY not in policies:
        return results
    same = same_without(policies[best].algorithm, source)
    if same is None or same[0] in policies:
        return results
    policies |= [same]
    more = run(dict([same]), source, replicates=runs, seed=seed, cores=cores)
    return replace(results, runs=results.runs | more.runs)


def _for_world(losses: Losses, source: Environment | ExpertEnvironment, epsilon: float) -> Policy:
    """Return what is chosen for such losses."""
    from bandanna.policy import PrivateBandit, PrivateExperts

    arms, rounds, within = source.arms, source.rounds, source.loss_range
    if source.experts is not None:
        return PrivateExperts(
            source.experts, arms, epsilon, rounds=rounds, losses=losses, loss_range=within
        )
    return PrivateBandit(arms, epsilon, rounds, losses=losses, loss_range=within)


def _expert_names(experts: str | None) -> tuple[ArmName, ...]:
    """Read a number of experts, or their names separated by commas."""
    if experts is None:
        return ()
    if "," in experts:
        return expert_names([name.strip() for name in experts.split(",")])
    return expert_names(whole_number("--experts", experts, MAX_EXPERTS))


def _names(algorithms: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in algorithms.split(",") if name.strip()))
    if not names:
        raise InputError("--algorithms names none; one-bit is a good start.")
    return names
