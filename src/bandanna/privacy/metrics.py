"""The release of secondary outcomes, beside that of the main one.

A round's feedback is then a main outcome and one value for each metric. The main outcome is
released as ever, with a part of epsilon. Each metric's sum over the same rounds is released with
discrete Laplace noise and a part of its own. A change of one round's feedback may change all
of these sums at once, so the parts add up to the policy's epsilon: in exact fractions, see
``shares_of``. Batches are disjoint, as for the main outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

from bandanna._core.types import JSON, plain
from bandanna.privacy.composition import float_below
from bandanna.privacy.laplace import (
    LaplaceMechanism,
    MomentsMechanism,
)
from bandanna.privacy.mechanism import (
    Finding,
    Numerics,
    PrivacyLoss,
    PureMechanism,
    is_positive,
    is_range,
)
from bandanna.privacy.one_bit import OneBitMechanism
from bandanna.privacy.parts import PartedMechanism, is_epsilon
from bandanna.privacy.statements import POST_PROCESSING

OUTCOMES: Mapping[str, type[PureMechanism]] = {
    LaplaceMechanism.name: LaplaceMechanism,
    MomentsMechanism.name: MomentsMechanism,
    OneBitMechanism.name: OneBitMechanism,
}
"""What the main outcome may be released by."""


class Shares(NamedTuple):
    """What an epsilon is divided into."""

    outcome: float
    each: float
    """For each metric."""


def shares_of(epsilon: float, metrics: int, share: float) -> Shares:
    """Divide an epsilon: ``share`` of it goes to the metrics, evenly, the rest to the outcome.

    The parts add up to epsilon or hardly less, in exact fractions, and never to more.

    Examples
    --------
    >>> shares_of(0.5, metrics=2, share=0.5)
    Shares(outcome=0.25, each=0.125)
    """
    each = float_below(Fraction(epsilon) * Fraction(share) / metrics)
    return Shares(float_below(Fraction(epsilon) - metrics * Fraction(each)), each)


@dataclass(frozen=True)
class MetricsMechanism(PartedMechanism):
    """An outcome and metrics, each released by a mechanism of its own."""

    outcome: JSON
    """The facts of the main outcome's mechanism."""
    outcome_epsilon: float
    metrics: list[JSON]
    """Name, range, epsilon and scale of each metric, and whether its squares are released too."""

    name: ClassVar[str] = "with-metrics"
    inside: ClassVar[str] = "outcome"
    kinds: ClassVar[Mapping[str, type[PureMechanism]]] = OUTCOMES
    shared: ClassVar[str] = "is released in the same batches"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64; secrets.randbelow for one-bit releases"
    reasons: ClassVar[tuple[str, ...]] = (
        f"the outcome and each metric are released by mechanisms of their own, whose epsilons add "
        f"up (Lemma 'Basic Composition'), checked in exact arithmetic; {POST_PROCESSING}",
    )

    @property
    def others(self) -> list[LaplaceMechanism]:
        """Those of the metrics."""
        kinds = (MomentsMechanism if "squares" in one else LaplaceMechanism for one in self.metrics)
        pairs = zip(kinds, self.metrics, strict=True)
        return [kind(self.batch, self.units, one["scale"]) for kind, one in pairs]

    @property
    def grid(self) -> float:
        """How much epsilon integers may cost beyond the laws that ``loss`` accounts for."""
        return self.main.grid + sum(one.grid for one in self.others)

    def assumptions(self) -> tuple[str, ...]:
        """Return what is assumed of the metrics' ranges."""
        return (metrics_assumed({one["name"]: (one["low"], one["high"]) for one in self.metrics}),)

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove that each part keeps its epsilon, and that they add up to no more than is said."""
        yield from self.prove_main()
        for one, law in zip(self.metrics, self.others, strict=True):
            for finding in law.prove(one["epsilon"]):
                why = f"{one['name']}: {finding.why}"
                yield finding._replace(entry="metrics", why=why)
        yield self.prove_sum(epsilon, (one["epsilon"] for one in self.metrics))

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss of everything together."""
        fine = numerics._replace(step=numerics.step / (1 + len(self.metrics)))  # errors add up
        loss = self.main.loss(self.outcome_epsilon, rounds, fine)
        for one, law in zip(self.metrics, self.others, strict=True):
            loss = loss.compose(law.loss(one["epsilon"], rounds, fine))
        return loss

    @classmethod
    def impossible(cls, facts: JSON) -> Iterator[Finding]:
        """Entries must have their types before anything is computed from them."""
        yield from super().impossible(facts)
        metrics = facts.get("metrics")
        if not isinstance(metrics, list) or not metrics or not all(map(_possible, metrics)):
            yield Finding("metrics", False, "must list the name, range, epsilon and scale of each")
        elif len({one["name"] for one in metrics}) < len(metrics):
            yield Finding("metrics", False, "has a name twice")


def _possible(metric: object) -> bool:
    return (
        isinstance(metric, dict)
        and set(metric) - {"squares"} == {"name", "low", "high", "epsilon", "scale"}
        and metric.get("squares", True) is True
        and isinstance(metric["name"], str)
        and is_range([metric["low"], metric["high"]])
        and is_epsilon(metric["epsilon"])
        and is_positive(metric["scale"])
    )


def metrics_assumed(ranges: Mapping[str, tuple[float, float]]) -> str:
    """Return the sentence about the ranges of metrics."""
    each = ", ".join(
        f"{name} {plain(low)} to {plain(high)}" for name, (low, high) in ranges.items()
    )
    return f"metrics are in ranges fixed without looking at them: {each}"
