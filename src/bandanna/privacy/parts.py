"""A mechanism and parts beside it, each released once: their epsilons add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from bandanna._core.checks import MAX_EPSILON, MIN_EPSILON
from bandanna._core.types import JSON, Guarantee, plain
from bandanna.privacy.composition import float_above
from bandanna.privacy.mechanism import Finding, PureMechanism, float_of, is_positive


def added_up(epsilons: Iterable[float]) -> float:
    """Return the smallest float that is not below the sum of some epsilons (Basic Composition)."""
    return float_above(sum(map(Fraction, epsilons), Fraction(0)))


class PartedMechanism(PureMechanism):
    """A main mechanism, whose facts and epsilon are entries, and parts."""

    inside: ClassVar[str]
    """The entry with the facts of the main mechanism; its epsilon is in one of a longer name."""
    kinds: ClassVar[Mapping[str, type[PureMechanism]]]
    """What the main mechanism may be."""
    shared: ClassVar[str]
    """What the main mechanism has in common with this one."""

    @property
    def main(self) -> PureMechanism:
        """The main mechanism."""
        facts = getattr(self, self.inside)
        return self.kinds[facts["mechanism"]].read(facts)

    @property
    def main_epsilon(self) -> float:
        """What the main mechanism costs."""
        return float(getattr(self, f"{self.inside}_epsilon"))

    @property
    def grid(self) -> float:
        """How much epsilon integers may cost beyond the laws that ``loss`` accounts for."""
        return self.main.grid

    def prove_main(self) -> Iterator[Finding]:
        """Prove that the main mechanism keeps its epsilon, on the same numbers of units."""
        for finding in self.main.prove(self.main_epsilon):
            entry = f"{self.inside}_epsilon" if finding.entry == "epsilon" else self.inside
            yield finding._replace(entry=entry)
        same = (self.main.batch, self.main.units) == (self.batch, self.units)
        yield Finding(self.inside, same, self.shared)

    def prove_sum(self, epsilon: float, parts: Iterable[float]) -> Finding:
        """Prove that all epsilons add up to no more than is said."""
        each = [self.main_epsilon, *parts]
        together = added_up(each)
        return Finding("epsilon", together == epsilon, f"{len(each)} parts add up to {together:g}")

    def joined(self, main: Guarantee, parts: Iterable[float], words: str) -> Guarantee:
        """Return what holds for the main mechanism and parts together."""
        epsilon = added_up([main.epsilon, *parts])
        said = f"{main.mechanism} (epsilon {plain(main.epsilon)}); and {words}"
        promise = self.promise(epsilon, said, main.protects)
        return replace(promise, assumptions=(*main.assumptions, *promise.assumptions))

    @classmethod
    def impossible(cls, facts: JSON) -> Iterator[Finding]:
        """Entries about the main mechanism must have their types too."""
        yield from super().impossible(facts)
        if not is_epsilon(facts.get(f"{cls.inside}_epsilon")):
            why = f"must be a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}"
            yield Finding(f"{cls.inside}_epsilon", False, why)
        inside = facts.get(cls.inside)
        kind = cls.kinds.get(str(inside.get("mechanism"))) if isinstance(inside, dict) else None
        if kind is None or not isinstance(inside, dict):
            kinds = ", ".join(cls.kinds)
            yield Finding(cls.inside, False, f"must hold the numbers of one of {kinds}")
            return
        named = set(inside) == {"mechanism", "sampler", *kind.entries()}
        if not named or inside["sampler"] != kind.sampler:
            yield Finding(cls.inside, False, "has entries that are missing or not known")
        yield from (one._replace(entry=cls.inside) for one in kind.impossible(inside))


def is_epsilon(value: object) -> bool:
    """Whether a value from a document is an epsilon that a part may have."""
    return is_positive(value) and MIN_EPSILON <= float_of(value) <= MAX_EPSILON
