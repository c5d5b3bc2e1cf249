"""Which parts make a policy together: a learner, a release and a problem."""

from __future__ import annotations

from bandanna._core.types import InputError
from bandanna.learners import Exp4
from bandanna.policies.recipe import Recipe
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.sums import SumRelease
from bandanna.theory.stationary import LONGEST


def check_parts(recipe: Recipe, arms: int, experts: int | None, rounds: int | None) -> None:
    """Refuse a learner and a release that do not belong together, or to the problem."""
    learner, release = recipe
    if isinstance(learner, Exp4):
        good = (learner.experts, learner.arms) == (experts, arms)
        good = good and release.suits(learner.experts, learner.arms, learner.mixing)
    else:
        good = learner.arms == (arms if experts is None else experts)
        good = good and isinstance(release, SumRelease)
        if getattr(learner, "grows", False):  # where experts advise, batches have one size
            longest = release.longest if isinstance(release, LaplaceRelease) else None
            good = good and experts is None and longest is not None and longest >= LONGEST
    if not good or (release.takes_bits and experts is not None):
        advised = "" if experts is None else f" and {experts} experts"
        raise InputError(
            f"{learner.name} and a {release.name} release do not make a policy for {arms} "
            f"arms{advised}."
        )
    if rounds is not None and recipe.batch > rounds:
        raise InputError(
            f"batches of {recipe.batch} are longer than the {rounds} rounds expected: nothing "
            f"would ever be released. Use a smaller batch, more rounds or a larger epsilon."
        )
