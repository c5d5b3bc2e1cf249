"""From what a user asks for to what runs: the learner and the release of a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from bandanna._core import checks
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import Algorithm, algorithms, find, names
from bandanna.learners import LEARNERS, DpKlucb, Exp4, FixedArm, Learner
from bandanna.privacy import RELEASES, DeviceRelease, PlainRelease, Release, SilentRelease
from bandanna.problem import Problem
from bandanna.theory.exp4 import centred_no_privacy
from bandanna.theory.one_bit import default_one_bit_batch
from bandanna.theory.stationary import dp_klucb
from bandanna.theory.tuning import Tuning, named_learner, paper_batch
from bandanna.theory.tuning import release as release_by_name

Part = TypeVar("Part")

BY_NAME = ("one-bit", "laplace", "device")
"""Releases that can be put into an algorithm by name."""


class Recipe(NamedTuple):
    """A policy's two parts; the release knows the batch."""

    learner: Learner | Exp4
    release: Release

    @property
    def batch(self) -> int:
        """Rounds in a batch."""
        return self.release.batch


class Replaced(NamedTuple):
    """Parts of an algorithm that a user replaces."""

    learner: Learner | str | None = None
    release: Release | str | None = None
    batch: int | None = None


NOTHING = Replaced()


def private_recipe(algorithm: str, problem: Problem, replaced: Replaced = NOTHING) -> Recipe:
    """Choose learner, release and batch for a named algorithm, with the caller's replacements."""
    entry = find(algorithm, advised=problem.advised)
    if not entry.private:
        known = ", ".join(names(advised=problem.advised, private=True))
        raise InputError(f"{algorithm} is not private; private are {known}.")
    checks.epsilon(problem.epsilon)
    if problem.experts == 1:
        return Recipe(FixedArm(1), SilentRelease())
    if replaced == NOTHING:
        return _kept(recipe_of(entry.tuned(problem)), problem)
    if entry.grows:
        raise InputError(
            f"{algorithm} decides its batches itself: no learner, release or batch can be replaced "
            f"in it. Pass guard=False for the algorithm as published."
        )
    if not entry.replaceable:
        conversions = [row.name for row in algorithms(advised=True) if row.replaceable]
        raise InputError(
            f"learner, release and batch can be replaced in conversions "
            f"({', '.join(conversions)}), not in {algorithm}."
        )
    if entry.over is not None:
        entry, problem = entry.over, problem.over_experts()
    return _kept(_with_replaced(entry, problem, replaced), problem)


def _kept(recipe: Recipe, problem: Problem) -> Recipe:
    """Refuse parts that promise less than was asked for, whoever put them together."""
    promise = recipe.release.guarantee()
    kept = promise.private and 0 < promise.epsilon <= problem.epsilon
    kept = kept and promise.delta <= problem.delta
    if not kept:
        raise InputError(
            f"the release given promises epsilon {promise.epsilon:g} and delta {promise.delta:g}, "
            f"which is weaker than the epsilon {problem.epsilon:g} and delta {problem.delta:g} "
            f"asked for."
        )
    return recipe


def plain_recipe(learner: Learner | str, problem: Problem, batch: int = 1) -> Recipe:
    """Choose the learner of a policy without privacy, by name or as it is."""
    release = PlainRelease(checks.whole("batch", batch, at_least=1))
    if not isinstance(learner, str):
        return Recipe(learner, release)
    if not problem.advised:
        return Recipe(_learner(named_learner(learner, problem, release.to_dict())), release)
    if problem.experts == 1 and learner != "uniform":
        return Recipe(FixedArm(1), release)
    if learner == "centred-exp4":
        return recipe_of(centred_no_privacy(problem))
    entries = {"exp4": "no-privacy", "uniform": "uniform", "random-expert": "random-expert"}
    if learner in entries:
        return recipe_of(find(entries[learner], advised=True).tuned(problem))
    return Recipe(
        _learner(named_learner(learner, problem.over_experts(), release.to_dict())), release
    )


def without_guard(recipe: Recipe, problem: Problem) -> Recipe:
    """Return DP-KLUCB as it was published; refuse other algorithms, which have no guard."""
    if not isinstance(recipe.learner, DpKlucb):
        raise InputError("guard=False is about dp-klucb; other algorithms have no guard.")
    return recipe_of(dp_klucb(problem, guard=False))


def _with_replaced(entry: Algorithm, problem: Problem, replaced: Replaced) -> Recipe:
    learner, given, batch = replaced
    if isinstance(given, Release):
        release, name = _checked_release(given, problem, batch), given.name
    else:
        name = given or entry.release
        if name not in BY_NAME and name != entry.release:
            raise InputError(
                f"unknown release {name!r}; there are {', '.join(BY_NAME)}. "
                f"Without privacy, use bandanna.Bandit."
            )
        if name == DeviceRelease.name:
            return _for_devices(entry, problem, replaced)
        if batch is None:
            batch = _default_batch(entry, problem, name, learner)
        checks.whole("batch", batch, at_least=1)
        if learner is None and name == entry.release:
            return recipe_of(entry.tuned(problem, batch))
        release = _made("release", RELEASES, release_by_name(name, problem, batch))
    if isinstance(learner, str | None):
        # Tsallis-INF needs losses in [0, 1]; under Laplace noise HTINF takes its place.
        unbounded = name == "laplace" and entry.learner == "tsallis-inf"
        own = "htinf" if unbounded else entry.learner
        made = _learner(named_learner(learner or own, problem, release.to_dict()))
        return Recipe(made, release)
    return Recipe(learner, release)


def _for_devices(entry: Algorithm, problem: Problem, replaced: Replaced) -> Recipe:
    """Return what runs on bits released here in batches of one, and let devices release them."""
    release = DeviceRelease(problem.epsilon, 1 if replaced.batch is None else replaced.batch)
    here = replaced._replace(release=release.here().name, batch=1)
    return Recipe(_with_replaced(entry, problem, here).learner, release)


def _default_batch(
    entry: Algorithm, problem: Problem, release: str, learner: Learner | str | None
) -> int:
    if entry.local:
        return 1
    if release == "laplace":
        return paper_batch(problem.epsilon)
    if learner is None and release == entry.release:
        return int(entry.tuned(problem).release["batch"])
    return default_one_bit_batch(problem.epsilon)


def _checked_release(release: Release, problem: Problem, batch: int | None) -> Release:
    """Take a release as given, unless it contradicts the rest of the request."""
    if batch not in (None, release.batch):
        raise InputError(
            f"batch {batch!r} contradicts the release given, whose batch is {release.batch}."
        )
    if release.guarantee().epsilon == 0.0:
        raise InputError("the release given tells nothing; there would be nothing to learn from.")
    return release


def recipe_of(tuning: Tuning) -> Recipe:
    """Make a recipe's parts by name and parameters; everything is validated anew."""
    return Recipe(_learner(tuning.learner), _made("release", RELEASES, tuning.release))


def recipe_around(learner: Learner, release: JSON) -> Recipe:
    """Make a recipe of a learner as it is and a release by name and parameters."""
    return Recipe(learner, _made("release", RELEASES, release))


def _learner(data: JSON) -> Learner | Exp4:
    known: dict[str, Callable[..., Learner | Exp4]] = {**LEARNERS, Exp4.name: Exp4}
    return _made("learner", known, data)


def _made(kind: str, table: Mapping[str, Callable[..., Part]], data: JSON) -> Part:
    arguments = dict(data)
    name = arguments.pop("name", None)
    if name not in table:
        raise InputError(f"unknown {kind} {name!r}; there are {', '.join(table)}.")
    try:
        return table[name](**arguments)
    except TypeError as error:
        raise InputError(f"the {kind}'s parameters do not fit: {error}.") from None
