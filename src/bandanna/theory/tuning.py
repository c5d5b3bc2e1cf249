"""Bounds and tunings: what a formula returns, and the search for what makes a bound smallest.

Where the paper asks for epsilon <= 1 a larger one is allowed, with the formula at 1: the batch is
then 1 and the noise only smaller than the formula assumes, so its proof still holds.

Bounds of exponential weights on losses with Laplace noise (``noisy_weights``) do not need the noise
to be small in every round, as the paper's do: its exact moments are used instead, and the
logarithms of T disappear (``research/tight-constants.md``). ``lam`` is the scale of the noise on
a loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.types import JSON, InputError
from bandanna.spec import Problem


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected regret."""

    source: str
    terms: dict[str, float]
    """What it adds up, by formula."""
    batch: int = 1
    settings: dict[str, float] = field(default_factory=dict)
    """What to run the algorithm with, where the bound chooses it."""

    @property
    def regret(self) -> float:
        """The whole bound."""
        return math.fsum(self.terms.values())


PAPER = "Asi, Raman, Talwar"
PROOF = "research/tight-constants.md"


class Tuning(NamedTuple):
    """What an algorithm runs with: its parts by name and parameters, as ``to_dict`` has them.

    Plain values, so that planning loads no compiled code; ``policies.recipe`` makes the objects.
    """

    learner: JSON
    release: JSON


class TooFewRoundsError(InputError):
    """The horizon is too short for a tuning; ``Algorithm.tuned`` says how long is enough."""


def learner(name: str, arms: int, **parameters: float) -> JSON:
    """Name a learner and its parameters."""
    return {"name": name, "arms": arms, **parameters}


def release(name: str, problem: Problem, batch: int) -> JSON:
    """Name a release of one number for each batch."""
    private = {} if name == "plain" else {"epsilon": problem.epsilon}
    return {"name": name, **private, "batch": batch}


def growing_release(problem: Problem, first: int, *, squares: bool = True) -> JSON:
    """Name the release of a learner that decides itself how long each batch is."""
    shape = {"epsilon": problem.epsilon, "batch": first, "longest": checks.MAX_ROUNDS}
    return {"name": "laplace", **shape, "squares": squares}


def paper_batch(epsilon: float) -> int:
    """Return the batch of all the paper's corollaries, ceil(1 / epsilon)."""
    return math.ceil(1.0 / epsilon)


def laplace_noise(batch: float, epsilon: float) -> float:
    """Return the scale of the Laplace noise on the mean of a batch."""
    return 1.0 / (batch * epsilon)


def one_bit_price(batch: float, epsilon: float) -> float:
    """Return ``batch / s = batch + 2 / (exp(epsilon) - 1)``: what a unit of the bits' regret costs.

    ``s`` is the slope of the bit's expectation in the batch's mean loss.
    """
    return batch - 2.0 * math.exp(-epsilon) / math.expm1(-epsilon)


def checked_batch(batch: int, problem: Problem) -> int:
    """Require a batch that ends within the rounds."""
    return checks.whole("batch", batch, 1, problem.rounds or 10**18)


def check_epsilon(problem: Problem) -> None:
    """Refuse an epsilon that the paper's statements are not about."""
    if problem.epsilon > 1.0:
        raise InputError(f"stated for epsilon up to 1; got {problem.epsilon:g}.")


def check_one_batch(name: str, problem: Problem) -> None:
    """Refuse a horizon in which not even one batch ends; the corollaries ask for 1/epsilon."""
    smallest = paper_batch(problem.epsilon)
    if problem.rounds is not None and problem.rounds < smallest:
        raise InputError(
            f"{name} needs at least 1/epsilon rounds: with epsilon {problem.epsilon:g} a batch has "
            f"{smallest} and rounds is {problem.rounds}. The smallest rounds that works is "
            f"{smallest}."
        )


def require_horizon(name: str, reason: str, problem: Problem, works: Callable[[int], bool]) -> None:
    """Refuse a horizon for which a formula does not work; ``works`` must be monotone."""
    rounds = problem.horizon(name)
    enough = smallest(works, rounds)
    if enough == rounds:
        return
    parts = [f"{problem.arms} arms"]
    if problem.with_experts:
        parts.append(f"{problem.experts} experts")
    parts.append(f"epsilon {problem.epsilon:g}")
    if problem.delta:
        parts.append(f"delta {problem.delta:g}")
    raise InputError(
        f"{name} does not work for {rounds} rounds with {', '.join(parts[:-1])} and {parts[-1]}: "
        f"{reason}. The smallest rounds that works is {enough}."
    )


def noisy_exp3(arms: int, losses: int, noise: float) -> JSON:
    """Return the paper's EXP3 for any number of losses and noise; without noise, no mixing.

    From the proof of Corollary "EXP3 Conversion", before it sets noise to 1.
    """
    if not noise:
        rate = math.sqrt(2.0 * math.log(arms) / (arms * losses))
        return learner("exp3", arms, learning_rate=rate, mixing=0.0)
    log_term = math.log(arms * losses)
    moment = 1.0 + 10.0 * max(noise, noise**2) * log_term**2
    rate = math.sqrt(math.log(arms) / (2.0 * losses * arms * moment))
    mixing = min(1.0, 4.0 * rate * noise * arms * log_term)
    return learner("exp3", arms, learning_rate=rate, mixing=mixing)


def noisy_ftpl(arms: int, losses: float, noise: float) -> JSON:
    """Return the paper's FTPL for any number of losses and noise (its Lemma)."""
    size = arms * losses
    resamples = math.sqrt(size)
    rate = min(
        math.sqrt(math.log(arms) / (size + 10.0 * size * (noise * math.log(size)) ** 2)),
        1.0 / (resamples * (1.0 + 4.0 * noise * math.log(losses))),
    )
    return learner("ftpl", arms, learning_rate=rate, resamples=math.ceil(resamples))


LEARNERS_BY_NAME: dict[str, Callable[[int, Callable[[], int], float], JSON]] = {
    "tsallis-inf": lambda arms, losses, noise: learner("tsallis-inf", arms),
    "tsallis-inf-iw": lambda arms, losses, noise: {
        **learner("tsallis-inf", arms),
        "estimator": "importance-weighted",
    },
    "htinf": lambda arms, losses, noise: learner(
        "htinf", arms, sigma=math.sqrt(1.0 + 2.0 * noise**2)
    ),
    "exp3": lambda arms, losses, noise: noisy_exp3(arms, losses(), noise),
    "ftpl": lambda arms, losses, noise: noisy_ftpl(arms, losses(), noise),
    "adaptive": lambda arms, losses, noise: learner("adaptive", arms, noise=noise),
    "kl-ucb": lambda arms, losses, noise: learner("kl-ucb", arms),
    "thompson": lambda arms, losses, noise: learner("thompson", arms),
    "uniform": lambda arms, losses, noise: learner("uniform", arms),
}
"""For a number of arms, of losses where it must be known, and the scale of their Laplace noise."""


def named_learner(name: str, problem: Problem, through: JSON) -> JSON:
    """Tune a learner to a release."""
    if name not in LEARNERS_BY_NAME:
        choices = ", ".join(LEARNERS_BY_NAME)
        raise InputError(f"unknown learner {name!r}; there are {choices}.")
    batch = int(through["batch"])

    def losses() -> int:
        return max(1, problem.horizon(name, instead="tsallis-inf or htinf") // batch)

    noise = laplace_noise(batch, through["epsilon"]) if through["name"] == "laplace" else 0.0
    return LEARNERS_BY_NAME[name](problem.arms, losses, noise)


class Weights(NamedTuple):
    """What exponential weights are tuned by."""

    learning_rate: float
    mixing: float = 0.0


class Spread(NamedTuple):
    """A constant of a bound, and the share of the noise's range that makes it smallest."""

    value: float
    theta: float


def noisy_spread(noise: float) -> Spread:
    """Return ``C(lam)``, the least ``(1/2 + lam^2) / (1 - theta^2) + lam / theta``."""
    # The minimum is where theta^3 = m (1 - theta^2)^2. Newton's method comes down to it from
    # m^(1/3) without overshooting, and any theta below 1 would do.
    m = noise / (1.0 + 2.0 * noise**2)
    theta = m ** (1.0 / 3.0)
    for _ in range(5):
        gap = 1.0 - theta**2
        theta -= (theta**3 - m * gap**2) / (3.0 * theta**2 + 4.0 * m * theta * gap)
    return Spread((0.5 + noise**2) / (1.0 - theta**2) + noise / theta, theta)


class WeightTerms(NamedTuple):
    """What exponential weights on noisy losses pay for."""

    choices: float
    variance: float
    mixing: float


def noisy_weights(
    choices: float, arms: int, losses: int, noise: float
) -> tuple[WeightTerms, dict[str, float]]:
    """Bound the regret of EXP3 and EXP4 on losses with Laplace noise, and say how to run them.

    ``choices`` is the logarithm of how many arms or experts the best is sought among.
    """
    spread = noisy_spread(noise)
    rate = math.sqrt(choices / (losses * arms * spread.value))
    mixing = rate * noise * arms / spread.theta
    if mixing > 1.0:
        raise TooFewRoundsError(f"{losses} losses are too few: its mixing would be above 1.")
    variance = rate * losses * arms * (0.5 + noise**2) / (1.0 - spread.theta**2)
    settings = {"learning_rate": rate, "mixing": mixing, "noise": noise}
    return WeightTerms(choices / rate, variance, mixing * losses), settings


GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
TOLERANCE = 1e-4
"""How far above the smallest bound a batch may be, relatively."""

NEIGHBOURS = 4


def best_batch(bound: Callable[[float, float], float], rounds: int, few: int = 32) -> int:
    """Return a batch size whose bound is smallest, up to one part in ten thousand.

    ``bound(size, count)`` is for ``count`` batches of ``size`` rounds. It must grow with both, so
    that of all sizes with the same ``count = floor(rounds / size)`` the smallest is best. Where
    there are more than ``few`` batches, it must grow less than in proportion to the count, and with
    ``count = rounds / size``, a real number, be convex in the logarithm of the size. Our bounds
    are: they are sums, products and roots of powers with positive coefficients, minimised over
    further ones.

    So the bound with the whole count is at least ``1 - size / rounds`` times the one with the real
    count, and a size is passed over only if that is not below the best one found.
    """

    def exact(size: int) -> float:
        return bound(size, rounds // size)

    def smooth(size: float) -> float:
        return bound(size, rounds / size)

    def smallest_with(count: int) -> int:
        return rounds // (count + 1) + 1

    top = rounds // (few + 1)
    if top == 0:
        return min({smallest_with(count) for count in range(1, rounds + 1)}, key=exact)
    lowest = lowest_point(lambda x: smooth(math.exp(x)), 0.0, math.log(top))
    middle = min(max(round(math.exp(lowest)), 1), top)
    near = range(max(1, middle - NEIGHBOURS), min(top, middle + NEIGHBOURS) + 1)
    sizes = {max(near[0], smallest_with(rounds // size)) for size in near}
    best = min(exact(size) for size in sizes) * (1.0 - TOLERANCE)

    def possible(size: int, largest: int) -> bool:
        return smooth(size) * (1.0 - largest / rounds) <= best

    if possible(middle, middle):
        low = smallest(lambda size: possible(size, middle), 1, middle)
        sizes |= _between(low, middle, rounds)
    start = 1
    while start <= few:  # from so many to twice as many batches, if they can be the best
        end = min(2 * start - 1, few)
        if bound(smallest_with(end), start) <= best:
            sizes |= {smallest_with(count) for count in range(start, end + 1)}
        start = end + 1
    start = middle
    while start < top:
        end = min(2 * start, top)
        if possible(start, end):
            high = smallest(lambda size, end=end: not possible(size, end), start, end)  # type: ignore[misc]
            sizes |= _between(start, high, rounds)
        start = end
    return min(sizes, key=exact)


def batch_for(problem: Problem, batch: int | None, bound: Callable[[float, float], float]) -> int:
    """Return the batch that was asked for, or the best: see ``best_batch``."""
    if batch is None:
        return best_batch(bound, problem.horizon("a bound"))
    return checked_batch(batch, problem)


def _between(low: int, high: int, rounds: int) -> set[int]:
    """Return all sizes from low to high, or the smallest for each number of batches."""
    counts = range(rounds // high, rounds // low + 1)
    if high - low < len(counts):
        return set(range(low, high + 1))
    return {max(low, rounds // (count + 1) + 1) for count in counts}


def smallest(good: Callable[[int], bool], low: int, high: int | None = None) -> int:
    """Return the smallest whole number from low on that is good, as all after it are; or high."""
    if good(low):
        return low
    if high is None:
        high = 2 * low
        while not good(high):
            low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def lowest_point(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one valley is smallest, to a ten-thousandth of the interval."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(19):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return left if at_left < at_right else right
