"""An attacker against a contextual policy: one person's context and outcome are changed.

The attacker sees everything but that person's own decision: all releases, every other decision and
every other context. Two attacks:

- Exact: what is published has nothing to do with anyone's data, and everything else runs as it is,
  from the same seeds, on both inputs. Then all that the attacker sees must be the same on both, and
  the statistics on their way to the release may differ in one epoch only, by no more than the noise
  is for. An honest policy never fails it.
- Statistical: the epoch's release with its real noise is drawn many times on both inputs, and
  projected on the direction in which they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.audits.attack import NO_PROOF, SIGNIFICANCE, AuditResult, audit
from bandanna.contextual.features import Context
from bandanna.contextual.policy import PrivateContextual
from bandanna.privacy.epoch_sums import EpochRelease, SeededEpochs, Statistics, square_pairs
from bandanna.privacy.epochs import BOTH_MOVE, PRODUCT_UNITS, SUM_UNITS

Round = tuple[Context, Sequence[float]]
"""A context, and the reward of each arm."""


class _Blind(SeededEpochs):
    """Keeps what it is given, and publishes noise that has nothing to do with it."""

    def __init__(self, release: EpochRelease, seed: int) -> None:
        super().__init__(release, new_stream([seed, 1]))
        self.kept: list[Statistics] = []

    def release(self, exact: Statistics) -> Statistics:
        self.kept.append(Statistics(exact.products.copy(), exact.sums.copy()))
        nothing = Statistics(np.zeros_like(exact.products), np.zeros_like(exact.sums))
        noise = super().release(nothing)
        return noise if self.both else Statistics(exact.products.copy(), noise.sums)


@dataclass(frozen=True)
class _Seen:
    """What the attacker sees of a run, and what was on its way to the release."""

    decisions: tuple[tuple[int, float | None], ...]
    """Arm and chance of every round but the planted one."""
    public: tuple[bytes, ...]
    """What is published besides the statistics: rounds by arm, maps and scores."""
    statistics: tuple[Statistics, ...]


@dataclass(frozen=True)
class ContextAudit:
    """What the attacks found."""

    differs: tuple[str, ...]
    """What the attacker sees that differs though nothing private was published."""
    epochs: int
    """Epochs whose statistics the person changed; 1 is allowed."""
    moved: float
    """How far, as a share of what the noise is for; 1 is allowed."""
    attack: AuditResult | None

    @property
    def passed(self) -> bool:
        """Whether the policy survived; that proves nothing."""
        exact = not self.differs and self.epochs <= 1 and self.moved <= 1.0
        return exact and (self.attack is None or self.attack.passed)

    def __str__(self) -> str:
        lines = [
            f"{'passed' if self.passed else 'FAILED'}: the person changed {self.epochs} epochs, "
            f"by {self.moved:.4f} of what the noise is for"
        ]
        lines += [f"the attacker sees a difference in {what}" for what in self.differs]
        if self.attack is not None:
            lines.append(str(self.attack))
        elif self.passed:
            lines.append(NO_PROOF)
        return "\n".join(lines)


def audit_context(
    policy: PrivateContextual,
    rounds: Sequence[Round],
    planted: int,
    other: Round,
    *,
    seed: int = 0,
    draws: int = 20_000,
) -> ContextAudit:
    """Attack a contextual policy through one planted person.

    Parameters
    ----------
    policy
        The policy; fresh copies of it are played.
    rounds
        Contexts and the rewards of all arms, at least to the end of an epoch.
    planted
        The round of the person who is replaced.
    other
        Who replaces them. Where contexts are public the context must be the same.
    seed
        For draws of arms.
    draws
        Draws of the release on either input, for the statistical attack; 0 leaves it out.

    Examples
    --------
    >>> import bandanna as bd
    >>> policy = bd.PrivateContextual(
    ...     2, {"x": (0, 1)}, 1.0, 1e-6, 200, protects="context and feedback"
    ... )
    >>> people = [({"x": t % 2}, [t % 2, 1 - t % 2]) for t in range(200)]
    >>> audit_context(policy, people, 3, ({"x": 1}, [0, 0]), draws=0).passed
    True
    """
    if not 0 <= planted < len(rounds):
        raise InputError(f"planted must be one of {len(rounds)} rounds; got {planted}.")
    if policy.protects == "feedback" and other[0] != rounds[planted][0]:
        raise InputError("contexts are public here: the planted person's must stay the same.")
    release = policy.recipe.release
    if not isinstance(release, EpochRelease):
        raise InputError("trees release bits; this attack is for the noisy sums of epochs.")
    changed = [*rounds[:planted], other, *rounds[planted + 1 :]]
    first = _play(policy, rounds, planted, release, seed)
    second = _play(policy, changed, planted, release, seed)
    differs = []
    if first.decisions != second.decisions:
        differs.append("decisions of other people")
    if first.public != second.public:
        differs.append("what is published besides noisy statistics")
    moves = [
        _move(release, one, two)
        for one, two in zip(first.statistics, second.statistics, strict=True)
    ]
    worst = int(np.argmax(moves)) if moves else 0
    attack = None
    if draws and moves and moves[worst] > 0.0:
        pair = first.statistics[worst], second.statistics[worst]
        attack = _attack(release, *pair, draws)
    return ContextAudit(
        tuple(differs), sum(move > 0.0 for move in moves), max(moves, default=0.0), attack
    )


def _play(
    policy: PrivateContextual,
    rounds: Sequence[Round],
    planted: int,
    promised: EpochRelease,
    seed: int,
) -> _Seen:
    release = _Blind(promised, seed)
    copy = policy.copy_with(release, new_stream([seed, 0]))
    seen = []
    for t, (context, rewards) in enumerate(rounds):
        decision = copy.decide(context)
        copy.observe(decision, reward=float(rewards[decision.index]))
        if t != planted:
            seen.append((decision.index, decision.chance))
    public = [past.rounds.tobytes() + past.transform.tobytes() for past in copy.past]
    public.append(copy.coefficients.tobytes())
    return _Seen(tuple(seen), tuple(public), tuple(release.kept))


def _difference(
    release: EpochRelease, one: Statistics, two: Statistics
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the differences of sums and of products, each in units of its own noise."""
    noise = release.deviations
    sums = (one.sums - two.sums) / noise.sums
    square = square_pairs(release.features)
    scales = np.where(square, noise.squares, noise.products)
    products = (one.products - two.products) / scales
    return sums, products if release.both else np.zeros_like(products)


def _move(release: EpochRelease, one: Statistics, two: Statistics) -> float:
    """Return how far two epochs are apart, as a share of what the noise is for."""
    sums, products = _difference(release, one, two)
    if not release.gaussian:
        return float(abs(sums).sum() + abs(products).sum()) / release.epsilon
    apart = (one.sums - two.sums) / SUM_UNITS
    square = float((apart * apart).sum())
    if release.both:
        pairs = (one.products - two.products) / PRODUCT_UNITS
        twice = np.where(square_pairs(release.features), 1.0, 2.0)
        square += float((pairs * pairs * twice).sum())
    return math.sqrt(square) / (BOTH_MOVE if release.both else 1.0)


def _attack(release: EpochRelease, one: Statistics, two: Statistics, draws: int) -> AuditResult:
    """Draw the release on both inputs and look at the direction in which they differ."""
    sums, products = _difference(release, one, two)

    def run(exact: Statistics) -> Callable[[int], NDArray[np.float64]]:
        def draw(count: int) -> NDArray[np.float64]:
            many = Statistics(np.tile(exact.products, (count, 1)), np.tile(exact.sums, (count, 1)))
            noisy = release.release(many)
            shape = count, *exact.sums.shape
            first, second = _difference(
                release,
                Statistics(
                    noisy.products.reshape(count, *exact.products.shape), noisy.sums.reshape(shape)
                ),
                two,
            )
            values: NDArray[np.float64] = (first * sums).sum((1, 2)) + (second * products).sum(
                (1, 2)
            )
            return values

        return draw

    return audit(
        run(one),
        run(two),
        release.epsilon,
        draws=draws,
        delta=release.delta,
        significance=SIGNIFICANCE,
        selection=0.5,
    )
