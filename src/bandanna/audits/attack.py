"""Audits: attacks that put a lower bound on the true epsilon of a mechanism.

Run a mechanism many times on two neighbouring inputs. If some event is much more likely on one than
``exp(claimed epsilon)`` times on the other, the claim is false. The event is chosen on a tenth of
the draws and judged on the rest, so choosing among thousands costs nothing; both probabilities
are bounded by Clopper and Pearson's exact intervals. The bound exceeds the true epsilon with
probability at most ``significance``.

An audit that finds nothing proves nothing: another input or event might have given the mechanism
away. Only the proof protects people.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.audits.events import OutputEvent, Outputs, candidate_events

SIGNIFICANCE = 1e-4
MOST_EPSILON = 30.0
"""Telling a larger one apart would take more draws than anyone has."""

SELECTION = 0.1
"""Share of the draws used to choose the event, unless told otherwise."""

WORTH_COMPUTING = 200
"""Events whose exact bounds are compared."""

NO_PROOF = "Passing proves nothing: another attack might succeed where this one did not."

Mechanism = Callable[..., object]


@dataclass(frozen=True)
class AuditResult:
    """What an audit found."""

    epsilon: float
    """Lower bound on the true epsilon; above it with probability at most ``significance``."""
    claimed: float
    delta: float
    significance: float
    draws: int
    event: str
    """The event that gave the mechanism away, and on which input it is likely."""
    first_share: float
    second_share: float
    """How often the event happened on either input."""

    @property
    def passed(self) -> bool:
        """Whether the claim survived; that proves nothing."""
        return self.epsilon <= self.claimed

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"{verdict}: epsilon is at least {self.epsilon:.4g} "
            f"(claimed {self.claimed:g}, {self.draws:,} draws, significance "
            f"{self.significance:g})\n"
            f"event: {self.event}; it happened in {self.first_share:.4%} of the runs on the first "
            f"input and {self.second_share:.4%} on the second"
            + (f"\n{NO_PROOF}" if self.passed else "")
        )


def audit(
    run_on_first: Mechanism,
    run_on_second: Mechanism,
    claimed_epsilon: float,
    *,
    draws: int = 1_000_000,
    significance: float = SIGNIFICANCE,
    delta: float = 0.0,
    selection: float = SELECTION,
) -> AuditResult:
    """Attack any mechanism, given two functions that run it on neighbouring inputs.

    Parameters
    ----------
    run_on_first, run_on_second
        Functions without arguments that return one output, or functions of a number of draws that
        return that many. An output is a number, a text, or a sequence of numbers.
    claimed_epsilon
        What the mechanism promises.
    draws
        Runs on each input. Fewer than about ``10 / significance ** 0.5`` say little.
    significance
        Probability with which the bound may exceed the true epsilon.
    delta
        The delta that comes with the claim.
    selection
        Share of the draws used to choose the event; a larger one where draws are few.

    Examples
    --------
    >>> from random import random
    >>> result = audit(lambda: random() < 0.5, lambda: random() < 0.1, 0.5, draws=9000)
    >>> result.passed, result.epsilon > 1
    (False, True)
    """
    checks.positive("claimed_epsilon", claimed_epsilon)
    draws = checks.whole("draws", draws, at_least=1)
    if not 0 < significance < 0.5 or not 0 <= delta < 1:
        raise InputError(
            f"significance must be above 0 and below 0.5, delta from 0 to below 1; got "
            f"{significance!r} and {delta!r}."
        )
    needed = fewest_draws(claimed_epsilon, significance)
    if draws < needed:
        raise InputError(
            f"{draws} draws cannot say anything about epsilon {claimed_epsilon:g} at significance "
            f"{significance:g}, even if the mechanism adds no noise: use at least {needed}."
        )
    first, second = comparable(_outputs(run_on_first, draws), _outputs(run_on_second, draws))
    cut = max(1, round(checks.within("selection", selection, 0.01, 0.9) * draws))
    event, swapped = _most_telling(first[:cut], second[:cut], significance, delta)
    judged = draws - cut
    one, other = event.count(first[cut:]), event.count(second[cut:])
    hits, misses = (other, one) if swapped else (one, other)
    return AuditResult(
        epsilon=max(0.0, lower_bound(hits, misses, judged, significance, delta)),
        claimed=float(claimed_epsilon),
        delta=delta,
        significance=significance,
        draws=draws,
        event=f"{event.name}, likelier on the {'second' if swapped else 'first'} input",
        first_share=one / judged,
        second_share=other / judged,
    )


def _most_telling(
    first: Outputs, second: Outputs, significance: float, delta: float
) -> tuple[OutputEvent, bool]:
    """Return the best event for an attack, and whether it is likelier on the second input.

    The same bound ranks the events that will judge: rare ones, whose luck will not last, score
    low. An approximation of it says which few are worth computing it for.
    """
    draws = len(first)
    families = list(candidate_events(first, second))
    one = np.concatenate([family.first for family in families])
    other = np.concatenate([family.second for family in families])
    hits, misses = np.concatenate([one, other]), np.concatenate([other, one])
    # A share's arc sine varies by the same amount whatever the share.
    reach = z_score(significance / 2) / (2.0 * math.sqrt(draws))
    low = np.sin(np.maximum(np.arcsin(np.sqrt(hits / draws)) - reach, 0.0)) ** 2
    rare = np.arcsin(np.sqrt((misses + 1.0) / (draws + 1.0)))
    high = np.sin(np.minimum(rare + reach, math.pi / 2)) ** 2
    rough = (low - delta) / high
    exactly = [
        (lower_bound(int(hits[index]), int(misses[index]), draws, significance, delta), index)
        for index in np.argsort(-rough, kind="stable")[:WORTH_COMPUTING]
    ]
    swapped, index = divmod(int(max(exactly)[1]), one.size)
    for family in families:
        if index < family.first.size:
            return family.member(index), bool(swapped)
        index -= family.first.size
    raise AssertionError("there is always the event of any output")


def lower_bound(hits: int, misses: int, draws: int, significance: float, delta: float) -> float:
    """Return a lower bound on epsilon from how often an event happened on either input."""
    low = lower_limit(hits, draws, significance / 2)
    high = upper_limit(misses, draws, significance / 2)
    return math.log((low - delta) / high) if low > delta else -math.inf


def fewest_draws(epsilon: float, significance: float) -> int:
    """Return how many draws tell even a mechanism without noise apart from epsilon."""
    if epsilon > MOST_EPSILON:
        raise InputError(f"an audit can say nothing about an epsilon above {MOST_EPSILON:g}.")
    draws = 10
    while lower_bound(draws, 0, draws, significance, 0.0) <= epsilon:
        draws *= 2
    return math.ceil(draws / (1 - SELECTION))


def comparable(first: Outputs, second: Outputs) -> tuple[Outputs, Outputs]:
    """Bring two samples to one representation, so that an event is the same set in both."""
    if first.shape[1:] != second.shape[1:]:
        raise InputError(
            f"outputs on the two inputs have different shapes: {first.shape[1:]} and "
            f"{second.shape[1:]}."
        )
    kinds = {first.dtype.kind, second.dtype.kind}
    if kinds <= set("biuf"):
        common = np.result_type(first, second)
        # Small integers would wrap around when they are subtracted.
        wide = np.dtype(np.float64 if common.kind == "f" else np.int64)
        if not (np.iinfo(np.int64).max < max(_largest(first), _largest(second))):
            return first.astype(wide), second.astype(wide)
        return first.astype(np.float64), second.astype(np.float64)
    if first.ndim > 1 or not kinds <= set("biufUS"):
        raise InputError("outputs must be numbers, texts, or sequences of numbers.")
    return _as_texts(first), _as_texts(second)


def _as_texts(outputs: Outputs) -> Outputs:
    return outputs if outputs.dtype.kind == "U" else np.array([str(x) for x in outputs.tolist()])


def _largest(outputs: Outputs) -> float:
    return 0.0 if outputs.dtype.kind in "bf" else float(outputs.max())


def _outputs(mechanism: Mechanism, draws: int) -> Outputs:
    """Collect outputs as an array of shape (draws,) or (draws, length)."""
    given = mechanism(draws) if _takes_a_count(mechanism) else [mechanism() for _ in range(draws)]
    if isinstance(given, list) and len({isinstance(one, str | bytes) for one in given}) > 1:
        given = [str(one) for one in given]  # numbers and texts together: compare all as texts
    try:
        outputs = np.asarray(given)
    except ValueError:
        outputs = np.empty(0)
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        outputs = outputs[:, 0]
    if outputs.ndim not in (1, 2) or outputs.shape[0] != draws or outputs.size == 0:
        raise InputError(
            f"a mechanism must give one output for each of {draws} draws, a number, a text or a "
            f"sequence of numbers of one length; got an array of shape {outputs.shape}."
        )
    return outputs


def _takes_a_count(mechanism: Mechanism) -> bool:
    try:
        parameters = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )


def lower_limit(hits: int, draws: int, level: float) -> float:
    """Return what the probability is above, but for a chance of ``level``."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, draws - hits + 1, level)) if hits > 0 else 0.0


def upper_limit(hits: int, draws: int, level: float) -> float:
    """Return what the probability is below, but for a chance of ``level``."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, draws - hits, 1 - level)) if hits < draws else 1.0


def z_score(level: float) -> float:
    """Return what a standard normal variable exceeds with a chance of ``level``."""
    from scipy.special import ndtri

    return float(-ndtri(level))
