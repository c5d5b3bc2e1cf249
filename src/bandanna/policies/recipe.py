"""From what a user asks for to what runs: the learner and the release of a policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bandanna import checks
from bandanna.learners import (
    LEARNERS,
    ClippedExp3,
    Exp3,
    Exp4,
    Ftpl,
    Htinf,
    Learner,
    TsallisInf,
    Uniform,
)
from bandanna.privacy import RELEASES, LaplaceRelease, OneBitRelease, PlainRelease, Release
from bandanna.theory import parameters
from bandanna.theory.one_bit import best_one_bit_batch, default_one_bit_batch
from bandanna.theory.tight_bounds import one_bit_exp3
from bandanna.types import InputError

ALGORITHMS = ("one-bit", "one-bit-exp3", "htinf", "exp3", "ftpl", "ldp-exp3", "dp-exp3-lap")
LEARNER_NAMES = ("tsallis-inf", "tsallis-inf-iw", "htinf", "exp3", "ftpl", "uniform")
ONE_BIT = ("one-bit", "one-bit-exp3")
LOCAL = ("ldp-exp3", "dp-exp3-lap")


class Recipe(NamedTuple):
    """A policy's two parts; the release knows the batch."""

    learner: Learner | Exp4
    release: Release

    @property
    def batch(self) -> int:
        """Rounds in a batch."""
        return self.release.batch


class Request(NamedTuple):
    """What a user asks for: an algorithm by name, and parts of it replaced."""

    algorithm: str
    arms: int
    epsilon: float
    rounds: int | None
    learner: Learner | str | None = None
    release: Release | str | None = None
    batch: int | None = None

    @property
    def as_published(self) -> bool:
        """Whether no part is replaced."""
        return self.learner is None and self.release is None and self.batch is None


def private_recipe(request: Request) -> Recipe:
    """Choose learner, release and batch for a named algorithm, with the caller's overrides."""
    if request.algorithm not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise InputError(f"unknown algorithm {request.algorithm!r}; there are {known}.")
    checks.epsilon(request.epsilon)
    release = _choose_release(request)
    learner = request.learner
    if learner is None:
        learner = (
            _published_learner(request) if request.as_published else _retuned(request, release)
        )
    elif isinstance(learner, str):
        learner = named_learner(learner, request.arms, request.rounds, release)
    return Recipe(learner, release)


def plain_recipe(*, arms: int, rounds: int | None, learner: Learner | str, batch: int) -> Recipe:
    """Choose the learner of a policy without privacy."""
    release = PlainRelease(checks.whole("batch", batch, at_least=1))
    if isinstance(learner, Learner):
        return Recipe(learner, release)
    return Recipe(named_learner(learner, arms, rounds, release), release)


def named_learner(name: str, arms: int, rounds: int | None, release: Release) -> Learner:
    """Make a learner by name, tuned to the number of releases it will see and their noise."""
    noise = release.noise_scale if isinstance(release, LaplaceRelease) else 0.0
    without_horizon: dict[str, Learner] = {
        "tsallis-inf": TsallisInf(arms),
        "tsallis-inf-iw": TsallisInf(arms, estimator="importance-weighted"),
        "htinf": Htinf(arms, sigma=math.sqrt(1.0 + 2.0 * noise**2)),
        "uniform": Uniform(arms),
    }
    if name in without_horizon:
        return without_horizon[name]
    if name not in LEARNER_NAMES:
        raise InputError(f"unknown learner {name!r}; there are {', '.join(LEARNER_NAMES)}.")
    losses = max(1, needed_horizon(name, rounds) // release.batch)
    if name == "ftpl":
        return Ftpl(arms, *parameters.noisy_ftpl(arms, losses, noise))
    tuned = parameters.noisy_exp3(arms, losses, noise) if noise else None
    return Exp3(arms, *(tuned or parameters.bounded_exp3(arms, losses)))


def _choose_release(request: Request) -> Release:
    epsilon, batch = request.epsilon, request.batch
    if isinstance(request.release, Release):
        return _checked_release(request.release, request)
    name = request.release or ("one-bit" if request.algorithm in ONE_BIT else "laplace")
    if name not in ("one-bit", "laplace"):
        raise InputError(
            f"unknown release {name!r}; there are one-bit and laplace. "
            f"Without privacy, use bandanna.Bandit."
        )
    if batch is None:
        batch = _default_batch(request, name)
    checks.whole("batch", batch, at_least=1)
    return OneBitRelease(epsilon, batch) if name == "one-bit" else LaplaceRelease(epsilon, batch)


def _checked_release(release: Release, request: Request) -> Release:
    """Take a release as given, unless it contradicts the rest of the request."""
    if request.batch not in (None, release.batch):
        raise InputError(
            f"batch {request.batch!r} contradicts the release given, whose batch is "
            f"{release.batch}."
        )
    promise = release.guarantee()
    if not (promise.private and 0 < promise.epsilon <= request.epsilon and promise.delta == 0):
        raise InputError(
            f"the release given promises epsilon {promise.epsilon:g} and delta {promise.delta:g}, "
            f"which is weaker than the epsilon {request.epsilon:g} asked for."
        )
    return release


def _default_batch(request: Request, release: str) -> int:
    if request.algorithm in LOCAL:
        return 1
    if release == "laplace":
        return parameters.paper_batch(request.epsilon)
    if request.learner is None and request.rounds is not None:
        size = (request.arms, request.rounds, request.epsilon)
        if request.algorithm == "one-bit":
            return best_one_bit_batch(request.rounds, request.arms, request.epsilon)
        if request.algorithm == "one-bit-exp3":
            return one_bit_exp3(*size).batch
    return default_one_bit_batch(request.epsilon)


def _published_learner(request: Request) -> Learner:
    """Return the learner exactly as the algorithm's source has it."""
    algorithm, arms, epsilon, rounds = request[:4]
    if algorithm == "one-bit":
        return TsallisInf(arms)
    if algorithm == "htinf":
        if rounds is not None:
            parameters.check_one_batch(algorithm, rounds, epsilon)
        return Htinf(arms, alpha=2.0, sigma=math.sqrt(6.0))
    size = arms, needed_horizon(algorithm, rounds), epsilon
    tuned: dict[str, Callable[[], Learner]] = {
        "one-bit-exp3": lambda: Exp3(arms, one_bit_exp3(*size).settings["learning_rate"]),
        "exp3": lambda: Exp3(arms, *parameters.exp3_corollary(*size)),
        "ftpl": lambda: Ftpl(arms, *parameters.ftpl_corollary(*size)),
        "ldp-exp3": lambda: Exp3(arms, *parameters.local_exp3(*size)),
        "dp-exp3-lap": lambda: ClippedExp3(arms, *parameters.clipped_exp3(*size)),
    }
    return tuned[algorithm]()


def _retuned(request: Request, release: Release) -> Learner:
    """Return an algorithm's learner, tuned to a release or batch that is not its own."""
    name = {"htinf": "htinf", "ftpl": "ftpl"}.get(request.algorithm, "exp3")
    if request.algorithm == "one-bit":
        # Tsallis-INF needs losses in [0, 1]; under Laplace noise HTINF takes its place.
        name = "htinf" if isinstance(release, LaplaceRelease) else "tsallis-inf"
    return named_learner(name, request.arms, request.rounds, release)


def needed_horizon(name: str, rounds: int | None, without: str = "one-bit or htinf") -> int:
    """Require a number of rounds, and say what does without."""
    if rounds is None:
        raise InputError(
            f"{name} needs to know how many rounds it will run: pass rounds=. "
            f"Without a horizon use {without}."
        )
    return rounds


def recipe_parts(learner: dict[str, Any], release: dict[str, Any]) -> list[Any]:
    """Make a recipe's parts from what their ``to_dict`` gave; everything is validated anew."""
    parts: list[Any] = []
    learners: dict[str, type[Any]] = {**LEARNERS, Exp4.name: Exp4}
    for kind, table, data in (("learner", learners, learner), ("release", RELEASES, release)):
        arguments = dict(data)
        name = arguments.pop("name", None)
        if name not in table:
            raise InputError(f"unknown {kind} {name!r}; there are {', '.join(table)}.")
        try:
            parts.append(table[name](**arguments))
        except TypeError as error:
            raise InputError(f"the {kind}'s parameters do not fit: {error}.") from None
    return parts
