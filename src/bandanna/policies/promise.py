"""What a policy promises: its release's promise, to whom, and under which assumptions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.policies.people import PeopleRule
from bandanna.policies.plays import FollowExpert, WeighExperts, WeighInBatches, kind_of_play
from bandanna.policies.recipe import Recipe
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.privacy.persons import for_person
from bandanna.privacy.statements import (
    ARMS_CHANGED,
    PUBLIC_ADVICE,
    PUBLIC_ARMS,
    assumed_by_all,
    protected,
)

if TYPE_CHECKING:
    from bandanna.policies.shown import Shown
    from bandanna.privacy.range import PrivateRange


def promise_of(policy: Shown) -> Guarantee:
    """Return what is promised about one round's feedback, or one person's, and why."""
    promise = policy.ledger.release.guarantee()
    if not promise.private:
        return promise
    people = policy.people
    promise = promise.assuming(
        *assumed_by_all(
            *policy.loss_range,
            clip=policy.clip,
            places=None if people is None else people.per_person,
        ),
        *policy.recipe.learner.assumptions,
        *([PUBLIC_ARMS] if policy.ledger.restricted else []),
        *([ARMS_CHANGED] if policy.changed else []),
    )
    if people is not None:
        promise = for_person(promise, people.epsilon, people.delta, people.per_person)
    elif kind_of_play(policy.recipe, policy.experts) is FollowExpert:
        promise = replace(promise, protects=protected(policy.algorithm, policy.experts))
    if policy.resumed:
        promise = promise.repeated(policy.resumed + 1)
    known = policy.experts is None or PUBLIC_ADVICE in promise.assumptions
    return promise if known else promise.assuming(PUBLIC_ADVICE)


def fitted_rule(
    rule: PeopleRule, recipe: Recipe, experts: int | None, algorithm: str
) -> PeopleRule:
    """Return a rule for people as a play can keep it; EXP4 credits each round by its own advice."""
    if recipe.release.takes_bits:
        raise InputError("devices keep their persons' budgets themselves: leave out per_person=.")
    # This refuses what the release cannot keep.
    for_person(recipe.release.guarantee(), rule.epsilon, rule.delta, rule.per_person)
    if kind_of_play(recipe, experts) not in (WeighExperts, WeighInBatches):
        return rule
    if rule.rounds_per_place not in (None, 1):
        raise InputError(
            f"{algorithm} credits every round by its own advice, so rounds_per_place is 1; got "
            f"{rule.rounds_per_place}. Conversions take longer places."
        )
    return rule._replace(rounds_per_place=1)


def certificate_of(policy: Shown, bought: PrivateRange | None = None) -> JSON:
    """Return a policy's guarantee as a document, with what its range cost if it was bought."""
    if policy.resumed:
        raise InputError("its file was resumed more than once: there is nothing to certify.")
    low, high = policy.loss_range
    size = len(policy.arms), policy.experts
    setting = Setting(policy.ledger.identity, policy.algorithm, *size, low, high)
    promise = policy.guarantee
    if bought is None:
        return make_certificate(promise, setting)
    if bought.loss_range != policy.loss_range or not policy.clip:
        raise InputError(
            f"the range bought is {bought.low:g} to {bought.high:g}; make the policy with "
            f"loss_range= just that and clip=True."
        )
    return make_certificate(promise, setting, bought.entries(promise.epsilon))
