"""What a policy is: every parameter, declared once.

``Spec`` is the declaration. A field says a parameter's type, default, check, and help text, and
where else the parameter appears. The rest is derived from it: the constructors' signatures, the
body of ``POST /v1/experiments``, the axes of a study, ``bandanna simulate --set``, and saved
files. To add a parameter, add a field to ``Spec`` (and its type to ``Options``, for static type
checkers), then use it.

``Problem`` is the part of a Spec that planner and bounds need.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from numbers import Integral
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    TypedDict,
    TypeVar,
    get_args,
    get_type_hints,
)

from bandanna._core import checks
from bandanna._core.scale import Scale
from bandanna._core.start import Start, check_start
from bandanna._core.types import JSON, ArmName, InputError

MAX_EXPERTS = 10**6
MAX_SERVED_ARMS, MAX_SERVED_EXPERTS = 10_000, 100_000
"""What an experiment of the service may have at most."""

Goal = Literal["answer"]
"""What a policy can be for, besides losing as little as it can."""

Losses = Literal["any", "changing", "steady"]
"""What can be said about losses, instead of naming an algorithm."""

Constants = Literal["paper", "ours"]
"""Whose constants an algorithm of the paper runs with."""

IntervalKind = Literal["normal", "proved"]
"""How intervals are made."""

RangeOrAuto = tuple[float, float] | Literal["auto"]
"""A range of losses, or the word for one that is to be found."""

if TYPE_CHECKING:
    _Range = tuple[float, float]  # the word is replaced by the bounds at once
else:
    _Range = RangeOrAuto

INTERVALS: tuple[str, ...] = get_args(IntervalKind)
GOALS: tuple[str, ...] = get_args(Goal)
CONSTANTS: tuple[str, ...] = get_args(Constants)
LOSSES: tuple[str, ...] = get_args(Losses)

Check = Callable[[object], Any]
T = TypeVar("T")


class Axis(NamedTuple):
    """How a parameter appears as an axis of a study."""

    title: str
    """What charts call it."""
    importance: int = 0
    """Where a chart would be too large, the axes with the least are cut to one value first."""
    rivals_share: bool = True
    """Whether only algorithms with the same value of it compete."""
    private: bool = False
    """Whether it means nothing without privacy; such cells have None."""
    shown_first: str = "middle"
    """Which of its values a chart with a menu shows first: the first, middle or largest."""


class Parameter(NamedTuple):
    """What is declared of a parameter besides its name, type and default."""

    check: Check
    help: str
    least: float | None = None
    most: float | None = None
    """NumberLimits that a JSON schema can state; ``check`` has the last word."""
    choices: tuple[str, ...] = ()
    served: bool = False
    """Whether the service takes it in an experiment."""
    axis: Axis | None = None
    experts: bool = True
    """Whether policies with experts have it: all that ``ExpertsOptions`` does not leave out."""


class NumberLimits(NamedTuple):
    """What a number must be within."""

    least: float
    most: float = 10**18
    check: Callable[..., float] = checks.within
    """Called with the name, the value and the limits."""


_whole = partial(NumberLimits, check=checks.whole)


def _declare(
    allowed: NumberLimits | tuple[str, ...] | Check, text: str, default: T, **where: Any
) -> T:
    """Declare a field of ``Spec``: its limits, its choices or its check; what it is; a default.

    The type is that of the default; where it is None, None is allowed.
    """
    made: T = field(default=default, metadata={"allowed": allowed, "help": text, "where": where})
    return made


def _parameter(name: str, default: object, declared: Mapping[str, Any]) -> Parameter:
    """Return what is declared of a parameter, with the check that follows from it."""
    allowed, where = declared["allowed"], declared["where"]
    if isinstance(allowed, NumberLimits):
        most = allowed.most if allowed.most < 10**18 else None
        where = {"least": allowed.least, "most": most} | where
    elif isinstance(allowed, tuple):
        where = {"choices": allowed} | where

    def check(value: object) -> Any:
        if value is None is default:
            return None
        if isinstance(allowed, NumberLimits):
            return allowed.check(name, value, allowed.least, allowed.most)
        if not isinstance(allowed, tuple):
            return allowed(value)
        if value not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")
        return str(value)

    bandits_alone = Options.__annotations__.keys() - ExpertsOptions.__annotations__.keys()
    taken = {"experts": name not in bandits_alone} | where
    return Parameter(check, " ".join(declared["help"].split()), **taken)


def _epsilon(value: object) -> float:
    return math.inf if value == math.inf else checks.epsilon(value)


def _as_given(value: object) -> object:
    """Leave a value as it is: who uses it checks it."""
    return value


def arm_names(arms: object) -> tuple[ArmName, ...]:
    """Turn a number of arms or their names, in order, into names."""
    names = _names("arms", arms, checks.arms)
    if len(names) < 2:
        raise InputError(f"a bandit needs at least 2 arms; got {len(names)}: {list(names)!r}.")
    return names


def expert_names(experts: object) -> tuple[ArmName, ...]:
    """Turn a number of experts or their names, in order, into names.

    Examples
    --------
    >>> expert_names(2), expert_names(["lr", "rf"])
    ((0, 1), ('lr', 'rf'))
    """
    count = partial(checks.whole, "experts", at_least=1, at_most=MAX_EXPERTS)
    names = _names("experts", experts, count)
    count(len(names))
    return names


def _names(what: str, given: object, count: Check) -> tuple[ArmName, ...]:
    if isinstance(given, str | bytes | set | frozenset) or not isinstance(
        given, Iterable | float | Integral
    ):
        raise InputError(f"{what} must be a number or a list of names; got {given!r}.")
    if not isinstance(given, Iterable):
        return tuple(range(count(given)))
    names = tuple(name.item() if hasattr(name, "item") else name for name in given)
    for name in names:
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise InputError(f"names of {what} must be texts or whole numbers; got {name!r}.")
    repeated = [str(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"names of {what} must differ; repeated: {', '.join(repeated)}.")
    return names


@dataclass(frozen=True)
class Spec:
    """What a policy is: its problem, what was replaced in its algorithm, feedback, and people.

    ``kind`` is the class of the policy. The seed is not part of it: two policies of one Spec draw
    different arms.
    """

    kind: str
    arms: tuple[ArmName, ...] = _declare(
        arm_names,
        "How many arms, or their names.",
        (0, 1),
        least=2,
        most=MAX_SERVED_ARMS,
        served=True,
        axis=Axis("arms K", importance=5),
    )
    epsilon: float = _declare(
        _epsilon,
        "The privacy parameter, from 1e-9 to 100: smaller is more private. 0.1 to 1 is common.",
        math.inf,
        served=True,
        axis=Axis("epsilon (smaller is more private)", importance=7, private=True),
    )
    delta: float = _declare(
        checks.delta,
        """What may be spent besides epsilon; 0 is pure. It is used by batched-exp4, and with
        per_person.""",
        0.0,
        least=0,
        most=1,
        served=True,
        axis=Axis("delta (what may be spent)", importance=2, private=True),
    )
    rounds: int | None = _declare(
        _whole(1, checks.MAX_ROUNDS),
        """How many decisions are expected. The default does without it, but is better with it.
        Going on beyond it costs no privacy.""",
        None,
        served=True,
        axis=Axis("rounds T", importance=3, shown_first="largest"),
    )
    experts: tuple[ArmName, ...] | None = _declare(
        expert_names,
        "How many experts advise, or their names; none by default.",
        None,
        least=1,
        most=MAX_SERVED_EXPERTS,
        served=True,
        axis=Axis("experts N", importance=4),
    )
    algorithm: str | None = _declare(
        _as_given,
        "The algorithm by name; chosen by what is said of the problem if left out.",
        None,
        served=True,
    )
    constants: Constants | None = _declare(  # noqa: RUF009
        CONSTANTS,
        """With an algorithm of the paper: paper runs it as published (default), ours with settings
        that make our own, smaller bound the smallest.""",
        None,
        served=True,
        axis=Axis("constants", private=True),
    )
    losses: Losses | None = _declare(  # noqa: RUF009
        LOSSES,
        """What losses are like, instead of an algorithm. Left out, they are taken for those of an
        ordinary experiment. any expects the worst (adaptive); steady says that no arm's losses
        change (no probes); changing that the best arm changes and you want to follow it (adaptive
        with a short memory). With experts: auto, dp-klucb and adaptive.""",
        None,
        served=True,
    )
    changes: int | None = _declare(
        _whole(1),
        """How often the best arm changes, about, in all rounds; with adaptive and
        one-bit-exp3.""",
        None,
    )
    memory: int | None = _declare(
        _whole(1),
        "How many rounds adaptive remembers; by default it follows rounds and changes.",
        None,
    )
    goal: Goal | None = _declare(  # noqa: RUF009
        GOALS,
        """What the policy is for: answer finds the best arm with a stated confidence and then plays
        it; by default the policy loses as little as it can. It is for steady losses.""",
        None,
        served=True,
    )
    confidence: float = _declare(
        NumberLimits(0.5, 1.0 - 1e-9),
        """Confidence of the answer of goal="answer", and of guardrails that retire an arm.""",
        0.95,
        most=1,
        served=True,
    )
    interval: IntervalKind = _declare(  # noqa: RUF009
        INTERVALS,
        """How intervals are made where it is known how much outcomes vary: normal is narrower and
        holds by the normal approximation; proved holds for any outcomes in the range.""",
        "normal",
        served=True,
    )
    tolerance: float = _declare(
        NumberLimits(0, math.inf),
        """With goal="answer": an arm is good enough once no other is better by more than this, in
        units of the loss.""",
        0.0,
        served=True,
    )
    guard: bool = _declare(
        bool,
        """Without it dp-klucb is the algorithm as published, which does not notice changes, and
        phased does not notice when the order of arms changes.""",
        True,
    )
    probes: bool = _declare(
        bool,
        """Without them phased does not look at arms it has stopped playing: less regret where
        nothing changes, and an arm that becomes the best unseen is not found.""",
        True,
    )
    explore: float | None = _declare(
        NumberLimits(0.0, 1.0),
        "Share of the rounds in which ab-test explores; 0.2 by default.",
        None,
    )
    learner: object = _declare(
        _as_given,
        """Replaces the learner of an algorithm, of one-bit unless another is named: a learner by
        name, object or adapter.""",
        None,
    )
    release: object = _declare(
        _as_given,
        """Replaces the release: one-bit, laplace, or device for bits that people's own devices
        released, which observe_bit takes.""",
        None,
    )
    batch: int | None = _declare(
        _whole(1, checks.MAX_ROUNDS),
        "Rounds in a batch, instead of what the algorithm would choose.",
        None,
        axis=Axis("rounds in a batch", importance=1, rivals_share=False),
    )
    loss_range: _Range = _declare(  # noqa: RUF009
        checks.range_or_auto,
        """Smallest and largest possible loss, known beforehand; or auto, with bounds: then the
        first phase finds it.""",
        (0.0, 1.0),
        served=True,
    )
    bounds: tuple[float, float] | None = _declare(
        checks.loss_range,
        """With loss_range="auto": what surely holds all losses, known without looking at them. The
        rounds of the first phase find the range within it, privately, and are used for nothing
        else.""",
        None,
        served=True,
    )
    default_loss: float | None = _declare(
        _as_given,
        """What give_up counts for feedback that never comes; by default the middle of the
        range.""",
        None,
        served=True,
    )
    binary: bool = _declare(
        bool,
        """Whether every outcome is one of the two ends of the range, such as bought or not. Then
        how much outcomes vary follows from their mean; else that is released with them, which
        costs nothing.""",
        False,
        served=True,
    )
    clip: bool = _declare(
        bool,
        """Count feedback outside the range as its nearer end. Refused, as it is by default, it
        might be dropped, and then whether feedback arrives would depend on what it says.""",
        False,
        served=True,
    )
    delay: int = _declare(
        _whole(0, checks.MAX_ROUNDS),
        """How many further decisions may be made before the feedback of one has come, for the rate
        of one-bit-exp3 and its bound. Privacy does not depend on it.""",
        0,
    )
    per_person: int | None = _declare(
        _whole(1, checks.MAX_SLOTS),
        """Protect persons instead of rounds: how many slots each may have, one in a batch. Then
        epsilon and delta are for everything a person contributes, batch and rounds count slots,
        and decide asks who it is for. docs/people.md explains.""",
        None,
        served=True,
        axis=Axis("slots per person", importance=2, private=True),
    )
    rounds_per_slot: int | None = _declare(
        _whole(1, checks.MAX_SLOTS),
        """With per_person: rounds after which a slot takes no more. By default it takes them until
        finish, or the deadline, closes it.""",
        None,
        served=True,
    )
    people: int | None = _declare(
        _whole(1, checks.MAX_ROUNDS),
        """With per_person: how many people there are. Batches that are not given have at most half
        as many slots, so that they fill. By default the fewest who can take all slots, rounds over
        per_person.""",
        None,
        served=True,
    )

    metrics: Mapping[str, tuple[float, float]] | None = _declare(
        checks.check_metrics,
        """Further outcomes, by name, with the smallest and largest value of each. observe takes
        them with the main outcome, and answer(metric=...) tells what they say. They share epsilon
        with it.""",
        None,
        served=True,
    )
    metrics_share: float = _declare(
        NumberLimits(0.01, 0.99),
        """The share of epsilon that goes to the metrics, evenly; the rest is the main outcome's.
        It is used with metrics alone.""",
        0.5,
        served=True,
    )
    guardrails: Mapping[str, float] | None = _declare(
        checks.check_guardrails,
        """How far an arm may be from the control in a metric: above it, or below it if negative. An
        arm that is further away, with the confidence, is retired. It is for steady outcomes, or any
        that are fixed in advance where phases are played.""",
        None,
        served=True,
    )
    control: str | int | None = _declare(
        _as_given,
        "The arm that guardrails compare with, and that keeps least_share.",
        None,
        served=True,
    )
    least_share: float = _declare(
        NumberLimits(0.0, 0.5),
        """The share of rounds that the control keeps, whatever is learned. Where batches play one
        arm, those that it is given for this reason count in answers alone.""",
        0.0,
        served=True,
    )
    adjust: str | None = _declare(
        checks.adjust,
        """What was known of each person before the decision, by name: decide(before=...) takes it
        as a number, in the outcome's units, such as a prediction by any model. It is subtracted
        from the outcome, times the slope. Differences between arms stay what they are and vary
        less.""",
        None,
        served=True,
    )
    slope: float | None = _declare(
        checks.slope,
        """With adjust: how many times what was known before is subtracted. Left out, the first
        phase finds it, privately.""",
        None,
        least=-checks.STEEPEST,
        most=checks.STEEPEST,
        served=True,
    )
    adjusted_range: tuple[float, float] | None = _declare(
        checks.loss_range,
        """With adjust: the range in which what is left of the outcome is counted, known beforehand.
        What is outside counts as its nearer end. Left out, the first phase finds it.""",
        None,
        served=True,
    )
    before_epsilon: float = _declare(
        NumberLimits(0, checks.MAX_EPSILON),
        """With adjust: if what was known before holds feedback that was released before, the
        epsilon of that. The guarantee adds it up.""",
        0.0,
        served=True,
    )
    start_from: object = _declare(
        check_start,
        """What bd.answer returned for a finished log, or its to_dict(): its released sums start
        phased (the default with it), dp-klucb, ab-test and goal="answer". Who is in the log and in
        the run has both epsilons added up.""",
        None,
        served=True,
    )

    def __post_init__(self) -> None:
        declared = parameters()
        values = {name: one.check(getattr(self, name)) for name, one in declared.items()}
        values["loss_range"] = checks.range_within(values["loss_range"], values["bounds"])
        low, high = values["loss_range"]
        middle = low + (high - low) / 2
        given = middle if self.default_loss is None else self.default_loss
        values["default_loss"] = checks.within("default_loss", given, low, high)
        if self.rounds_per_slot is not None and self.per_person is None:
            raise InputError("rounds_per_slot goes with per_person, the slots a person may have.")
        if self.people is not None and self.per_person is None:
            raise InputError("people= goes with per_person=, the slots a person may have.")
        about = ("metrics", "guardrails", "control", "least_share", "arms")
        checks.check_together(*(values[name] for name in about))
        self._check_adjusted(values)
        checks.set_fields(self, **values)

    def _check_adjusted(self, values: Mapping[str, Any]) -> None:
        """Refuse what does not go with subtracting what was known before."""
        name, slope, ends = (values[one] for one in ("adjust", "slope", "adjusted_range"))
        checks.check_adjusted(name, slope, ends, binary=values["binary"])
        if name is None and values["before_epsilon"]:
            raise InputError("before_epsilon is of what was known before: name that, adjust=.")
        if values["bounds"] is not None and (values["binary"] or ends is not None):
            raise InputError(
                'loss_range="auto" is for a range that is to be found: leave out binary= and '
                "adjusted_range=."
            )
        low, high = values["loss_range"]
        if name is not None and not math.isfinite(1e3 * (high - low)):
            raise InputError(
                f"the range, {low:g} to {high:g}, is too wide to subtract from; write outcomes in "
                f"other units."
            )
        if values["start_from"] is not None and (name or values["bounds"]):
            raise InputError(
                'a log is of outcomes as they are: start_from= goes without adjust= and "auto".'
            )

    @property
    def scale(self) -> Scale | None:
        """How outcomes are counted; None where they are counted as they are."""
        if self.slope is None or self.adjusted_range is None or self.bounds is not None:
            return None
        return Scale(*self.adjusted_range, self.slope)

    @property
    def finds(self) -> bool:
        """Whether the first phase finds how outcomes are counted."""
        return self.bounds is not None or (self.adjust is not None and self.scale is None)

    @property
    def counted_range(self) -> tuple[float, float]:
        """The range of what is counted of an outcome."""
        return self.loss_range if self.scale is None else self.scale.ends

    @property
    def start(self) -> Start | None:
        """The releases of a log that it starts from; None where it starts from nothing."""
        assert self.start_from is None or isinstance(self.start_from, Start)
        return self.start_from

    @property
    def problem(self) -> Problem:
        """What planner and bounds need to know."""
        common = {one.name: getattr(self, one.name) for one in fields(Problem)}
        return Problem(**common | {"arms": len(self.arms), "experts": self.num_experts})

    @property
    def num_experts(self) -> int | None:
        """How many experts advise; None without experts."""
        return None if self.experts is None else len(self.experts)

    @property
    def rule(self) -> PeopleRule | None:
        """The rule for people who come back; None if rounds are protected."""
        if self.per_person is None:
            return None
        slots = self.per_person, self.rounds_per_slot
        return PeopleRule(self.epsilon, self.delta, *slots, self.people)

    @property
    def replaced(self) -> bool:
        """Whether a part of the algorithm was replaced."""
        return not (self.learner is self.release is self.batch is None)

    @property
    def around(self) -> str:
        """The learner that was put in, by name; empty if none was."""
        if self.learner is None or isinstance(self.learner, str):
            return self.learner or ""
        return str(getattr(self.learner, "label", getattr(self.learner, "name", "")))

    def but(self, **changes: object) -> Spec:
        """Return the same with other values, checked."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def to_dict(self) -> JSON:
        """Return plain values; parts that are objects go by their names."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        release = getattr(self.release, "name", self.release)
        epsilon = None if self.epsilon == math.inf else self.epsilon
        ranges: JSON = {name: list(ends) for name, ends in (self.metrics or {}).items()}
        return values | {
            "arms": list(self.arms),
            "experts": _as_count(self.experts),
            "epsilon": epsilon,
            "learner": self.around or None,
            "release": release,
            "loss_range": list(self.loss_range) if self.bounds is None else "auto",
            "bounds": self.bounds and list(self.bounds),
            "metrics": ranges or None,
            "guardrails": self.guardrails and dict(self.guardrails),
            "adjusted_range": self.adjusted_range and list(self.adjusted_range),
            "start_from": None if self.start is None else self.start.to_dict(),
        }


def _as_count(names: tuple[ArmName, ...] | None) -> int | list[ArmName] | None:
    """Return names as they were given: a number where they are numbers from 0 on."""
    if names is None:
        return None
    return len(names) if names == tuple(range(len(names))) else list(names)


def spec_from_dict(saved: Mapping[str, Any]) -> Spec:
    """Return what ``Spec.to_dict`` wrote down, checked; what it did not know has its default."""
    known = {one.name for one in fields(Spec)}
    if unknown := sorted(set(saved) - known):
        raise InputError(f"unknown parameters: {', '.join(unknown)}.")
    epsilon = saved.get("epsilon")
    return Spec(**{**saved, "epsilon": math.inf if epsilon is None else epsilon})


class CommonOptions(TypedDict, total=False):
    """What all private policies take by keyword, with experts or without."""

    constants: Constants | None
    losses: Losses | None
    changes: int | None
    memory: int | None
    release: object
    batch: int | None
    loss_range: RangeOrAuto
    default_loss: float | None
    clip: bool
    delay: int
    per_person: int | None
    rounds_per_slot: int | None
    people: int | None


class OptionsAround(CommonOptions, total=False):
    """What ``privatize`` takes by keyword."""

    goal: Goal | None
    confidence: float
    interval: IntervalKind
    tolerance: float
    bounds: tuple[float, float] | None
    binary: bool
    guard: bool
    probes: bool
    explore: float | None
    metrics: Mapping[str, tuple[float, float]] | None
    metrics_share: float
    guardrails: Mapping[str, float] | None
    control: str | int | None
    least_share: float
    adjust: str | None
    slope: float | None
    adjusted_range: tuple[float, float] | None
    before_epsilon: float
    start_from: object


class Options(OptionsAround, total=False):
    """The types of what ``PrivateBandit`` takes by keyword, for static type checkers.

    What is not in ``ExpertsOptions`` too is for policies without experts alone.
    ``tests/test_spec.py`` holds these classes to the fields of ``Spec``.
    """

    learner: object


class ExpertsOptions(CommonOptions, total=False):
    """The same for ``PrivateExperts``."""

    learner: object


@cache
def parameters() -> dict[str, Parameter]:
    """Return what is declared of every parameter, in the order of the fields."""
    return {
        one.name: _parameter(one.name, one.default, one.metadata)
        for one in fields(Spec)
        if one.metadata
    }


@cache
def types() -> dict[str, object]:
    """Return the type of every parameter."""
    return {name: kind for name, kind in get_type_hints(Spec).items() if name in parameters()}


def defaults() -> dict[str, object]:
    """Return the default of every parameter."""
    return {one.name: one.default for one in fields(Spec) if one.name in parameters()}


class PeopleRule(NamedTuple):
    """What is promised to a person, and the public rule by which slots fill and close."""

    epsilon: float
    """For everything a person contributes; so is delta."""
    delta: float
    per_person: int
    """Slots a person may have, each in a batch of its own."""
    rounds_per_slot: int | None
    """Rounds after which a slot takes no more; None: it stays open until ``finish``."""
    people: int | None = None
    """How many there are, where that was said: batches are then small enough for them."""


@dataclass(frozen=True)
class Problem:
    """How many arms and rounds, how private, and whether experts advise; checked once.

    Parameters
    ----------
    arms
        K, at least 2.
    rounds
        T; None while the horizon is unknown.
    epsilon
        The privacy parameter; infinite where no privacy is wanted.
    experts
        N; None without expert advice.
    delta
        What may be spent; algorithms that need none use none.
    delay
        How many further decisions may be made before the feedback of one has come; 0 is feedback in
        order.
    changes, memory
        How often the best arm may change, and how many rounds to remember, for the algorithms
        that track; None leaves it to them.

    Examples
    --------
    >>> Problem(arms=4, rounds=1e5, epsilon=0.5)
    Problem(arms=4, rounds=100000, epsilon=0.5, experts=None, delta=0.0, delay=0)
    """

    arms: int
    rounds: int | None
    epsilon: float
    experts: int | None = None
    delta: float = 0.0
    delay: int = 0
    changes: int | None = field(default=None, repr=False)
    memory: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        declared, given = parameters(), dict(vars(self))
        arms, experts = checks.arms(given.pop("arms")), given.pop("experts")
        if experts is not None:
            experts = checks.whole("experts", experts, 1)
        checked = {name: declared[name].check(value) for name, value in given.items()}
        checks.set_fields(self, arms=arms, experts=experts, **checked)

    @property
    def size(self) -> tuple[int, int, float]:
        """K, T and epsilon, for formulas; needs the rounds."""
        return self.arms, self.horizon("a bound"), self.epsilon

    @property
    def with_experts(self) -> bool:
        """Whether experts advise."""
        return self.experts is not None

    @property
    def num_experts(self) -> int:
        """The number of experts, for formulas about several of them."""
        return checks.whole("experts", self.experts, at_least=2)

    def horizon(self, name: str, instead: str = "one-bit or htinf") -> int:
        """Require the number of rounds for something, and say what does without."""
        if self.rounds is None:
            raise InputError(
                f"{name} needs to know how many rounds it will run: pass rounds=. "
                f"Without a horizon use {instead}."
            )
        return self.rounds

    def but(self, **changes: float | None) -> Problem:
        """Return the same problem with other values, checked."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def over_experts(self) -> Problem:
        """Return the bandit problem in which every expert is an arm."""
        return replace(self, arms=self.num_experts, experts=None, delta=0.0)

    @property
    def assumed_of_feedback(self) -> str:
        """How late feedback may be for bounds to hold, in one sentence."""
        if self.delay:
            return f"Bounds hold for feedback that is at most {self.delay:,} rounds late."
        return "Bounds hold for feedback in order; a delay says how late it may be."

    def to_dict(self) -> JSON:
        """Return the six numbers, and those about changes where they are given."""
        about_changes = ("changes", "memory")
        known = vars(self).items()
        return {name: value for name, value in known if not (name in about_changes and not value)}

    def __str__(self) -> str:
        rounds = "" if self.rounds is None else f"{self.rounds:,} rounds, "
        experts = f", {self.experts:,} experts" if self.with_experts else ""
        late = f", feedback up to {self.delay:,} rounds late" if self.delay else ""
        return f"{rounds}{self.arms:,} arms{experts}, epsilon {self.epsilon:.4g}{late}"
