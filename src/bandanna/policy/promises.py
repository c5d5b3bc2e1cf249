"""What a policy promises: its guarantee, the certificate of it, and its bound on regret."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.algorithms import Algorithm, algorithms
from bandanna.planner.plan import Plan, Row, capped, largest_batch, plan, row_of
from bandanna.policy.first_phase import FirstPhase
from bandanna.policy.parts import Recipe, algorithm_of, follows_experts, recipe_of, row_of_catalogue
from bandanna.policy.state import State
from bandanna.privacy import Release
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.privacy.charges import (
    assuming_before,
    assuming_first,
    assuming_start,
    before_entries,
    charged,
    first_entries,
    start_entries,
)
from bandanna.privacy.columns import Columns
from bandanna.privacy.composition import for_person
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.statements import (
    ARMS_CHANGED,
    PUBLIC_ADVICE,
    PUBLIC_ARMS,
    PUBLIC_EXPOSURES,
    assumed_by_all,
    protected,
)
from bandanna.spec import Problem, Spec

if TYPE_CHECKING:
    from bandanna.privacy.range import PrivateRange


class Exposed(NamedTuple):
    """Whose losses they are, where others decide and phases are counted elsewhere."""

    epsilon: float
    """What is promised to a person."""
    per_person: int | None
    """In how many phases a person counts; None: the promise is for a person's part in a phase."""


def promise_of(
    spec: Spec,
    recipe: Recipe,
    release: Release,
    state: State,
    columns: Columns | None = None,
    *,
    once: bool = False,
    exposed: Exposed | None = None,
) -> Guarantee:
    """Return what is promised about one round's feedback, or one person's, and why.

    ``once`` is what a single release promises, however often the policy was resumed.
    """
    promise = release.guarantee()
    promise = promise if columns is None else columns.guarantee(promise)
    if not promise.private:
        return promise
    people = spec.rule
    slots = people.per_person if people else exposed.per_person if exposed else None
    ends, clip = (spec.loss_range, spec.clip) if spec.scale is None else (spec.scale.ends, True)
    first = FirstPhase.of(spec)
    if first is not None:
        promise = assuming_first(promise, first.rounds)
    promise = promise.assuming(
        *assumed_by_all(*ends, clip=clip, slots=slots, in_epochs=release.in_epochs),
        *([] if exposed is None else [PUBLIC_EXPOSURES]),
        *recipe.learner.assumptions,
        *([PUBLIC_ARMS] if state.restricted else []),
        *([ARMS_CHANGED] if state.changed else []),
    )
    if people is not None and not release.in_epochs:
        promise = for_person(promise, people.epsilon, people.delta, people.per_person)
    elif exposed is not None and exposed.per_person is not None:
        promise = for_person(promise, exposed.epsilon, 0.0, exposed.per_person)
    elif follows_experts(recipe, spec.num_experts):
        promise = replace(promise, protects=protected(algorithm_of(spec), spec.num_experts))
    if state.resumed and not once:
        promise = promise.repeated(state.resumed + 1)
    if spec.start is not None:
        promise = assuming_start(promise, spec.start.epsilon, state.resumed + 1 if once else 1)
    if spec.adjust is not None:
        times = state.resumed + 1 if once else 1
        promise = assuming_before(promise, spec.adjust, spec.before_epsilon, times)
    known = spec.experts is None or PUBLIC_ADVICE in promise.assumptions
    return promise if known else promise.assuming(PUBLIC_ADVICE)


def certificate_of(
    spec: Spec, state: State, promise: Guarantee, bought: PrivateRange | None = None
) -> JSON:
    """Return a policy's guarantee as a document, with what its range cost if it was bought.

    ``promise`` is that of a single release.
    """
    low, high = spec.counted_range
    size = len(spec.arms), spec.num_experts
    setting = Setting(state.identity, algorithm_of(spec), *size, low, high)
    also, start, first = {}, spec.start, FirstPhase.of(spec)
    if start is not None:
        also = start_entries(start.certificate, promise.epsilon, state.resumed + 1)
    if spec.adjust is not None:
        known = spec.adjust, spec.before_epsilon
        also |= before_entries(*known, promise.epsilon, state.resumed + 1)
    if first is not None:
        also |= first_entries(first.rounds, first.parts)
    if bought is None:
        return charged(make_certificate(promise, setting, also), state.resumed)
    if also:
        raise InputError(
            "one certificate tells of a bought range, of a log at the start or of what is "
            "subtracted, not of several."
        )
    if state.resumed:
        raise InputError(
            "its file was resumed more than once: there is nothing to certify with a bought range."
        )
    if bought.loss_range != spec.loss_range or not spec.clip:
        raise InputError(
            f"the range bought is {bought.low:g} to {bought.high:g}; make the policy with "
            f"loss_range= just that and clip=True."
        )
    return make_certificate(bought.said_of(promise), setting, bought.entries(promise.epsilon))


def plan_of(spec: Spec, recipe: Recipe, problem: Problem) -> Plan:
    """Return the plan for a policy's problem, and what the policy itself guarantees.

    That is the bound of whichever algorithm, at the policy's batch, has just these parts.
    """
    own, made, rule = own_row(spec, recipe, problem), plan(problem), spec.rule
    if rule is not None:
        most = largest_batch(problem.rounds, rule.per_person, rule.people) or 1
        rows = sorted(capped(made.rows, most), key=lambda row: row.regret)
        made = replace(made, rows=rows)
    return replace(made, own=own)


def own_row(spec: Spec, recipe: Recipe, problem: Problem) -> Row:
    """Return what a policy with these parts guarantees for a problem, or why nothing."""
    algorithm, entry = algorithm_of(spec), row_of_catalogue(spec)
    recipe = _bare(recipe._replace(release=recipe.release.in_process()))
    rows = [
        row for entry in algorithms(with_experts=problem.with_experts) for row in entry.versions
    ]
    same = [
        row_of(candidate, problem, batch)
        for candidate in (entry, *(row for row in rows if row != entry))
        for batch in (None, recipe.batch)
        if candidate.release == recipe.release.name and _makes(candidate, problem, batch, recipe)
    ]
    unknown = "no bound is known for it with the parts that were replaced."
    same.append(Row(algorithm, entry, problem, None, unknown))
    return next((row for row in same if row.bound is not None), same[0])


def _bare(recipe: Recipe) -> Recipe:
    """Return a recipe without squares beside its sums: they change no bound."""
    release = recipe.release
    return (
        recipe._replace(release=release.alone()) if isinstance(release, LaplaceRelease) else recipe
    )


def _makes(entry: Algorithm, problem: Problem, batch: int | None, recipe: Recipe) -> bool:
    try:
        return _bare(recipe_of(entry.tuned(problem, batch))) == recipe
    except InputError:
        return False


def knows_its_noise(recipe: Recipe) -> bool:
    """Whether the bound that a learner keeps is about the noise that its releases have."""
    release, noise = recipe.release, getattr(recipe.learner, "noise", None)
    if noise is None or not isinstance(release, LaplaceRelease):
        return True
    return float(noise) * release.batch * release.epsilon >= 1.0
