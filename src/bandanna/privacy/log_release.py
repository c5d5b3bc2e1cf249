"""What an answer from a log costs where more is bought than sums: a range, a slope, a count.

Every part is released once, by one of two mechanisms, and their epsilons add up:

- a *choice* of one candidate by scores of which one person moves each by at most 1: OpenDP's noisy
  maximum (permute and flip, McKenna and Sheldon 2020) with noise of a scale costs two over it;
- a *count* that one person moves by at most 1: discrete Laplace noise costs one over its scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import LossRange
from bandanna._core.types import JSON, Guarantee, plain
from bandanna.privacy.laplace import LaplaceMechanism, MomentsMechanism
from bandanna.privacy.mechanism import (
    Finding,
    Numerics,
    PrivacyLoss,
    PureMechanism,
    is_positive,
    least_scale,
    worst_loss,
)
from bandanna.privacy.noise import with_noise
from bandanna.privacy.parts import PartedMechanism, is_epsilon
from bandanna.privacy.statements import POST_PROCESSING, frozen_assumed

if TYPE_CHECKING:
    from opendp.mod import Measurement

COSTS = {"choice": 2, "count": 1}
"""What a part costs, times its scale."""

SUMS: Mapping[str, type[PureMechanism]] = {
    LaplaceMechanism.name: LaplaceMechanism,
    MomentsMechanism.name: MomentsMechanism,
}


@dataclass(frozen=True)
class SideRelease:
    """Something that is released besides sums: what, how, and for how much."""

    what: str
    """Such as ``range``."""
    kind: str
    epsilon: float

    @property
    def scale(self) -> float:
        """The least noise that keeps epsilon, in exact fractions."""
        return part_scale(self.kind, self.epsilon)

    def to_dict(self) -> JSON:
        """Return the entry in a certificate."""
        return {
            "what": self.what,
            "kind": self.kind,
            "epsilon": self.epsilon,
            "scale": self.scale,
        }

    def choose(self, scores: NDArray[np.int64]) -> int:
        """Return the index of the highest score, with noise. Call it once."""
        assert self.kind == "choice"
        return int(_chooser(self.scale)(scores.tolist()))

    def count(self, exact: int) -> int:
        """Return a count with noise. Call it once."""
        assert self.kind == "count"
        return with_noise([exact], self.scale)[0]


def part_scale(kind: str, epsilon: float) -> float:
    """Return the smallest scale that costs epsilon at most."""
    return least_scale(COSTS[kind], epsilon)


@lru_cache(maxsize=64)
def _chooser(scale: float) -> Callable[[list[int]], int]:
    from opendp.domains import atom_domain, vector_domain  # loaded when first used
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    made: Measurement = make_noisy_max(*space, max_divergence(), scale=scale)
    assert made.map(1) <= COSTS["choice"] / scale * (1 + 1e-9), "OpenDP's map says so too"
    chooser: Callable[[list[int]], int] = made
    return chooser


def possible_parts(parts: object) -> bool:
    """Whether entries about parts have their types."""
    return isinstance(parts, list) and bool(parts) and all(map(_possible, parts))


def prove_parts(parts: Sequence[JSON], entry: str = "parts") -> Iterator[Finding]:
    """Prove that each part keeps its epsilon."""
    for part in parts:
        cost = COSTS[part["kind"]]
        holds = cost <= Fraction(part["epsilon"]) * Fraction(part["scale"])
        why = f"{part['what']}: {cost} / scale <= epsilon, in exact fractions"
        yield Finding(entry, holds, why)
        if holds and part["scale"] != part_scale(part["kind"], part["epsilon"]):
            yield Finding(entry, False, f"{part['what']}: not the scale of this epsilon")
    names = [part["what"] for part in parts]
    if names != sorted(set(names)):
        yield Finding(entry, False, "are named in the order of the alphabet, each once")


@dataclass(frozen=True)
class LogMechanism(PartedMechanism):
    """Sums of a log, and parts that were bought before or beside them."""

    sums: JSON
    """The facts of their mechanism."""
    sums_epsilon: float
    parts: list[JSON]
    bounds: list[float]
    """What a range was chosen within; empty where none was."""
    frozen: str
    """The column that was subtracted; empty where none was."""

    name: ClassVar[str] = "log-answer"
    inside: ClassVar[str] = "sums"
    kinds: ClassVar[Mapping[str, type[PureMechanism]]] = SUMS
    shared: ClassVar[str] = "are of the same log"
    sampler: ClassVar[str] = "OpenDP discrete Laplace and noisy maximum, i64"
    reasons: ClassVar[tuple[str, ...]] = (
        f"the sums and each part are released once by mechanisms of their own, whose epsilons add "
        f"up (Lemma 'Basic Composition'), checked in exact arithmetic; {POST_PROCESSING}",
    )

    @property
    def bought(self) -> bool:
        """Whether the range of outcomes was chosen privately."""
        return bool(self.bounds)

    def assumptions(self) -> tuple[str, ...]:
        """Return what is assumed of bounds and of what was known before."""
        low, high = self.bounds or (0.0, 1.0)
        said = [f"the bounds, {plain(low)} to {plain(high)}, were known without looking at values"]
        return (
            *(said if self.bought else ()),
            *([frozen_assumed(self.frozen)] if self.frozen else ()),
        )

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove that each part keeps its epsilon, and that they add up to no more than is said."""
        yield from self.prove_main()
        yield from prove_parts(self.parts)
        yield self.prove_sum(epsilon, (part["epsilon"] for part in self.parts))

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss of any mechanism with this epsilon."""
        return worst_loss(epsilon, rounds=rounds)

    @classmethod
    def impossible(cls, facts: JSON) -> Iterator[Finding]:
        """Entries must have their types before anything is computed from them."""
        yield from super().impossible(facts)
        parts = facts.get("parts")
        if not possible_parts(parts):
            yield Finding("parts", False, "must list what, kind, epsilon and scale of each")
        bounds = facts.get("bounds")
        good = isinstance(bounds, list) and all(type(end) in (int, float) for end in bounds)
        if not good or len(bounds or []) not in (0, 2):
            yield Finding("bounds", False, "must be two numbers, or none")
        if not isinstance(facts.get("frozen"), str):
            yield Finding("frozen", False, "must be a text")


def _possible(part: object) -> bool:
    return (
        isinstance(part, dict)
        and set(part) == {"what", "kind", "epsilon", "scale"}
        and isinstance(part["what"], str)
        and part["kind"] in COSTS
        and is_epsilon(part["epsilon"])
        and is_positive(part["scale"])
    )


def with_parts(
    sums: Guarantee,
    parts: Sequence[SideRelease],
    bounds: LossRange | None = None,
    frozen: str = "",
) -> Guarantee:
    """Return what holds for the sums of a log and all that was bought with them.

    Examples
    --------
    >>> from bandanna.privacy.moments import MomentsRelease
    >>> sums = MomentsRelease(0.5, 100).guarantee()
    >>> with_parts(sums, [SideRelease("range", "choice", 0.25)], (0.0, 9.0)).epsilon
    0.75
    """
    facts = dict(sums.facts)
    law = LogMechanism(
        facts["batch"],
        facts["units"],
        facts,
        sums.epsilon,
        sorted((part.to_dict() for part in parts), key=lambda part: str(part["what"])),
        [] if bounds is None else [float(end) for end in bounds],
        frozen,
    )
    listed = "; ".join(f"{part.what} (epsilon {plain(part.epsilon)})" for part in parts)
    return law.joined(sums, (part.epsilon for part in parts), listed)
