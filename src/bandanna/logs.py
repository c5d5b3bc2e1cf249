"""A private A/B test on a log that exists: one release an arm, and what it says.

Every row's outcome is in exactly one sum, the sum of its arm, or of its arm and category. Each sum
is released once with discrete Laplace noise by ``LaplaceRelease``. So all sums together cost
epsilon. Which rows there are, their arms and their categories are public; outcomes are protected.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import UNITS, LossRange
from bandanna._core.html import paragraph, table
from bandanna._core.private_inputs import private_inputs
from bandanna._core.start import Start, StartArm
from bandanna._core.types import JSON, ArmName, Guarantee, InputError
from bandanna.counted import Counted
from bandanna.environments.frames import Column, read_columns
from bandanna.environments.log import Log, read_log
from bandanna.environments.returning import mean_units, slots_of
from bandanna.error_budget import ErrorBudget
from bandanna.inference import Totals, fixed_below, point
from bandanna.policy.answers import (
    Answer,
    Comparison,
    Shown,
    answer_from,
    check_confidence,
    compare_from,
)
from bandanna.policy.intervals import Known, Once
from bandanna.policy.statements import AT_RANDOM, Units
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.privacy.composition import for_person
from bandanna.privacy.laplace import LaplaceRelease, laplace_scale
from bandanna.privacy.statements import PUBLIC_ROWS, assumed_by_all
from bandanna.warehouse import Bins, count, source_of

MOST_CELLS, MOST_RULES = 5_000, 100_000
FOUR_IN_FIVE = 0.84
"""Standard deviations that an estimate exceeds four times in five."""
ONCE = "The intervals are for one look at a finished log."
Categories = Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class Gain:
    """What deciding by one column would gain over the best single arm."""

    column: str
    gain: float
    low: float
    high: float
    """By the normal approximation, for all rules together; in the user's units."""
    rule: dict[str, ArmName]
    """The arm that looks best in each category."""
    sentence: str

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "column": self.column,
            "gain": self.gain,
            "low": self.low,
            "high": self.high,
            "rule": self.rule,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class LogAnswer(Answer):
    """The private answer from a log: an ``Answer`` with differences, gains and a certificate."""

    differences: tuple[Comparison, ...] = ()
    """Every other arm against the one with the best released mean."""
    gains: tuple[Gain, ...] = ()
    needed: int | None = None
    """About how many rows would settle it, if the difference is as large as it looks."""
    dropped: int = 0
    """Rows that were left out, because a person counts once."""
    guarantee: Guarantee | None = None
    certificate: JSON | None = None
    start: Start | None = field(default=None, repr=False)
    """What was released, for ``PrivateBandit(..., start_from=)``."""

    def to_dict(self) -> JSON:
        """Return everything as plain values, for JSON."""
        promise, start = self.guarantee, None if self.start is None else self.start.to_dict()
        return super().to_dict() | {
            "differences": [found.to_dict() for found in self.differences],
            "gains": [gain.to_dict() for gain in self.gains],
            "needed": self.needed,
            "dropped": self.dropped,
            "epsilon": None if promise is None else promise.epsilon,
            "delta": None if promise is None else promise.delta,
            "protects": None if promise is None else promise.protects,
            "certificate": self.certificate,
            "start": start and {key: start[key] for key in start if key != "certificate"},
        }

    def _lines(self) -> list[str]:
        lines = super()._lines()
        lines += [found.sentence for found in self.differences[1:]]
        lines += [gain.sentence for gain in self.gains]
        if self.guarantee is not None:
            lines += str(self.guarantee).splitlines()[:2]
        return lines

    def _repr_html_(self) -> str:
        found = super()._repr_html_()
        rows = [
            [
                f"{one.second} minus {one.first}",
                *(f"{value:.4g}" for value in (one.difference or 0.0, one.low, one.high)),
            ]
            for one in self.differences
        ]
        found += table("Differences of means", ["arms", "difference", "low", "high"], rows)
        found += "".join(paragraph(gain.sentence) for gain in self.gains)
        return found + ("" if self.guarantee is None else self.guarantee._repr_html_())

    def html(self) -> str:
        """Return a whole page for a browser."""
        style = (
            "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;"
            "padding:0 1rem}"
            "table{border-collapse:collapse;margin:1rem 0}td,th{border-bottom:1px solid #bbb;"
            "padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top}"
            "caption{text-align:left;font-weight:600}h1+p{font-size:1.2em}"
        )
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(self.sentence.partition('. ')[0])}</title>"
            f"<style>{style}</style><body><h1>Answer</h1>{self._repr_html_()}</body></html>"
        )


@private_inputs
def answer(
    log: object,
    *,
    arm: str,
    outcome: str,
    epsilon: float,
    loss_range: LossRange = (0.0, 1.0),
    clip: bool = False,
    reward: bool = False,
    person: str | None = None,
    by: Categories | None = None,
    confidence: float = 0.95,
) -> LogAnswer:
    """Answer which arm of a finished log is best, privately: one noisy sum an arm.

    Parameters
    ----------
    log
        One row for each decision that was made: a CSV or Parquet file (also .gz), a folder or a
        pattern of such, a frame of pandas or polars, an Arrow table, a relation of DuckDB or Ibis,
        a dict of columns, or ``bandanna.Table`` in a database. Or ``bandanna.Exposures``: who met
        which arm when, and facts about them. Files and databases are counted where they are.
    arm, outcome
        Names of the columns with the arm and with the outcome.
    epsilon
        The privacy parameter, for the outcome of one row; with ``person`` for all of a person's.
    loss_range, clip
        Smallest and largest outcome, known beforehand; ``clip`` counts others as the nearer end.
    reward
        Whether large outcomes are good. By default outcomes are losses.
    person
        The column with whose row it is. Then a person counts once: by the mean of their rows with
        the arm they met first. Other rows of theirs are left out.
    by
        Columns to decide by, each with its categories, or with the edges of its bins for numbers:
        ``{"plan": ["basic", "gold"], "age": [18, 40, 65, 90]}``. Declare them; they are not read
        off the log. Three and more numbers are edges. What is not among the categories is
        ``"other"``.
    confidence
        Confidence of the answer.

    Examples
    --------
    >>> import bandanna as bd
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> plan = rng.choice(["A", "B"], 10_000)
    >>> visits = rng.random(10_000) < np.where(plan == "A", 0.3, 0.4)
    >>> found = bd.answer({"plan": plan, "visits": visits}, arm="plan", outcome="visits",
    ...                   epsilon=0.5, reward=True)
    >>> found.best, found.guarantee.epsilon
    ('B', 0.5)
    """
    checks.epsilon(epsilon)
    columns = {"arm": arm, "outcome": outcome, "person": person}
    kinds = {"loss_range": loss_range, "clip": clip}
    source = source_of(log)
    if source is not None:
        bins = _bins(by or {})
        found = count(source, **columns, **kinds, bins=bins)  # type: ignore[arg-type]
        _check_cells(found.counted.counts.size)
        return answer_counted(
            found.counted,
            epsilon=epsilon,
            reward=reward,
            confidence=confidence,
            by={one.column: one.names for one in bins},
        )
    wanted = [arm, outcome, person, *(by if isinstance(by, Mapping) else ())]
    # All at once: a query may give its rows in another order the next time.
    log = read_columns(log, [name for name in wanted if isinstance(name, str)])
    rows = read_log(log, **columns, **kinds)  # type: ignore[arg-type]
    data, kept = (rows, np.arange(rows.size)) if person is None else once_each(rows)
    alone = len(data.arm_names) - np.unique(data.arms).size
    if alone:
        raise InputError(
            f"nobody is left with {alone} of the {len(data.arm_names)} arms: with person= people "
            f"count with the arm of their first row. Leave out the rows of such arms."
        )
    cells = _cells(log, by or {}, kept, len(data.arm_names))
    counted = Counted.of_rows(
        data.arm_names,
        data.arms,
        data.units,
        cells=cells.codes,
        width=math.prod(cells.shape),
        outcome_range=data.loss_range,
        outcome=outcome,
        clip=clip,
        persons=person is not None,
        dropped=rows.size - data.size,
    )
    return answer_counted(
        counted, epsilon=epsilon, reward=reward, confidence=confidence, by=cells.by
    )


def answer_counted(
    counted: Counted,
    *,
    epsilon: float,
    reward: bool = False,
    confidence: float = 0.95,
    by: Mapping[str, tuple[str, ...]] | None = None,
) -> LogAnswer:
    """Answer which arm is best from what was counted, privately: see ``answer``.

    ``by`` names the categories of each column behind the cells, in the order of the cells.
    """
    epsilon, alpha = checks.epsilon(epsilon), 1.0 - check_confidence(confidence)
    release = LaplaceRelease(epsilon, 1, longest=max(2, counted.size))
    sums = _released(release, counted, reward=reward)
    names, totals = counted.names, _totals(counted.counts, sums)
    sizes = {k: float(counted.counts[k].sum()) for k in range(len(names))}
    units = Units(*counted.outcome_range, reward, counted.outcome, counted.per, clip=counted.clip)
    method = Once(laplace_scale(epsilon) / UNITS, totals)
    budget = ErrorBudget(alpha, len(names), grows=False)
    shown = Shown(Known(names, sizes, method), budget, AT_RANDOM)
    said = answer_from(shown, units)
    order = sorted(range(len(names)), key=lambda k: point(totals[k]))
    pairs = tuple(compare_from(shown, units, names[order[0]], names[k]) for k in order[1:])
    needed, sentence = None, said.sentence
    if said.best is None:
        first, second = totals[order[0]], totals[order[1]]
        more = rows_needed(method.scale, first, second, budget.pair(order[0], order[1]))
        needed = None if more is None else round(more * counted.size)
        sentence = _too_close(said, needed, units, counted.size)
    promise = _promise(release, counted, epsilon)
    setting = Setting(secrets.token_hex(8), "answer", len(names), None, *counted.outcome_range)
    certificate = make_certificate(promise, setting)
    start = Start(
        tuple(
            StartArm(names[k], one.terms, one.total, one.releases)
            for k, one in totals.items()
            if one.releases
        ),
        method.scale,
        counted.outcome_range,
        reward,
        certificate,
    )
    few = [name for k, name in enumerate(names) if sizes[k] < few_rows(epsilon)]
    cells = tuple((by or {}).items())
    return LogAnswer(
        said.best,
        said.arms,
        sentence,
        confidence,
        said.assumption,
        units,
        warning=_few_words(few, few_rows(epsilon), units.per),
        looks=ONCE,
        differences=pairs,
        gains=tuple(
            _gain(index, cells, counted.counts, sums, names, method, units, alpha)
            for index in range(len(cells))
        ),
        needed=needed,
        dropped=counted.dropped,
        guarantee=promise,
        certificate=certificate,
        start=start,
    )


class Cells(NamedTuple):
    """Which category of every column each row belongs to, all columns in one number."""

    codes: NDArray[np.int64]
    columns: tuple[str, ...] = ()
    categories: tuple[tuple[str, ...], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories each column has."""
        return tuple(len(names) for names in self.categories)

    @property
    def by(self) -> dict[str, tuple[str, ...]]:
        """The categories of each column."""
        return dict(zip(self.columns, self.categories, strict=True))


def once_each(log: Log) -> tuple[Log, NDArray[np.int64]]:
    """Return a log in which everyone counts once, and the first row of each person.

    A person counts by the mean of their rows with the arm that they met first.
    """
    assert log.people is not None, "the log does not know its people"
    _, arrival = slots_of(log.people)
    first_arm = np.empty(int(log.people.max()) + 1, dtype=np.int64)
    first_arm[log.people[arrival]] = log.arms[arrival]
    mine = log.arms == first_arm[log.people]
    slot, first = slots_of(log.people[mine])
    kept = np.flatnonzero(mine)[first]
    units = mean_units(log.units[mine], slot, first.size)
    return replace(
        log,
        arms=log.arms[kept],
        units=units,
        propensity=None,
        people=log.people[kept],
        segments=log.segments[kept],
    ), kept


def few_rows(epsilon: float) -> int:
    """Return how many rows an arm needs for its mean to say something: noise below a tenth."""
    return math.ceil(max(100.0, 10.0 * math.sqrt(2.0) / epsilon))


def rows_needed(scale: float, a: Totals, b: Totals, alpha: float) -> float | None:
    """Return how many times as many rows would tell two arms apart, four times in five.

    If they differ as much as it looks; None if it would take more than 10,000 times as many.
    """

    def grown(arm: Totals, times: float) -> Totals:
        return Totals(arm.total * times, arm.terms * times, arm.releases)

    def settles(times: float) -> bool:
        return fixed_below(scale, grown(a, times), grown(b, times), alpha)

    low, high = 1.0, 10_000.0
    if not settles(high):
        return None
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if settles(middle) else (middle, high)
    often = 1.0 + FOUR_IN_FIVE / math.sqrt(2.0 * math.log(1.0 / alpha))
    return high * often**2


def _bins(by: Categories) -> tuple[Bins, ...]:
    """Read how columns divide rows."""
    if not isinstance(by, Mapping):
        raise InputError(
            f'by must say the categories of each column, such as {{"plan": ["basic", "gold"]}}, or '
            f'the edges of its bins, such as {{"age": [18, 40, 65, 90]}}; got {by!r}.'
        )
    found = tuple(Bins.of(column, declared) for column, declared in by.items())
    _check_cells(2 * math.prod(one.size for one in found))
    return found


def _check_cells(cells: int) -> None:
    if cells > MOST_CELLS:
        raise InputError(
            f"{cells:,} sums would be released, one for each arm and category of all columns; at "
            f"most {MOST_CELLS:,}. Declare fewer categories, or ask for fewer columns."
        )


def _cells(log: object, by: Categories, kept: NDArray[np.int64], arms: int) -> Cells:
    bins, codes = _bins(by), np.zeros(kept.size, dtype=np.int64)
    _check_cells(arms * math.prod(one.size for one in bins))
    found = read_columns(log, list(by)) if by else {}
    for one in bins:
        codes = codes * one.size + _codes(one, found[one.column][kept])
    return Cells(codes, tuple(by), tuple(one.names for one in bins))


def _codes(bins: Bins, values: Column) -> NDArray[np.int64]:
    """Number the declared category, or bin, of each value."""
    other = bins.size - 1
    if bins.edges:
        try:
            numbers = values.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"column {bins.column!r} must hold numbers, as bins need.") from None
        codes = np.clip(np.searchsorted(bins.edges, numbers, side="right") - 1, 0, other - 1)
        return np.where(np.isnan(numbers), other, codes).astype(np.int64)
    known = {name: index for index, name in enumerate(bins.categories)}
    names, where = np.unique(values.astype(str), return_inverse=True)
    return np.array([known.get(name, other) for name in names], dtype=np.int64)[where.ravel()]


def _released(release: LaplaceRelease, counted: Counted, *, reward: bool) -> NDArray[np.float64]:
    """Return each arm's noisy sums of losses, one column for each cell.

    Every row is in one sum, and every sum is released once. Sums of no rows are not released.
    """
    counts, sums = counted.counts, np.zeros(counted.counts.shape)
    for arm, cell in zip(*np.nonzero(counts), strict=True):
        size = int(counts[arm, cell])
        mean = release.release(int(counted.sums[arm, cell]), size)
        sums[arm, cell] = size * (1.0 - mean if reward else mean)
    return sums


def _totals(counts: NDArray[np.int64], sums: NDArray[np.float64]) -> dict[int, Totals]:
    return {
        arm: Totals(
            float(sums[arm].sum()), float(counts[arm].sum()), float((counts[arm] > 0).sum())
        )
        for arm in range(len(counts))
    }


def _promise(release: LaplaceRelease, counted: Counted, epsilon: float) -> Guarantee:
    slots = 1 if counted.persons else None
    assumed = assumed_by_all(*counted.outcome_range, clip=counted.clip, slots=slots)
    promise = release.guarantee().assuming(*assumed, PUBLIC_ROWS)
    return for_person(promise, epsilon, 0.0, 1) if counted.persons else promise


# --- does deciding by a column pay? -----------------------------------------------------------


def _gain(
    index: int,
    cells: tuple[tuple[str, tuple[str, ...]], ...],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    names: Sequence[ArmName],
    method: Once,
    units: Units,
    alpha: float,
) -> Gain:
    """Estimate what the best rule by one column gains over the best single arm."""
    arms, others = len(names), tuple(k + 1 for k in range(len(cells)) if k != index)
    shape = (arms, *(len(categories) for _, categories in cells))
    n = counts.reshape(shape).sum(axis=others).astype(float)
    noises = (counts.reshape(shape) > 0).sum(axis=others)
    total = sums.reshape(shape).sum(axis=others)
    seen = n.sum(axis=0) > 0
    n, noises, total = n[:, seen], noises[:, seen], total[:, seen]
    shares = n.sum(axis=0) / n.sum()
    overall = total.sum(axis=1) / n.sum(axis=1)
    means = np.where(n > 0, total / np.maximum(n, 1.0), overall[:, None])
    edge = 1.0 / (np.maximum(n, 1.0) + 2.0)
    inside = np.clip(means, edge, 1.0 - edge)
    spread = inside * (1.0 - inside) / np.maximum(n, 1.0)
    spread += 2.0 * method.scale**2 * noises / np.maximum(n, 1.0) ** 2
    spread = np.where(n > 0, spread, 0.25)
    found, low, high = gain_interval(means, spread, shares, alpha)
    column, known = cells[index]
    categories = [name for name, there in zip(known, seen, strict=True) if there]
    rule = {name: names[int(means[:, x].argmin())] for x, name in enumerate(categories)}
    width = units.width
    if low > 0.0:
        words = f"Deciding by {column} would gain {units.gain(found, low, high)}"
        sentence = f"{words} over the best single arm, by the normal approximation."
    else:
        sentence = (
            f"Deciding by {column} gains nothing that can be told from chance, and at most "
            f"{units.amount(high)} over the best single arm, by the normal approximation."
        )
    return Gain(column, width * found, width * low, width * high, rule, sentence)


def gain_interval(
    means: NDArray[np.float64],
    spread: NDArray[np.float64],
    shares: NDArray[np.float64],
    alpha: float,
) -> tuple[float, float, float]:
    """Return what the best rule by category gains over the best single arm, with its interval.

    ``means`` are losses of each arm (row) in each category (column), ``spread`` their variances,
    ``shares`` how common categories are. The gain is the least over arms of the largest over rules
    of a linear function of the means. All of these are bounded at once by a normal bound for each.
    """
    from scipy.special import ndtri  # loaded when first used

    arms, width = means.shape
    rules = float(arms) ** width
    z = float(-ndtri(max(alpha / (2.0 * rules * arms), 1e-300)))
    best = means.argmin(axis=0)
    chosen = np.array([best])
    if rules <= MOST_RULES:
        chosen = np.array(list(itertools.product(range(arms), repeat=width)))
    at = np.arange(width)
    middle, low, high = [], [], []
    for arm in range(arms):
        more = shares * (means[arm] - means[chosen, at])
        noise = shares**2 * np.where(chosen != arm, spread[arm] + spread[chosen, at], 0.0)
        size, radius = more.sum(axis=1), z * np.sqrt(noise.sum(axis=1))
        middle.append(size.max())
        low.append((size - radius).max())
        top = (size + radius).max()
        if rules > MOST_RULES:  # a rule's radius is at most the sum over its categories
            apart = np.where(np.arange(arms)[:, None] != arm, spread[arm] + spread, 0.0)
            top = (shares * (means[arm] - means + z * np.sqrt(apart))).max(axis=0).sum()
        high.append(top)
    least = max(min(low), 0.0)
    most = max(min(high), least)
    return float(min(max(min(middle), least), most)), float(least), float(most)


# --- words ------------------------------------------------------------------------------------


def _too_close(said: Answer, needed: int | None, units: Units, size: int) -> str:
    names = [str(name) for name in said.racing]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    what = f" in {units.noun}" if units.clip else ""
    more = f"more than {10_000 * size:,}" if needed is None else f"about {_rounded(needed):,}"
    return (
        f"Too close to tell: {listed} may be the best{what}, {100 * said.confidence:.4g}% sure, "
        f"provided {said.assumption}. If they differ as much as it looks now, {more} "
        f"{units.per} would settle it four times in five (there are {size:,})."
    )


def _rounded(count: int) -> int:
    """Round to two digits: it is a guess."""
    digits = max(0, len(str(count)) - 2)
    return int(round(count, -digits))


def _few_words(few: Sequence[ArmName], least: int, per: str) -> str:
    if not few:
        return ""
    some = ", ".join(map(str, few[:5])) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
    return (
        f"{some} {'has' if len(few) == 1 else 'have'} fewer than {least:,} {per}: mistyped names, "
        f"or a column of numbers taken as arms?"
    )
