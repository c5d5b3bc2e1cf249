"""What a device can feed: one-bit algorithms in batches of one, and what central ones gain."""

from __future__ import annotations

from typing import NamedTuple, Unpack

from bandanna._core.types import JSON
from bandanna.environments import make_environment
from bandanna.policy import Bandit, Policy, PrivateBandit
from bandanna.simulation.results import statistics
from bandanna.simulation.runs import simulate
from bandanna.spec import Options
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point

OURS, THOMPSON = "local one-bit", "local Thompson sampling on bits"
GUARANTEED = ("local one-bit-exp3", "local ldp-exp3, our constants", "local ldp-exp3")
CENTRAL = ("central one-bit", "central adaptive", "central dp-klucb", "central htinf")


class Found(NamedTuple):
    """Regret of one contestant."""

    mean: float
    error: float


Table = dict[tuple[str, float, str], Found]
"""By losses, epsilon and contestant."""


def contestants(arms: int, rounds: int, epsilon: float) -> dict[str, Policy]:
    """Return local policies, those first that a device can feed with bits, then central ones."""

    def policy(algorithm: str, **options: Unpack[Options]) -> PrivateBandit:
        return PrivateBandit(arms, epsilon, rounds, algorithm, **options)

    return {
        OURS: policy("one-bit", batch=1),
        "local one-bit-exp3": policy("one-bit-exp3", batch=1),
        THOMPSON: policy("one-bit", learner="thompson", batch=1),
        "local Adaptive on bits": policy("one-bit", learner="adaptive", batch=1),
        "local ldp-exp3, our constants": policy("ldp-exp3", constants="ours"),
        "local ldp-exp3": policy("ldp-exp3"),
        "central one-bit": policy("one-bit"),
        "central adaptive": policy("adaptive"),
        "central dp-klucb": policy("dp-klucb"),
        "central htinf": policy("htinf"),
        "no privacy": Bandit(arms),
    }


def reproduce(quick: bool) -> Reproduction:
    """Compare local algorithms with each other and with central ones at the same epsilon."""
    settings = frozen_settings("local", quick)
    table = _measure(settings)
    environments = list(dict.fromkeys(environment for environment, _, _ in table))
    names = list(dict.fromkeys(name for _, _, name in table))
    rows, drawn = [], []
    for environment in environments:
        for name in names:
            cells = [table[environment, epsilon, name] for epsilon in settings["epsilon"]]
            rows.append(
                [environment, name, *(f"{one.mean:,.0f} ({one.error:,.0f})" for one in cells)]
            )
            for epsilon, (mean, error) in zip(settings["epsilon"], cells, strict=True):
                low, high = mean - 1.96 * error, mean + 1.96 * error
                drawn.append(Point(environment, name, epsilon, mean, max(low, 1.0), high))
    size = f"K = {settings['arms']}, T = {settings['rounds']:,}"
    return Reproduction(
        name="local",
        claim=f"local algorithms against each other and against central ones, {size}",
        headings=["losses", "algorithm", *(f"eps {epsilon:g}" for epsilon in settings["epsilon"])],
        rows=rows,
        verdicts=_verdicts(table, environments, settings),
        settings=settings,
        figure=Figure("What local privacy costs", "epsilon", "regret", drawn),
    )


def _measure(settings: JSON) -> Table:
    arms, rounds = settings["arms"], settings["rounds"]
    table: Table = {}
    for entry in settings["environments"]:
        options = {key: value for key, value in entry.items() if key != "name"}
        environment = make_environment(entry["name"], arms, rounds, **options)
        for epsilon in settings["epsilon"]:
            policies = contestants(arms, rounds, epsilon)
            runs = simulate(
                policies,
                environment,
                replicates=settings["replicates"],
                seed=settings["seed"],
                checkpoints=1,
            )
            for name in policies:
                found = statistics(runs.regret(name))
                key = entry["name"], epsilon, name
                table[key] = Found(found["mean"], found["standard_error"])
    return table


def _verdicts(table: Table, environments: list[str], settings: JSON) -> list[Verdict]:
    def ratio(name: str, others: tuple[str, ...], environment: str, epsilon: float) -> float:
        best = min(table[environment, epsilon, other].mean for other in others)
        return table[environment, epsilon, name].mean / best

    steady, swinging = environments
    small, *_ = epsilons = settings["epsilon"]
    large = [epsilon for epsilon in epsilons if epsilon >= settings["large"]]
    rivals = max(
        ratio(OURS, GUARANTEED, environment, one)
        for environment in environments
        for one in epsilons
    )
    ahead = max(ratio(THOMPSON, (OURS,), steady, epsilon) for epsilon in epsilons)
    behind = min(ratio(THOMPSON, (OURS,), swinging, epsilon) for epsilon in epsilons)
    prices = [ratio(OURS, CENTRAL, environment, small) for environment in environments]
    later = max(
        ratio(OURS, CENTRAL, environment, epsilon)
        for environment in environments
        for epsilon in large
    )
    return [
        Verdict(
            "of the local algorithms with a guarantee one-bit has the least regret",
            f"{rivals:.2f} times the next best's, at worst",
            f"at most {settings['rivals']:g} times",
            rivals <= settings["rivals"],
        ),
        Verdict(
            "Thompson sampling on bits has less where losses are steady, more where they swing",
            f"at most {ahead:.2f} times where steady, at least {behind:.2f} where they swing",
            f"at most {settings['steady']:g} and at least {settings['swinging']:g} times",
            ahead <= settings["steady"] and behind >= settings["swinging"],
        ),
        Verdict(
            f"at epsilon {small:g} the best central algorithm has clearly less",
            f"local one-bit has {min(prices):.2f} to {max(prices):.2f} times its regret",
            f"at least {settings['price_from']:g} times",
            min(prices) >= settings["price_from"],
        ),
        Verdict(
            f"from epsilon {settings['large']:g} on local costs little",
            f"local one-bit has at most {later:.2f} times the regret of the best central one",
            f"at most {settings['large_price']:g} times",
            later <= settings["large_price"],
        ),
    ]
