"""An attack through one person who comes as often as they can, with all their feedback flipped.

Two attacks. The first is exact: what is published has nothing to do with losses, so everything is
the same on both inputs but the sums on their way out, and these may differ in no more batches than
the person has slots, by no more than one loss each. An honest policy never fails it. The second
plays the policy as it is, many times on either input, and looks for what tells.

In the middle of every run the policy is saved and loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import DecisionError, InputError
from bandanna.audits.attack import NO_PROOF, SIGNIFICANCE, AuditResult, audit
from bandanna.audits.transcript import WatchedRelease
from bandanna.policy import Policy
from bandanna.policy.facade import policy_from_dict
from bandanna.privacy.release import Release

VISITS = 3
"""How often the person comes in a row, at least twice in every batch."""

SELECTION = 0.5


@dataclass(frozen=True)
class PersonAudit:
    """What the attacks of one person found."""

    batches: int
    """Batches whose sum the person could change."""
    allowed: int
    """Slots they may have."""
    most: float
    """The largest change, in losses; 1 is allowed."""
    attack: AuditResult | None

    @property
    def passed(self) -> bool:
        """Whether the claim survived; that proves nothing."""
        exact = self.batches <= self.allowed and self.most <= 1.0
        return exact and (self.attack is None or self.attack.passed)

    def __str__(self) -> str:
        lines = [
            f"{'passed' if self.passed else 'FAILED'}: one person changed {self.batches} batches "
            f"({self.allowed} allowed), by at most {self.most:g} losses (1 allowed)"
        ]
        if self.attack is not None:
            lines.append(str(self.attack))
        elif self.passed:
            lines.append(NO_PROOF)
        return "\n".join(lines)


def audit_person(
    policy: Policy, *, runs: int = 1000, significance: float = SIGNIFICANCE, seed: int = 0
) -> PersonAudit:
    """Attack fresh copies of a policy with ``per_person`` through one person.

    Parameters
    ----------
    policy
        A policy that protects persons; it is left alone.
    runs
        How often it is played on either input; 0 for the exact attack alone.
    significance
        Probability with which the bound may exceed the true epsilon.
    seed
        For the arms. The noise is what protects people and cannot be seeded.
    """
    if policy.people is None:
        raise InputError("this policy protects rounds, not persons; make it with per_person=.")
    allowed = policy.people.per_person
    batches = 2 * (allowed + VISITS + 2)
    zero, one = (_counted(policy, loss, batches, seed) for loss in (0.0, 1.0))
    moved = np.abs(np.array(one) - np.array(zero))
    attack = None
    if runs:
        promise, where = policy.guarantee, np.flatnonzero(moved)
        attack = audit(
            _published(policy, 1.0, batches, where, [seed, 1]),
            _published(policy, 0.0, batches, where, [seed, 2]),
            promise.epsilon,
            draws=runs,
            significance=significance,
            delta=promise.delta,
            selection=SELECTION,
        )
    return PersonAudit(int(np.count_nonzero(moved)), allowed, float(moved.max()) / UNITS, attack)


def _counted(policy: Policy, loss: float, batches: int, seed: int) -> list[int]:
    release = WatchedRelease(policy.recipe.release, blind=True, constant=True)
    _play(policy, release, loss, batches, [seed, 0])
    return [tally.counted for tally in release.tallies[:batches]]


def _published(
    policy: Policy, loss: float, batches: int, where: NDArray[np.intp], seed: list[int]
) -> Callable[[int], NDArray[np.float64]]:
    """Return what the batches published that the person is in, which everyone may know."""

    def run(number: int) -> NDArray[np.float64]:
        release = WatchedRelease(policy.recipe.release)
        _play(policy, release, loss, batches, [*seed, number])
        seen = np.array([release.tallies[batch].published for batch in where.tolist()])
        return np.append(seen.ravel(), seen.sum())

    return lambda count: np.array([run(number) for number in range(count)])


def _play(
    policy: Policy, release: WatchedRelease, loss: float, batches: int, seed: list[int]
) -> None:
    """Play until the first so many batches have closed; nobody else has a loss."""
    low, high = policy.loss_range
    copy = policy.rehearse(new_stream([*seed, 0]), new_stream([*seed, 1]))
    copy._parts.release = cast(Release, release)
    advice = None if policy.experts is None else np.zeros(policy.experts, dtype=np.int64)
    others, saved = 0, False
    while copy.state.batches < batches or min(copy.state.open, default=batches) < batches:
        others += 1
        for _ in range(VISITS):
            _visit(copy, "the person", low + (high - low) * loss, advice)
        _leave(copy, "the person")
        _visit(copy, "the person", low + (high - low) * loss, advice)
        _visit(copy, f"someone else, number {others}", low, advice)
        _leave(copy, f"someone else, number {others}")
        closed = copy.state.batches - len(copy.state.open)
        if not saved and closed >= batches // 2:
            saved = True
            copy = _reloaded(copy, release)


def _visit(policy: Policy, person: str, loss: float, advice: NDArray[np.int64] | None) -> None:
    policy.observe(policy.decide(advice, person=person), loss=loss)


def _leave(policy: Policy, person: str) -> None:
    with suppress(DecisionError):  # their batch has been released
        policy.finish(person)


def _reloaded(copy: Policy, release: WatchedRelease) -> Policy:
    """Return what a file of the copy gives, with the sums it had: they are watched too."""
    saved = copy.to_dict()
    tallies = {number: batch.tally for number, batch in copy.state.open.items()}
    loaded = policy_from_dict(saved)
    for number, batch in loaded.state.open.items():
        batch.tally = tallies[number]
    loaded._parts.release = cast(Release, release)
    return loaded
