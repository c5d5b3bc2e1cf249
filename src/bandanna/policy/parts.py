"""From a Spec to what runs: the algorithm, its learner and its release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from bandanna._core import checks
from bandanna._core.checks import MAX_EPSILON
from bandanna._core.documents import to_text
from bandanna._core.start import Start, StartArm
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import (
    AUTO,
    STEADY,
    Algorithm,
    algorithms,
    check_changes,
    find,
    names,
    resolve,
)
from bandanna.learners import (
    LEARNERS,
    CompiledLearner,
    Exp4,
    ExpertLearner,
    FixedArm,
    Learner,
)
from bandanna.learners.prior import PriorArm
from bandanna.planner.plan import (
    CONVERTED,
    FEW_EXPERTS,
    largest_batch,
    plan,
    problem_of_slot,
)
from bandanna.policy.state import MOST_IN_PHASES
from bandanna.privacy import RELEASES, DeviceRelease, PlainRelease, Release, SilentRelease
from bandanna.privacy.certificate import verify
from bandanna.privacy.columns import Columns
from bandanna.privacy.composition import for_person, slot_for
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.metrics import shares_of
from bandanna.privacy.sums import SumRelease
from bandanna.privacy.vector_sums import EstimateRelease
from bandanna.spec import Problem, Spec
from bandanna.theory.exp4 import centred_no_privacy
from bandanna.theory.phases import ab_test, few_rounds
from bandanna.theory.stationary import LONGEST, RACE, dp_klucb, race
from bandanna.theory.tsallis import default_one_bit_batch
from bandanna.theory.tuning import Tuning, named_learner, paper_batch
from bandanna.theory.tuning import release as release_by_name

Part = TypeVar("Part")

PHASED = "phased"
OWN_BATCHES = (PHASED, "ab-test", RACE)
"""Algorithms that decide their batches and can be played without privacy: with means as they are,
and lengths for the largest epsilon."""

BY_NAME = ("one-bit", "laplace", "device")
"""Releases that can be put into an algorithm by name."""


class Recipe(NamedTuple):
    """A policy's two parts; the release knows the batch."""

    learner: Learner | ExpertLearner
    release: Release

    @property
    def batch(self) -> int:
        """Rounds in a batch."""
        return self.release.batch


def follows_experts(recipe: Recipe, experts: int | None) -> bool:
    """Whether each batch follows one expert: a bandit learner over experts."""
    return experts is not None and not isinstance(recipe.learner, ExpertLearner)


def weighs_in_batches(recipe: Recipe) -> bool:
    """Whether a batch releases an estimate for each expert."""
    return isinstance(recipe.release, EstimateRelease)


# --- from a Spec to a recipe ------------------------------------------------------------------


class Resolved(NamedTuple):
    """A Spec whose algorithm is named, what runs it, and why it was chosen."""

    spec: Spec
    recipe: Recipe
    why: str


def private_parts(spec: Spec) -> Resolved:
    """Choose the algorithm of a private policy, its learner, release and batch."""
    checks.epsilon(spec.epsilon)
    spec, why = _with_experts(spec) if spec.experts is not None else _without_experts(spec)
    problem = _after_first(spec, outcome_problem(spec))
    recipe = _within_people(private_recipe(spec, problem), spec, problem)
    recipe = _with_options(recipe, spec, problem)
    if not spec.guard:
        recipe = _without_guard(recipe, problem)
    if spec.algorithm == RACE:
        width = spec.counted_range[1] - spec.counted_range[0]
        share = min(spec.tolerance / width, 1.0)
        asked = _race_settings(spec, problem) | {"tolerance": share}
        recipe = recipe_of(race(problem, confidence=spec.confidence, **asked))
    if spec.start is not None:
        recipe = _started(recipe, spec, spec.start)
    recipe = _without_squares(recipe, spec)
    _check_outcomes(spec, recipe)
    return Resolved(fitted(spec, recipe), recipe, f"{why} {too_few(spec)}".strip())


def too_few(spec: Spec) -> str:
    """Say that nobody learns much in so few private rounds; empty where they are enough."""
    if spec.kind != "PrivateBandit" or spec.experts is not None:
        return ""
    return few_rounds(outcome_problem(spec))


def _race_settings(spec: Spec, problem: Problem) -> JSON:
    """Return what a race's evidence rests on, and its first batch where people have slots."""
    evidence = "binary" if spec.binary else "squares"
    if spec.interval == "proved":
        return {"evidence": "proved" if spec.binary else "bounded"}
    if spec.rule is None:
        return {"evidence": evidence}
    return {"evidence": evidence, "opening": math.ceil(2.0 / problem.epsilon)}


def _started(recipe: Recipe, spec: Spec, start: Start) -> Recipe:
    """Return a recipe whose learner knows the releases of a log before its first round."""
    learner = recipe.learner
    if not getattr(learner, "starts", False) or getattr(learner, "budget", None) is not None:
        raise InputError(
            f'start_from= is for phased, dp-klucb, ab-test and goal="answer", which keep sums of '
            f"each arm; {spec.algorithm} has no use for them."
        )
    if start.loss_range != spec.loss_range:
        raise InputError(
            f"the log that start_from= is about has outcomes from {start.loss_range[0]:g} to "
            f"{start.loss_range[1]:g}; make the policy with loss_range= just that."
        )
    bad = [one for one in verify(to_text(start.certificate)) if not one.holds]
    if bad:
        raise InputError(
            f"the certificate in start_from= does not hold: {bad[0].entry}: {bad[0].why}."
        )
    at_start = start.of(spec.arms)
    if not at_start:
        logged = ", ".join(repr(arm.name) for arm in start.arms)
        own = ", ".join(map(repr, spec.arms))
        raise InputError(f"no arm of the log that start_from= is about, {logged}, is one of {own}.")
    prior = [list(_prior_of(at_start.get(arm), start)) for arm in range(len(spec.arms))]
    return _with_learner(recipe, prior=prior)


def _prior_of(arm: StartArm | None, start: Start) -> PriorArm:
    if arm is None:
        return PriorArm()
    told = arm.total / arm.rows, arm.releases, start.scale, arm.square / arm.rows
    return PriorArm(arm.rows, *told)


def _check_outcomes(spec: Spec, recipe: Recipe) -> None:
    """Refuse metrics, guardrails and a control where a policy cannot keep them."""
    learner = recipe.learner
    if spec.metrics and recipe.release.takes_bits:
        raise InputError("devices send one bit for an event and no metrics: leave out metrics=.")
    if spec.adjust and recipe.release.takes_bits:
        raise InputError("devices send one bit for an event, from which nothing is subtracted.")
    if spec.finds and not (isinstance(learner, CompiledLearner) and learner.phases):
        raise InputError(
            f"a range or a slope is found by the first phase, and {learner.name} plays none: use "
            f"phased-net, phased or ab-test, or give loss_range=, slope= and adjusted_range=."
        )
    if columns := columns_of(spec, recipe.release):
        columns.guarantee(recipe.release.guarantee())  # refuses releases that they cannot go with
    if not spec.guardrails:
        return
    if not (isinstance(learner, CompiledLearner) and learner.phases and learner.per_arm):
        raise InputError(
            f"guardrails compare arms that were played at the same time, as in phases; "
            f"{learner.name} plays one arm for a batch, and what changes for all arms from batch "
            f"to batch would retire harmless ones. Use phased, phased-net or ab-test."
        )
    if len(spec.arms) > MOST_IN_PHASES:
        raise InputError(f"guardrails are for at most {MOST_IN_PHASES} arms.")


def _without_experts(spec: Spec) -> tuple[Spec, str]:
    if spec.rule is None and spec.delta != 0.0:
        raise InputError("a delta is of use with per_person= only: one slot is pure.")
    if spec.goal == "answer":
        return _for_an_answer(spec), "The goal is an answer: race finds the best arm first."
    problem = spec.problem.but(delta=0.0)
    if spec.start is not None and spec.algorithm is spec.losses is None and not spec.replaced:
        return spec.but(
            algorithm=PHASED
        ), "phased starts from the log, and watches whether it fits."
    name, problem, why = resolve(spec.algorithm, spec.losses, problem, in_parts=spec.replaced)
    probes = spec.probes and spec.losses != STEADY
    changes = {"changes": problem.changes, "memory": problem.memory}
    return spec.but(algorithm=name, probes=probes, **changes), why


def _for_an_answer(spec: Spec) -> Spec:
    """Return a Spec whose algorithm is the race for the best arm."""
    if spec.algorithm not in (None, RACE) or spec.losses not in (None, "steady") or spec.replaced:
        raise InputError(
            f'goal="answer" runs {RACE}, which is for steady losses and decides its batches: '
            f"leave out algorithm=, losses=, learner=, release= and batch=."
        )
    return spec.but(algorithm=RACE)


def _with_experts(spec: Spec) -> tuple[Spec, str]:
    asked = None if spec.algorithm == AUTO else spec.algorithm
    name, problem, why = resolve(asked, spec.losses, spec.problem, in_parts=spec.replaced)
    if name == AUTO:
        name, why = _choose_algorithm(spec)
        check_changes(name, problem)
    return spec.but(algorithm=name, changes=problem.changes, memory=problem.memory), why


def _choose_algorithm(spec: Spec) -> tuple[str, str]:
    """Return the algorithm with experts to expect the least regret of, and why."""
    if spec.num_experts == 1:
        return CONVERTED, "There is one expert: it is followed, and nothing is learned."
    if spec.replaced:
        return CONVERTED, "A learner, release or batch goes with following one expert at a time."
    if spec.rounds is None:
        return FEW_EXPERTS, f"{FEW_EXPERTS} does without rounds=; its regret is bounded as it runs."
    planned = plan(spec.problem, per_person=spec.per_person, people=spec.people)
    return planned.auto


def slot_problem(spec: Spec) -> Problem:
    """Return the problem that parts are tuned to: of a round, or of one slot of a person."""
    problem = spec.problem if spec.experts is not None else spec.problem.but(delta=0.0)
    if spec.per_person is None:
        return problem
    if spec.experts is None:
        each = slot_for(spec.epsilon, spec.delta, spec.per_person)
        return problem.but(epsilon=each.epsilon)
    return problem_of_slot(problem, spec.per_person, row_of_catalogue(spec))


def outcome_problem(spec: Spec) -> Problem:
    """Return the problem of the main outcome, which shares epsilon with the metrics."""
    problem = slot_problem(spec)
    if spec.metrics is None:
        return problem
    return problem.but(epsilon=shares_of(*_divided(spec, problem)).outcome)


FIRST, WITH_SLOPE = 180.0, 360.0
"""Rounds of a first phase that finds how outcomes are counted, times epsilon: for a range, and for
a range and a slope."""

LONGEST_FIRST, SHORTEST_FIRST = 0.25, 8
"""Share of the rounds expected, or of the people there are, that it has at most; and its least."""


def rounds_of_first(spec: Spec) -> int:
    """Return how many rounds, or slots, find how outcomes are counted."""
    slopes = spec.adjust is not None and spec.slope is None
    rounds = math.ceil((WITH_SLOPE if slopes else FIRST) / outcome_problem(spec).epsilon)
    for there in (spec.rounds, spec.people):
        if there is not None:
            rounds = min(rounds, max(math.floor(LONGEST_FIRST * there), SHORTEST_FIRST))
    return rounds


def _after_first(spec: Spec, problem: Problem) -> Problem:
    """Return the problem of the rounds that are left once it is found how to count."""
    if not spec.finds or problem.rounds is None:
        return problem
    return problem.but(rounds=max(problem.rounds - rounds_of_first(spec), 1))


def columns_of(spec: Spec, release: Release) -> Columns | None:
    """Return what a policy releases of each arm beside its losses; None where that is nothing."""
    if spec.metrics is None:
        return Columns.of(release)
    return Columns.of(release, spec.metrics, shares_of(*_divided(spec, slot_problem(spec))).each)


def _without_squares(recipe: Recipe, spec: Spec) -> Recipe:
    """Release no squares of outcomes that are 0 or 1: their means say how much they vary."""
    release = recipe.release
    if not spec.binary or not isinstance(release, LaplaceRelease) or not release.squares:
        return recipe
    return recipe._replace(release=release.alone())


def _divided(spec: Spec, problem: Problem) -> tuple[float, int, float]:
    return problem.epsilon, len(spec.metrics or {}), spec.metrics_share


def algorithm_of(spec: Spec) -> str:
    """Return the algorithm of a Spec in which it has been chosen."""
    assert spec.algorithm is not None, "the algorithm has not been chosen"
    return spec.algorithm


def row_of_catalogue(spec: Spec) -> Algorithm:
    """Return the row of the catalogue of a Spec in which the algorithm has been chosen."""
    experts = spec.experts is not None
    return find(algorithm_of(spec), with_experts=experts, constants=spec.constants)


def private_recipe(spec: Spec, problem: Problem) -> Recipe:
    """Choose learner, release and batch for a named algorithm, with the caller's replacements."""
    algorithm, entry = algorithm_of(spec), row_of_catalogue(spec)
    if not entry.private:
        usual = names(with_experts=problem.with_experts, private=True, comparison=False)
        raise InputError(f"{algorithm} is not private; private are {', '.join(usual)}.")
    checks.epsilon(problem.epsilon)
    if problem.experts == 1:
        return Recipe(FixedArm(1), SilentRelease())
    if not spec.replaced:
        return _kept(recipe_of(entry.tuned(problem)), problem)
    if entry.grows:
        raise InputError(
            f"{algorithm} decides its batches itself: no learner, release or batch can be replaced "
            f"in it. Pass guard=False for the algorithm as published."
        )
    if not entry.replaceable:
        following = [row.name for row in algorithms(with_experts=True) if row.replaceable]
        raise InputError(
            f"learner, release and batch can be replaced where each batch follows one expert "
            f"({', '.join(following)}), not in {algorithm}."
        )
    if entry.over is not None:
        entry, problem = entry.over, problem.over_experts()
    return _kept(_with_replaced(entry, problem, spec), problem)


def _within_people(recipe: Recipe, spec: Spec, problem: Problem) -> Recipe:
    """Return a recipe whose batches people can fill, unless the user chose them.

    Algorithms that choose their batches themselves are left as they are: batches that do not fill
    close early, see ``Batch.full``.
    """
    if spec.per_person is None:
        return recipe
    most = largest_batch(problem.rounds, spec.per_person, spec.people)
    chosen = spec.batch is not None or isinstance(spec.release, Release)
    entry = row_of_catalogue(spec)
    if most is None or recipe.batch <= most or chosen or not entry.replaceable:
        return recipe
    return private_recipe(spec.but(batch=most), problem)


def _kept(recipe: Recipe, problem: Problem) -> Recipe:
    """Refuse parts that promise less than was asked for."""
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
    if not problem.with_experts:
        return _plain_bandit(learner, problem, release)
    if problem.experts == 1 and learner != "uniform":
        return Recipe(FixedArm(1), release)
    if learner == "centred-exp4":
        return recipe_of(centred_no_privacy(problem))
    entries = {"exp4": "no-privacy", "uniform": "uniform", "random-expert": "random-expert"}
    if learner in entries:
        return recipe_of(find(entries[learner], with_experts=True).tuned(problem))
    return Recipe(
        _learner(named_learner(learner, problem.over_experts(), release.to_dict())), release
    )


def _plain_bandit(learner: str, problem: Problem, release: PlainRelease) -> Recipe:
    """Return a learner by name on the losses themselves."""
    if learner not in OWN_BATCHES:
        return Recipe(_learner(named_learner(learner, problem, release.to_dict())), release)
    if release.batch != 1:
        raise InputError(f"{learner} decides how long arms are kept: leave out batch=.")
    recipe = recipe_of(find(learner, with_experts=False).tuned(problem.but(epsilon=MAX_EPSILON)))
    if learner == RACE:  # nothing but sums is published
        recipe = recipe_of(race(problem.but(epsilon=MAX_EPSILON), evidence="proved", opening=1))
    return Recipe(recipe.learner, PlainRelease(recipe.batch, checks.MAX_ROUNDS))


def _with_options(recipe: Recipe, spec: Spec, problem: Problem) -> Recipe:
    """Return a recipe with what is said of probes and exploration; refuse it of others."""
    if not spec.probes:
        if not hasattr(recipe.learner, "probes"):
            raise InputError("probes=False is about phased; other algorithms have no probes.")
        recipe = _with_learner(recipe, probes=False, budget=None)  # a net needs probes
    if spec.explore is not None:
        if not hasattr(recipe.learner, "explore"):
            raise InputError("explore= is about ab-test; other algorithms do not use it.")
        recipe = recipe_of(ab_test(problem, explore=spec.explore))
    return recipe


def _without_guard(recipe: Recipe, problem: Problem) -> Recipe:
    """Return an algorithm without its guard; refuse those that have none."""
    if not hasattr(recipe.learner, "guard"):
        raise InputError(
            "guard=False is about dp-klucb and phased; other algorithms have no guard."
        )
    if recipe.learner.name == "dp-klucb":  # its first batches are single rounds then
        return recipe_of(dp_klucb(problem, guard=False))
    return _with_learner(recipe, guard=False)


def _with_learner(recipe: Recipe, **changes: object) -> Recipe:
    """Return a recipe whose learner has other parameters."""
    saved: JSON = recipe.learner.to_dict() | changes
    return recipe._replace(learner=_learner(saved))


def _with_replaced(entry: Algorithm, problem: Problem, spec: Spec) -> Recipe:
    learner, given, batch = spec.learner, spec.release, spec.batch
    assert isinstance(learner, Learner | str | None)
    if isinstance(given, Release):
        release, name = _checked_release(given, batch), given.name
    else:
        name = str(given or entry.release)
        if name not in BY_NAME and name != entry.release:
            raise InputError(
                f"unknown release {given!r}; there are {', '.join(BY_NAME)}. "
                f"Without privacy, use bandanna.Bandit."
            )
        if name == DeviceRelease.name:
            return _for_devices(entry, problem, spec)
        if batch is None:
            batch = _default_batch(entry, problem, name, learner)
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


def _for_devices(entry: Algorithm, problem: Problem, spec: Spec) -> Recipe:
    """Return what runs on bits released here in batches of one, and let devices release them."""
    release = DeviceRelease(problem.epsilon, 1 if spec.batch is None else spec.batch)
    here = spec.but(release=release.in_process().name, batch=1)
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


def _checked_release(release: Release, batch: int | None) -> Release:
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


def _learner(data: JSON) -> Learner | ExpertLearner:
    known: dict[str, Callable[..., Learner | ExpertLearner]] = {**LEARNERS, Exp4.name: Exp4}
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


# --- which parts belong together --------------------------------------------------------------


def check_parts(recipe: Recipe, arms: int, experts: int | None, rounds: int | None) -> None:
    """Refuse a learner and a release that do not belong together, or to the problem."""
    learner, release = recipe
    if isinstance(learner, ExpertLearner):
        good = (learner.experts, learner.arms) == (experts, arms)
        good = good and release.suits(learner.experts, learner.arms, learner.mixing)
    else:
        good = learner.arms == (arms if experts is None else experts)
        good = good and isinstance(release, SumRelease)
        if getattr(learner, "grows", False):
            decides = LaplaceRelease | PlainRelease
            longest = release.longest if isinstance(release, decides) else None
            good = good and longest is not None and longest >= LONGEST
            # A round of a phase is in the sum of its arm, not of an expert.
            good = good and (experts is None or not getattr(learner, "phases", False))
    if not good or (release.takes_bits and experts is not None):
        who = "" if experts is None else f" and {experts} experts"
        raise InputError(
            f"{learner.name} and a {release.name} release do not make a policy for {arms} "
            f"arms{who}."
        )
    if rounds is not None and recipe.batch > rounds:
        raise InputError(
            f"batches of {recipe.batch} are longer than the {rounds} rounds expected: nothing "
            f"would ever be released. Use a smaller batch, more rounds or a larger epsilon."
        )


def fitted(spec: Spec, recipe: Recipe) -> Spec:
    """Return a Spec whose rule for people its parts can keep.

    Learners that weigh experts credit each round by its own advice: there a slot is one round.
    """
    people = spec.rule
    if people is None:
        return spec
    if recipe.release.takes_bits:
        raise InputError("devices keep their persons' budgets themselves: leave out per_person=.")
    # This refuses what the release cannot keep.
    promise, columns = recipe.release.guarantee(), columns_of(spec, recipe.release)
    promise = promise if columns is None else columns.guarantee(promise)
    for_person(promise, people.epsilon, people.delta, people.per_person)
    if not isinstance(recipe.learner, ExpertLearner):
        return spec
    if people.rounds_per_slot not in (None, 1):
        raise InputError(
            f"{spec.algorithm} credits every round by its own advice, so rounds_per_slot is 1; got "
            f"{people.rounds_per_slot}. Algorithms that follow one expert take longer slots."
        )
    return spec.but(rounds_per_slot=1)
