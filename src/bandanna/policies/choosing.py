"""A policy asks the planner: which algorithm to run, and what it guarantees with its parts."""

from __future__ import annotations

from dataclasses import replace

from bandanna._core.types import InputError
from bandanna.algorithms import Algorithm, algorithms, find
from bandanna.planner.plan import Plan, Row, capped, largest_batch, plan, row_of
from bandanna.policies.people import PeopleRule
from bandanna.policies.recipe import Recipe, Replaced, private_recipe, recipe_of
from bandanna.privacy import Release
from bandanna.problem import Problem

CONVERTED = "one-bit-conversion"


def choose_algorithm(
    problem: Problem, *, replaced: bool, rule: PeopleRule | None = None
) -> tuple[str, str]:
    """Return the algorithm with experts that has the smallest guarantee, and why it was chosen.

    With a rule for people the problem's epsilon and delta are a person's.
    """
    if problem.experts == 1:
        return CONVERTED, "There is one expert: it is followed, and nothing is learned."
    if replaced:
        return CONVERTED, "Conversions are what takes a learner, release or batch."
    if problem.rounds is None:
        return CONVERTED, "Without rounds= there is no bound to compare others by."
    each = (None, None) if rule is None else (rule.per_person, rule.people)
    found = plan(problem, per_person=each[0], people=each[1])
    if found.best.vacuous:
        return CONVERTED, f"{found.why} A conversion follows the experts all the same."
    return found.best.algorithm, found.why


def within_people(
    recipe: Recipe, algorithm: str, problem: Problem, replaced: Replaced, rule: PeopleRule
) -> Recipe:
    """Return a recipe whose batches people can fill, unless the user chose them.

    Algorithms that choose their batches themselves are left as they are: batches that do not fill
    close by ``short.sealed``.
    """
    most = largest_batch(problem.rounds, rule.per_person, rule.people)
    chosen = replaced.batch is not None or isinstance(replaced.release, Release)
    entry = find(algorithm, advised=problem.advised)
    if most is None or recipe.batch <= most or chosen or not entry.replaceable:
        return recipe
    return private_recipe(algorithm, problem, replaced._replace(batch=most))


def plan_of(
    algorithm: str, recipe: Recipe, problem: Problem, rule: PeopleRule | None = None
) -> Plan:
    """Return the plan for a policy's problem, and what the policy itself guarantees.

    That is the bound of whichever algorithm, at the policy's batch, has just these parts.
    """
    entry = find(algorithm, advised=problem.advised)
    recipe = recipe._replace(release=recipe.release.here())
    others = [row for row in algorithms(advised=problem.advised) if row != entry]
    same = [
        row_of(candidate, problem, batch)
        for candidate in (entry, *others)
        for batch in (None, recipe.batch)
        if candidate.release == recipe.release.name and _makes(candidate, problem, batch, recipe)
    ]
    unknown = "no bound is known for it with the parts that were replaced."
    same.append(Row(algorithm, entry, problem, None, unknown))
    own = next((row for row in same if row.bound is not None), same[0])
    found = plan(problem)
    if rule is not None:
        most = largest_batch(problem.rounds, rule.per_person, rule.people) or 1
        rows = sorted(capped(found.rows, most), key=lambda row: row.regret)
        found = replace(found, rows=rows)
    return replace(found, own=own)


def _makes(entry: Algorithm, problem: Problem, batch: int | None, recipe: Recipe) -> bool:
    try:
        return recipe_of(entry.tuned(problem, batch)) == recipe
    except InputError:
        return False
