"""What phases lose in ordinary worlds and in changing ones, and against the plain A/B test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import JSON
from bandanna.environments import Bernoulli, Environment, Segments, make_environment
from bandanna.policy import PrivateBandit
from bandanna.reproduce.algorithms import label
from bandanna.reproduce.verdicts import Reproduction, Verdict, frozen_settings
from bandanna.simulation.runs import simulate
from bandanna.studies.figure import Figure, Point

Floats = NDArray[np.float64]

VARIANTS: dict[str, JSON] = {
    "phased": {"algorithm": "phased"},
    "no probes": {"algorithm": "phased", "probes": False},
    "with a net": {"algorithm": "phased-net"},
}
GAP = 0.1
"""How much better one arm is where all jump together."""


def reproduce(quick: bool) -> Reproduction:
    """Play every problem, some with other variants, and steady ones against the A/B test."""
    settings = frozen_settings("phases", quick)
    rows, verdicts, points = [], [], []
    for problem in settings["problems"]:
        arms, rounds, epsilon = problem["size"]
        for variant, most in problem["most"].items():
            policy = PrivateBandit(arms, epsilon, rounds, **VARIANTS[variant])
            regret, played, net = _play(policy, problem, settings)
            mean, error = float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(regret.size)
            high = float(np.quantile(regret, 0.9))
            size = f"K {arms}, T {rounds:,}, eps {epsilon:g}"
            cells = [problem["world"], size, variant]
            rows.append([*cells, f"{mean:,.0f}", f"{error:,.0f}", f"{high:,.0f}", net])
            said = "" if variant == "phased" else f", {variant}"
            verdicts.append(
                Verdict(
                    f"{problem['world']} ({size}{said})",
                    f"{mean:,.0f} (s.e. {error:,.0f})",
                    f"at most {most:,}",
                    mean <= most,
                )
            )
            if variant in problem.get("high", {}):
                found, allowed = float(np.quantile(played, 0.9)), problem["high"][variant]
                verdicts.append(
                    Verdict(
                        f"{problem['world']} ({size}{said}): 90% quantile, arms' mean losses",
                        f"{found:,.0f}",
                        f"at most {allowed:,}",
                        found <= allowed,
                    )
                )
            half = 1.96 * error
            points.append(Point(problem["world"], variant, epsilon, mean, mean - half, mean + half))
    return Reproduction(
        name="phases",
        claim="what phased loses against the best fixed arm, one setting for all",
        headings=["losses", "problem", "variant", "mean", "s.e.", "90%", "net"],
        rows=rows,
        verdicts=[*verdicts, *_against(settings)],
        settings=settings,
        figure=Figure("Regret of phased", "epsilon", "regret", points),
    )


def _play(policy: PrivateBandit, problem: JSON, settings: JSON) -> tuple[Floats, Floats, str]:
    """Return the regret of every run, the same by arms' mean losses, how often the net took over.

    The second counts the mean loss of each arm played. It has not the variance of the losses
    themselves, which no policy can change; with steady losses.
    """
    runs, seed = settings["replicates"], settings["seed"]
    environment = world(problem["environment"], problem["size"][0], problem["size"][1])
    found = simulate({"it": policy}, environment, replicates=runs, seed=seed, checkpoints=1)
    net, regret = found.switched("it"), found.regret("it")
    played = regret
    if isinstance(environment, Bernoulli):
        means = environment.params().means[0]
        played = found.plays("it") @ (means - means.min())
    return regret, played, "-" if net is None else f"{net:.1%}"


def world(options: JSON, arms: int, rounds: int) -> Environment:
    """Return an environment: one with a name, or pieces that are made here."""
    if "name" in options:
        own = {key: value for key, value in options.items() if key != "name"}
        made = make_environment(options["name"], arms, rounds, **own)
        assert isinstance(made, Environment)
        return made
    pieces = options["pieces"]
    means = np.random.default_rng(0).random((pieces, arms))
    if "jump" in options:
        means = np.full((pieces, arms), 0.5) + options["jump"] * (np.arange(pieces) % 2)[:, None]
        means[:, 1] -= GAP
        means -= 0.2
    return Segments(means, np.full(pieces, rounds // pieces), bernoulli=True)


def _against(settings: JSON) -> list[Verdict]:
    """Compare with the plain A/B test, over all steady problems and on the worst."""
    against = settings["against"]
    verdicts = []
    for explore in against["explore"]:
        ratios = {}
        for arms, rounds, epsilon in against["sizes"]:
            policies = {
                "phased": PrivateBandit(arms, epsilon, rounds, "phased"),
                "ab-test": PrivateBandit(arms, epsilon, rounds, "ab-test", explore=explore),
            }
            for options in against["environments"]:
                environment = world(options, arms, rounds)
                runs, seed = settings["replicates"], settings["seed"]
                found = simulate(policies, environment, replicates=runs, seed=seed, checkpoints=1)
                ratio = found.regret("phased").mean() / found.regret("ab-test").mean()
                ratios[f"{label(options)}, {arms} arms"] = float(ratio)
        whole = math.exp(np.mean(np.log(list(ratios.values()))))
        where, worst = max(ratios.items(), key=lambda pair: pair[1])
        for what, ratio, most in (
            ("over all steady problems", whole, against["on_the_whole"]),
            (f"on the worst of them, {where}", worst, against["on_one"]),
        ):
            verdicts.append(
                Verdict(
                    f"phased {what}: times the A/B test that explores {explore:.0%}",
                    f"{ratio:.2f} times",
                    f"at most {most:g} times",
                    ratio <= most,
                )
            )
    return verdicts
