"""A private A/B test on a log that exists: what is counted is released once, and answered from.

Every outcome is in exactly one sum, the sum of its arm, or of its arm and category, and its square
in the one beside it. Both are released once with discrete Laplace noise, for epsilon together. A
part of epsilon may buy a range or a slope first. Which rows there are, their arms and their
categories are public; outcomes are protected, and what is subtracted from them.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeGuard

import numpy as np

from bandanna._core import checks
from bandanna._core.extras import missing_for, need
from bandanna._core.grid import UNITS, LossRange, check_range
from bandanna._core.private_inputs import private_inputs
from bandanna._core.scale import Scale
from bandanna._core.start import Start, StartArm
from bandanna._core.types import ArmName, Guarantee, InputError, plain
from bandanna.counted import LARGEST_SQUARE, Counted
from bandanna.environments.frames import FRAMES, read_columns
from bandanna.inference import Interval
from bandanna.logs.answers import LogAnswer, comparison, how_made
from bandanna.logs.needed import rows_needed
from bandanna.logs.released import ReleasedCells
from bandanna.logs.rows import Categories, Rows, bins_of, check_cells
from bandanna.logs.rules import Gain, rule_gain
from bandanna.one_look import Arm, Kind, OneLook, Term, statistic
from bandanna.policy.answers import ArmAnswer, check_confidence, index_of
from bandanna.policy.statements import AT_RANDOM, Units, sure
from bandanna.privacy.bought import Bought, buy, check_asked, cut_words
from bandanna.privacy.certificate import OF_LOGS, Setting, make_certificate
from bandanna.privacy.composition import for_person
from bandanna.privacy.laplace import LaplaceRelease, laplace_scale
from bandanna.privacy.log_release import with_parts
from bandanna.privacy.moments import MomentsRelease
from bandanna.privacy.presence import PresenceRelease
from bandanna.privacy.statements import PUBLIC_ROWS, assumed_by_all
from bandanna.warehouse import Exposures, Table, count, source_of
from bandanna.warehouse import named as place_of

if TYPE_CHECKING:
    from bandanna.ledger import Ledger

__all__ = ["Gain", "LogAnswer", "answer", "answer_counted"]


@private_inputs
def answer(
    log: object,
    *,
    arm: str,
    outcome: str,
    epsilon: float,
    loss_range: LossRange | Literal["auto"] = (0.0, 1.0),
    bounds: LossRange | None = None,
    clip: bool = False,
    reward: bool = False,
    binary: bool | None = None,
    person: str | None = None,
    adjust: str | None = None,
    slope: float | None = None,
    adjusted_range: LossRange | None = None,
    control: ArmName | None = None,
    by: Categories | None = None,
    interval: Literal["normal", "proved"] = "normal",
    confidence: float = 0.95,
    ledger: Ledger | None = None,
    population: str = "everyone",
    protects: Literal["outcomes", "presence"] = "outcomes",
    arms: Sequence[ArmName] | None = None,
) -> LogAnswer:
    """Answer which arm of a finished log is best, privately: noisy sums of each arm.

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
        ``"auto"`` finds a range inside of ``bounds`` with a fifth of epsilon, and clips.
    bounds
        For ``loss_range="auto"``: surely hold all outcomes, and are known without looking at them.
    reward
        Whether large outcomes are good. By default outcomes are losses.
    binary
        Whether outcomes are the two ends of the range and nothing else, such as 0 and 1: then
        intervals are exact. By default a column of true and false is, without ``person``.
    person
        The column with whose row it is. Then a person counts once: by the mean of their rows with
        the arm they met first. Other rows of theirs are left out.
    adjust
        A column to subtract from outcomes, times a slope: what was known of each before they met an
        arm, such as the same outcome last month or a prediction of it, in the same units and the
        same range (what is outside counts as the nearer end). You state that it was frozen before
        anyone met an arm.
    slope, adjusted_range
        The slope, and the range of what is left. What is not given is found with a part of epsilon.
    control
        The arm that all others are compared with, fixed before looking. Without it every pair of
        arms is compared, and differences are wider for that.
    by
        Columns to decide by, each with its categories, or with the edges of its bins for numbers:
        ``{"plan": ["basic", "gold"], "age": [18, 40, 65, 90]}``. Declare them; they are not read
        off the log. Three and more numbers are edges. What is not among the categories is
        ``"other"``.
    interval
        ``"normal"``: by the normal approximation. ``"proved"``: for any outcomes in the range and
        any number of them, about twice as wide.
    confidence
        Confidence of the answer.
    ledger, population
        A ``bandanna.Ledger`` that what it costs is written to before any row is read, and about
        whom. What would exceed its budget is refused.
    protects
        ``"outcomes"``: who is in the log, and with which arm, is public. ``"presence"``: that is
        hidden too. Counts then have noise as well; ``arms`` are declared, outcomes are clipped, and
        nothing is refused for what rows hold. It needs the ``warehouse`` extra.
    arms
        With ``protects="presence"``: the arms there are. Rows of others are left out.

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
    auto = isinstance(loss_range, str)
    if auto and loss_range != "auto":
        raise InputError(f'loss_range must be (low, high) or "auto"; got {loss_range!r}.')
    check_asked(
        auto=auto,
        bounds=bounds,
        adjust=adjust,
        slope=slope,
        adjusted_range=adjusted_range,
        binary=bool(binary),
    )
    ends = check_range(bounds if auto else loss_range)
    if adjusted_range is not None:
        adjusted_range = check_range(adjusted_range)
    asked = {"arm": arm, "outcome": outcome, "person": person, "loss_range": ends}
    bins, source = bins_of(by or {}), source_of(log)
    named = {one.column: one.names for one in bins}
    answered = partial(
        answer_counted,
        epsilon=epsilon,
        reward=reward,
        confidence=confidence,
        by=named,
        interval=interval,
        control=control,
    )
    rows_wanted = auto or adjust is not None

    hidden = _hidden(protects, arms, source, binary=binary, interval=interval, bought=rows_wanted)

    def spend() -> None:
        if ledger is not None:
            each = person is not None or isinstance(source, Exposures)
            what = f"which {arm} is best by {outcome}, in {place_of(log)}"
            what += "" if each else "; k rows of one person cost k times as much"
            ledger.spend(epsilon, what=what, population=population)

    if ledger is not None:
        ledger.check(epsilon, population=population)
    bare = bool(missing_for("warehouse")) and _is_file(source)  # then its rows are read as they are
    if hidden is not None:
        wanted = [one for one in (arm, outcome, person, *named) if one is not None]
        place = _as_table(log, wanted) if source is None else source
        totals = count(place, **asked, clip=True, bins=bins, arms=hidden, before=spend)  # type: ignore[arg-type]
        return answered(totals.counted, present=True)
    if source is not None and not rows_wanted and not bare:
        totals = count(source, **asked, clip=clip, bins=bins, before=spend)  # type: ignore[arg-type]
        return answered(as_binary(totals.counted) if binary else totals.counted)
    clip = clip or auto
    spend()
    rows = Rows.read(_in_memory(log), **asked, clip=clip, bins=bins, adjust=adjust)  # type: ignore[arg-type]
    if not rows_wanted:
        whole = rows.log.boolean and person is None if binary is None else binary
        return answered(as_binary(rows.counted()) if whole else rows.counted())
    bought = buy(
        rows.sample, epsilon, auto=auto, adjust=adjust, slope=slope, adjusted_range=adjusted_range
    )
    return answered(rows.counted(bought.scale, clip=True), bought=bought)


def _hidden(
    protects: str,
    arms: Sequence[ArmName] | None,
    source: object,
    *,
    binary: bool | None,
    interval: str,
    bought: bool,
) -> tuple[str, ...] | None:
    """Return the arms that were declared, where who is in the log is hidden."""
    if protects not in ("outcomes", "presence"):
        raise InputError(f"protects must be outcomes or presence; got {protects!r}.")
    if protects == "outcomes":
        if arms is not None:
            raise InputError('arms= goes with protects="presence"; otherwise the log says them.')
        return None
    need("warehouse", "hiding who is in a log")
    if bought or binary or interval != "normal":
        raise InputError(
            'with protects="presence" the range is given, nothing is subtracted, and intervals are '
            'normal: leave out loss_range="auto", adjust=, binary= and interval=.'
        )
    if isinstance(source, Exposures):
        if arms is not None:
            raise InputError("exposures say the arms there are; leave arms= out.")
        return source.arms
    names = tuple(str(name) for name in arms or ())
    if isinstance(arms, str) or len(names) < 2 or len(set(names)) < len(names):
        raise InputError(
            f'protects="presence" needs the arms there are, at least 2 and each once: '
            f'arms=["A", "B"]; got {arms!r}.'
        )
    return names


def _as_table(log: object, columns: Sequence[str]) -> Table:
    """Return columns in memory as a table that can be counted; no value is in an error."""
    import pyarrow as pa

    arrays = read_columns(log, columns)
    try:
        return Table(pa.table({name: pa.array(values) for name, values in arrays.items()}))
    except (pa.ArrowException, TypeError, ValueError):
        pass
    raise InputError(f"columns {', '.join(columns)} must each hold values of one kind.")


def _is_file(log: object) -> TypeGuard[Table]:
    """Whether a log is one file that can be read without a database."""
    return isinstance(log, Table) and log.table is None and str(log.place).endswith(FRAMES)


def _in_memory(log: object) -> object:
    """Return a log whose rows can be read into memory."""
    if _is_file(log):
        return Path(str(log.place))
    if isinstance(log, Table | Exposures):
        raise InputError(
            "a range or a slope is found from rows in memory: give a CSV or Parquet file or a data "
            "frame; or give the range, and the slope of a column that the table has subtracted."
        )
    return log


def as_binary(counted: Counted) -> Counted:
    """Return what was counted of outcomes that are all at the ends of the range."""
    squares = counted.squares
    if squares is not None and (squares != counted.counts * LARGEST_SQUARE).any():
        low, high = (plain(end) for end in counted.outcome_range)
        raise InputError(
            f"some outcomes are neither {low} nor {high}, so they are not binary: leave binary out."
        )
    return replace(counted, squares=None)


def answer_counted(
    counted: Counted,
    *,
    epsilon: float,
    reward: bool = False,
    confidence: float = 0.95,
    by: Mapping[str, tuple[str, ...]] | None = None,
    interval: Literal["normal", "proved"] = "normal",
    control: ArmName | None = None,
    present: bool = False,
    bought: Bought | None = None,
) -> LogAnswer:
    """Answer which arm is best from what was counted, privately: see ``answer``.

    ``by`` names the categories of each column behind the cells, in the order of the cells;
    ``present`` hides the counts as well; ``bought`` is what a part of epsilon has bought before.
    """
    checks.epsilon(epsilon)
    alpha = 1.0 - check_confidence(confidence)
    bought = Bought(Scale(*counted.outcome_range)) if bought is None else bought
    if interval not in ("normal", "proved"):
        raise InputError(f"interval must be normal or proved; got {interval!r}.")
    if counted.size == 0 and not present:
        raise InputError("the log has no rows; give one for each decision that was made.")
    check_cells(counted.counts.size)
    names, binary = counted.names, counted.squares is None and not present
    against = None if control is None else index_of(names, control)
    release = _release(counted, bought.left(epsilon), present=present)
    released = _released(release, counted, reward=reward)
    if present:  # what is exact is not looked at any more
        nobody = np.zeros_like(counted.counts)
        counted = replace(counted, counts=nobody, sums=nobody, squares=None, mixed=0)
    arms = released.arms
    kind: Kind = "exact" if binary and interval == "normal" else interval
    look = OneLook(arms, kind, binary)
    adjusted = f"{counted.outcome} adjusted by {bought.adjusted}".strip()
    what = adjusted if bought.adjusted else counted.outcome
    units = Units(*counted.outcome_range, reward, what, counted.per, clip=counted.clip)
    told = _told(look, alpha, against)
    best = told.racing[0] if len(told.racing) == 1 else None
    means = [look.mean(k, alpha) for k in range(len(names))]
    pairs = tuple(
        comparison(look, names, told.base, k, told.level, units, confidence) for k in told.apart
    )
    needed = None
    if best is None and not present:
        needed = rows_needed(look, told.leader, told.base, told.apart, told.level)
    if best is not None:
        words = _best_words(look, told, best, names, units)
        sentence = f"{words}, {sure(confidence)}, provided {AT_RANDOM}."
    else:
        some = [names[k] for k in told.racing]
        sentence = _too_close(some, units, confidence)
        more = "" if needed is None else needed.words(units.per)
        sentence += more and f"{more.removesuffix('.')} (there are {counted.size:,})."
    promise = _promise(release, counted, bought, epsilon)
    setting = Setting(secrets.token_hex(8), OF_LOGS, len(names), None, *counted.outcome_range)
    certificate = make_certificate(promise, setting)
    named = list(zip(names, arms, strict=True))
    start = None
    if not bought.adjusted and not present:
        known = tuple(
            StartArm(name, arm.size, arm.total, arm.releases, arm.square)
            for name, arm in named
            if arm.size
        )
        start = Start(known, released.scale, counted.outcome_range, reward, certificate)
    least = few_rows(epsilon)
    few = [] if present else [name for name, arm in named if arm.size < least]
    columns = () if by is None else tuple(by.items())
    return LogAnswer(
        None if best is None else names[best],
        tuple(
            ArmAnswer(
                name,
                max(round(arms[k].size), 0),
                units.value(_shown(arms[k], means[k])) if arms[k].size or present else None,
                *units.interval(means[k]),
                k in told.racing,
            )
            for k, name in enumerate(names)
        ),
        sentence,
        confidence,
        AT_RANDOM,
        units,
        warning=_few_words(few, least, units.per),
        looks=how_made(kind),
        differences=pairs,
        gains=tuple(
            rule_gain(index, columns, released, names, units, alpha)
            for index in range(0 if present else len(columns))
        ),
        needed=needed,
        mixed=counted.mixed,
        guarantee=promise,
        certificate=certificate,
        start=start,
        notes=(HIDDEN,) if present else _notes(bought, look, told, counted, alpha),
        interval=kind,
        control=control,
        look=look,
        groups=_groups(released, look, columns),
    )


def _shown(arm: Arm, found: Interval) -> float:
    """Return the mean of an arm that is shown, inside of its interval."""
    if arm.size <= 0.0:  # a count that noise took below 0
        return (found.low + found.high) / 2.0
    return min(max(arm.mean, found.low), found.high)


# --- what is released -------------------------------------------------------------------------


HIDDEN = (
    "Who is in the log is hidden as well: numbers of people have noise, and means are ratios of "
    "two noisy numbers, which intervals take into account."
)


def _release(
    counted: Counted, epsilon: float, *, present: bool = False
) -> MomentsRelease | LaplaceRelease | PresenceRelease:
    if present:
        return PresenceRelease(epsilon)
    longest = max(2, counted.size)
    if counted.squares is None:
        return LaplaceRelease(epsilon, 1, longest=longest)
    return MomentsRelease(epsilon, longest)


def _released(
    release: MomentsRelease | LaplaceRelease | PresenceRelease, counted: Counted, *, reward: bool
) -> ReleasedCells:
    """Return each arm's counts, noisy sums of losses and of squares.

    Every row is in one sum, and every sum is released once. Sums of no rows are not released, but
    where counts are noisy. Squares of outcomes that are 0 or 1 are known.
    """
    scale = laplace_scale(release.epsilon) / UNITS
    if isinstance(release, PresenceRelease):
        there = release.release(counted)
        lost = there.counts - there.sums if reward else there.sums
        return ReleasedCells(there.counts, lost, there.squares, scale, present=True)
    counts = counted.counts
    sums, squares = np.zeros(counts.shape), counts / 4.0
    for arm, cell in zip(*np.nonzero(counts), strict=True):
        size, total = int(counts[arm, cell]), int(counted.sums[arm, cell])
        if isinstance(release, MomentsRelease):
            assert counted.squares is not None
            noisy = release.release(total, int(counted.squares[arm, cell]), size)
            sums[arm, cell], squares[arm, cell] = noisy.total / UNITS, noisy.square / UNITS
        else:
            sums[arm, cell] = size * release.release(total, size)
        if reward:
            sums[arm, cell] = size - sums[arm, cell]
    return ReleasedCells(counts.astype(np.float64), sums, squares, scale)


def _groups(
    released: ReleasedCells, look: OneLook, columns: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[tuple[str, OneLook], ...]:
    """Return what was released of each category of each column."""
    shape = tuple(len(names) for _, names in columns)
    groups = []
    for axis, (column, names) in enumerate(columns):
        for category, name in enumerate(names):
            cells = np.arange(released.counts.shape[1]).reshape(shape)
            part = released.of(np.take(cells, category, axis).ravel())
            if part.counts.any():
                groups.append((f"{column} = {name}", look._replace(arms=part.arms)))
    return tuple(groups)


def _promise(
    release: MomentsRelease | LaplaceRelease | PresenceRelease,
    counted: Counted,
    bought: Bought,
    epsilon: float,
) -> Guarantee:
    if isinstance(release, PresenceRelease):
        promise = release.guarantee()
        return promise.assuming(*assumed_by_all(*counted.outcome_range, clip=True))
    slots, bounds = 1 if counted.persons else None, bought.bounds
    promise = release.guarantee()
    if bought.parts:
        promise = with_parts(promise, bought.parts, bounds, bought.adjusted)
    ends = counted.outcome_range
    assumed = assumed_by_all(*ends, clip=counted.clip, slots=slots, bought=bounds is not None)
    promise = promise.assuming(*assumed, PUBLIC_ROWS)
    return for_person(promise, epsilon, 0.0, 1) if counted.persons else promise


# --- what it says -----------------------------------------------------------------------------


class Ranking(NamedTuple):
    """Which arms may be the best, and how all others differ from one of them, together."""

    leader: int
    """The arm with the best released mean."""
    base: int
    """The arm that others are compared with: the leader, or the control."""
    apart: dict[int, Interval]
    """How much larger the mean loss of each other arm is."""
    level: float
    """The error probability of each pair."""
    racing: list[int]


def _told(look: OneLook, alpha: float, control: int | None) -> Ranking:
    """Compare arms so that everything holds together.

    The leader was picked by looking, so its pairs have the error probability of all pairs there
    are. A control was fixed beforehand: only pairs with it count.
    """
    count = len(look.arms)
    seen = [k for k, arm in enumerate(look.arms) if arm.size > (arm.fewest * arm.present)]
    leader = min(seen, key=lambda k: look.arms[k].mean, default=0)
    base = leader if control is None else control
    level = alpha / (count * (count - 1) / 2 if control is None else count - 1)
    order = sorted(range(count), key=lambda k: look.arms[k].mean if k in seen else math.inf)
    apart = {k: look.difference(base, k, level) for k in order if k != base}
    surest = (
        min([0.0, *(interval.high for interval in apart.values())]) if control is not None else 0.0
    )
    racing = [k for k, interval in apart.items() if interval.low <= surest]
    racing += [base] if surest >= 0.0 else []
    return Ranking(leader, base, apart, level, sorted(racing))


def _best_words(
    look: OneLook, told: Ranking, best: int, names: Sequence[ArmName], units: Units
) -> str:
    """Say which arm is best, and by how much."""
    if best == told.base:
        nearest = min(told.apart, key=lambda k: told.apart[k].low)
        low, high = told.apart[nearest]
    else:
        nearest, (low, high) = told.base, (-end for end in reversed(told.apart[best]))
    more = min(max(look.apart(best, nearest), low), high)
    if len(names) == 2:
        return f"{names[best]} is better than {names[nearest]} by {units.gain(more, low, high)}"
    which = "the nearest" if best == told.base else "the control"
    return (
        f"{names[best]} is the best of {len(names)} arms, better than {names[nearest]}, {which}, "
        f"by {units.gain(more, low)}"
    )


def _too_close(some: Sequence[ArmName], units: Units, confidence: float) -> str:
    listed = f"{', '.join(map(str, some[:-1]))} and {some[-1]}"
    what = f" in {units.noun}" if units.clip else ""
    return (
        f"Too close to tell: {listed} may be the best{what}, {sure(confidence)}, provided "
        f"{AT_RANDOM}."
    )


def _notes(
    bought: Bought, look: OneLook, told: Ranking, counted: Counted, alpha: float
) -> tuple[str, ...]:
    """Say what was bought, and what it did."""
    said, (low, high) = [], counted.outcome_range
    if bought.adjusted:
        said.append(
            f"{plain(round(bought.scale.slope, 4))} times {bought.adjusted} is subtracted from "
            f"{counted.outcome}; {_narrower(bought, look, told, alpha)}."
        )
    if bought.kept:
        said.append(
            f"Too few {counted.per} are not 0 to find a range at this epsilon: everything from "
            f"{plain(low)} to {plain(high)} is counted."
        )
    if bought.cut is not None:
        spent = sum(part.epsilon for part in bought.parts if "slope" not in part.what)
        cut, most = cut_words(bought.cut, bought.cut_noise, bought.size)
        said.append(
            f"The range, {low:.6g} to {high:.6g}, was found with {spent:.3g} of epsilon; about "
            f"{cut} in a hundred {counted.per} are cut by it, 95% sure at most {most}."
        )
    return tuple(said)


def _narrower(bought: Bought, look: OneLook, told: Ranking, alpha: float) -> str:
    if bought.related is None:
        return "there are too few people to tell how much narrower that makes intervals"
    first, second = told.leader, next(k for k in (*told.apart, told.base) if k != told.leader)
    terms = [Term(-1.0, look.arms[first]), Term(1.0, look.arms[second])]
    apart = statistic(terms)
    before = apart._replace(variance=apart.variance / (1.0 - bought.related))
    less = 1.0 - apart.radius(alpha) / before.radius(alpha)
    return f"that makes intervals about {100.0 * less:.0f}% narrower"


def few_rows(epsilon: float) -> int:
    """Return how many rows an arm needs for its mean to say something: noise below a tenth."""
    return math.ceil(max(100.0, 10.0 * math.sqrt(2.0) / epsilon))


def _few_words(few: Sequence[ArmName], least: int, per: str) -> str:
    if not few:
        return ""
    some = ", ".join(map(str, few[:5])) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
    return (
        f"{some} {'has' if len(few) == 1 else 'have'} fewer than {least:,} {per}: mistyped names, "
        f"or a column of numbers taken as arms?"
    )
