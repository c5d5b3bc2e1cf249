"""What phases lose in ordinary worlds and in changing ones, and against the plain A/B test."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import JSON
from bandanna.environments import Bernoulli, Environment, Segments, make_environment
from bandanna.policy import PrivateBandit
from bandanna.simulation.runs import simulate
from research import Reproduction, Verdict, frozen_settings
from research.algorithms import label
from research.figures import Figure, Point

Floats = NDArray[np.float64]

VARIANTS: dict[str, JSON] = {
    "phased": {"algorithm": "phased"},
    "no probes": {"algorithm": "phased", "probes": False},
    "with a net": {"algorithm": "phased-net"},
}
GAP = 0.1
"""How much better one arm is where all jump together."""
WOKEN = 0.25
"""How much better than the next best an arm is that has woken."""


def reproduce(quick: bool) -> Reproduction:
    """Play every problem, some with other variants, and steady ones against the A/B test."""
    settings = frozen_settings("phases", quick)
    rows, verdicts, points = [], [], []
    for problem in settings["problems"]:
        arms, rounds, epsilon = problem["size"]
        for variant in problem["variants"]:
            policy = PrivateBandit(arms, epsilon, rounds, **VARIANTS[variant])
            runs = _play(policy, problem, settings)
            mean, error, high = runs.mean, runs.error, float(np.quantile(runs.regret, 0.9))
            size = f"K {arms}, T {rounds:,}, eps {epsilon:g}"
            cells = [problem["world"], size, variant]
            rows.append([*cells, f"{mean:,.0f}", f"{error:,.0f}", f"{high:,.0f}", runs.net])
            said = "" if variant == "phased" else f", {variant}"
            verdicts += _judged(problem, variant, f"{problem['world']} ({size}{said})", runs)
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


class _Runs(NamedTuple):
    regret: Floats
    """Regret of every run."""
    played: Floats
    """The same by the mean loss of each arm played, with steady losses. It has not the variance of
    the losses themselves, which no policy can change."""
    found: float
    """Share of the runs whose regret in the last tenth of the rounds is below half of what another
    arm has there, where the best is better by ``WOKEN``."""
    alarms: float
    """Share of the runs in which the guard raised an alarm."""
    net: str
    """In how many the net took over."""

    @property
    def mean(self) -> float:
        """Mean regret."""
        return float(self.regret.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(self.regret.std(ddof=1)) / math.sqrt(self.regret.size)


def _judged(problem: JSON, variant: str, where: str, runs: _Runs) -> list[Verdict]:
    """Compare what was measured with what is allowed."""

    def allowed(what: str) -> float | None:
        found: float | None = problem.get(what, {}).get(variant)
        return found

    verdicts = []
    if (most := allowed("most")) is not None:
        measured = f"{runs.mean:,.0f} (s.e. {runs.error:,.0f})"
        verdicts.append(Verdict(where, measured, f"at most {most:,}", runs.mean <= most))
    if (most := allowed("high")) is not None:
        high = float(np.quantile(runs.played, 0.9))
        what = f"{where}: 90% quantile, arms' mean losses"
        verdicts.append(Verdict(what, f"{high:,.0f}", f"at most {most:,}", high <= most))
    if (least := allowed("found")) is not None:
        what, held = f"{where}: found by the last tenth of the rounds", runs.found >= least
        verdicts.append(Verdict(what, f"{runs.found:.1%}", f"at least {least:.0%}", held))
    if (most := allowed("alarms")) is not None:
        what, held = f"{where}: false alarms of the guard", runs.alarms < most
        verdicts.append(Verdict(what, f"{runs.alarms:.1%}", f"below {most:.0%}", held))
    return verdicts


def _play(policy: PrivateBandit, problem: JSON, settings: JSON) -> _Runs:
    """Play a problem many times."""
    (arms, rounds, _), runs = problem["size"], settings["replicates"]
    environment = world(problem["environment"], arms, rounds)
    late = rounds - rounds // 10
    found = simulate(
        {"it": policy},
        environment,
        replicates=runs,
        seed=settings["seed"],
        checkpoints=[late, rounds],
    )
    net, guard, curves = found.switched("it"), found.guard("it"), found.curves("it")
    played = curves[:, -1]
    if isinstance(environment, Bernoulli):
        means = environment.params().means[0]
        played = found.plays("it") @ (means - means.min())
    return _Runs(
        curves[:, -1],
        played,
        float(np.mean(curves[:, -1] - curves[:, 0] < 0.5 * WOKEN * (rounds - late))),
        0.0 if guard is None else guard.alarms,
        "-" if net is None else f"{net:.1%}",
    )


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
