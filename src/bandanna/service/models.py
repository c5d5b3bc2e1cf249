"""Requests and answers, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
)

from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.planner.plan import plan as make_plan
from bandanna.spec import Parameter, defaults, parameters, types
from bandanna.store.descriptions import Description
from bandanna.store.rows import Event, Experiment
from bandanna.store.unit_of_work import NewFeedback

Finite = Annotated[float, Field(allow_inf_nan=False)]


def _printable(text: str) -> str:
    """Refuse what databases and pages cannot hold: NUL, other control characters, surrogates."""
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise ValueError("must not contain control characters or surrogates.")
    return text


Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
EventId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,200}$")]
Feedback = bool | Annotated[float, Field(allow_inf_nan=False)]

Seconds = Annotated[float, Field(gt=0, le=10**9)]
Often = Annotated[float, Field(gt=0, le=10**6)]
LATE = (
    "At most, as expected. With deadline_seconds it says how many decisions late feedback may be: "
    "bounds are for that, and so are the rates of algorithms that have such a bound."
)
DIFFERENT = {"uniqueItems": True}


def _different(names: list[str], compared: list[str]) -> list[str]:
    if len(set(compared)) < len(names):
        raise ValueError("must be different.")
    return names


def _day(text: str) -> str:
    """Refuse what is not a day of the calendar."""
    if text:
        try:
            date.fromisoformat(text)
        except ValueError:
            raise ValueError("must be a day, such as 2030-01-31.") from None
    return text


Text = Annotated[str, Field(max_length=200), AfterValidator(_printable)] | None
Tag = Annotated[str, Field(min_length=1, max_length=50), AfterValidator(_printable)]
Tags = Annotated[
    list[Tag],
    Field(max_length=20, json_schema_extra=DIFFERENT),
    AfterValidator(lambda tags: _different(tags, [tag.lower() for tag in tags])),
]
Segments = Annotated[
    list[Label],
    Field(min_length=1, max_length=1000, json_schema_extra=DIFFERENT),
    AfterValidator(lambda names: _different(names, names)),
]
Day = Annotated[str, Field(pattern=r"^(\d{4}-\d\d-\d\d)?$"), AfterValidator(_day)] | None


class Document(BaseModel):
    """A document that may hold nothing unknown."""

    model_config = ConfigDict(extra="forbid")


JSON_TYPES: dict[str, Any] = {
    "loss_range": tuple[Finite, Finite] | Literal["auto"],
    "bounds": tuple[Finite, Finite],
    "adjusted_range": tuple[Finite, Finite],
    "metrics": dict[Label, tuple[Finite, Finite]],
    "guardrails": dict[Label, Finite],
    "control": Label | int,
    "start_from": dict[str, Any],
}
"""How parameters are written in JSON whose Python type does not say it."""


def _json_type(name: str, declared: Parameter) -> Any:
    """Return how a parameter of a policy is written in JSON."""
    kind, limits = types()[name], Field(ge=declared.least, le=declared.most)
    if name in ("arms", "experts"):  # a number, or names
        names = Field(min_length=int(declared.least or 1), max_length=int(declared.most or 1))
        return Annotated[int, limits] | Annotated[list[Label], names]
    if name in JSON_TYPES:
        return JSON_TYPES[name]
    if declared.choices:
        return Literal[declared.choices]
    if kind in (int, int | None):
        return Annotated[int, limits]
    if kind in (float, float | None):
        return Annotated[float, Field(allow_inf_nan=False, ge=declared.least, le=declared.most)]
    return bool if kind is bool else str


def _field(name: str, declared: Parameter, *, needed: bool) -> tuple[Any, Any]:
    """Return a field of a document for a parameter that ``bandanna.spec`` declares."""
    kind = _json_type(name, declared)
    known: JSON = {"description": declared.help}
    if not needed:
        known["default"] = defaults()[name] if kind is bool else None
        kind = kind if kind is bool else kind | None
    return kind, Field(**known)


def _fields() -> JSON:
    """Return the fields of an experiment."""
    return {
        name: _field(name, declared, needed=name in ("arms", "epsilon"))
        for name, declared in parameters().items()
        if declared.served
    }


def _plan_fields() -> JSON:
    """Return the fields of a problem: what ``bandanna.plan`` takes, with numbers of arms."""
    taken, declared = signature(make_plan).parameters, parameters()
    known = {
        name: _field(name, declared[name], needed=name in ("rounds", "epsilon"))
        for name in taken
        if name in declared and name not in ("arms", "experts", "delay")
    }
    arms = Annotated[int, Field(ge=2, le=declared["arms"].most)]
    experts = Annotated[int, Field(ge=1, le=declared["experts"].most)] | None
    counted: JSON = {"arms": (arms, ...), "experts": (experts, None)}
    return counted | known


if TYPE_CHECKING:

    class SpecBody(Document):
        """The parameters of a policy that an experiment may have."""

    class ProblemBody(Document):
        """The parameters of a policy that a plan depends on."""
else:
    SpecBody = create_model("SpecBody", __base__=Document, **_fields())
    ProblemBody = create_model("ProblemBody", __base__=Document, **_plan_fields())


Category = Annotated[str, Field(max_length=1000)] | bool | int


class CategoriesBody(Document):
    """A feature with categories."""

    categories: Annotated[list[Category], Field(min_length=2, max_length=200)]


Feature = (
    Annotated[list[Finite], Field(min_length=2, max_length=2)]
    | Annotated[list[Label], Field(min_length=2, max_length=200)]
    | CategoriesBody
)
Entry = Annotated[str, Field(max_length=1000)] | bool | int | Finite | None


class ChangedDescription(Document):
    """What a team says of an experiment. What is left out stays, an empty text takes away."""

    owner: Text = Field(default=None, description="Who it belongs to: a person or a team.")
    outcome: Text = Field(
        default=None,
        description="What the feedback is, in your words: conversion, revenue. Answers use them.",
    )
    hypothesis: Annotated[str, Field(max_length=2000), AfterValidator(_printable)] | None = None
    starts_on: Day = Field(default=None, description="The day it is planned to start, 2030-01-31.")
    ends_on: Day = Field(default=None, description="The day it is planned to end.")
    tags: Tags | None = None

    def changed(self) -> JSON:
        """Return what it changes, as the database keeps it."""
        given = self.model_dump(include=set(ChangedDescription.model_fields), exclude_none=True)
        if given.get("tags") is not None:
            given["tags"] = tuple(given["tags"])
        return given


class NewExperiment(SpecBody, ChangedDescription):
    """What an experiment is made of."""

    name: Label
    privacy: Literal["central", "local"] = Field(
        default="central",
        description="local: people's own devices release a bit each, and losses are refused.",
    )
    deadline_seconds: Seconds | None = Field(
        default=None, description="When feedback has not come by then, the default loss is counted."
    )
    decides: Literal["service", "edge"] | None = Field(
        default=None,
        description="edge: who has the shares that are published for a phase decides without "
        "asking, and reports in bulk. With phase_seconds and deadline_seconds.",
    )
    phase_seconds: Seconds | None = Field(
        default=None, description="With edge: how long shares are published before they may change."
    )
    reward: bool | None = Field(
        default=None,
        description="With edge: whether large values are good; if left out, bad.",
    )
    project: Label | None = Field(
        default=None, description="Where people have roles by project: whose experiment it is."
    )
    sticky_seconds: Annotated[float, Field(ge=0, le=10**9)] | None = Field(
        default=None,
        description="As a flag: for how long the same targetingKey gets the same decision. Until "
        "its deadline, if left out; 0 decides at every evaluation.",
    )
    decisions_per_second: Often | None = Field(default=None, description=LATE)
    keep_seconds: Seconds | None = Field(
        default=None,
        description="Events are forgotten this long after their decision, once their batch is "
        "released. An id that comes again is then a new event. Kept for ever, if left out.",
    )
    features: Annotated[dict[Label, Feature], Field(min_length=1, max_length=255)] | None = Field(
        default=None,
        description="What a context may say, public: for each feature a range as two numbers, or a "
        'list of categories; {"categories": [...]} where these are numbers.',
    )
    protects: Literal["feedback", "context and feedback"] | None = Field(
        default=None,
        description="With features. feedback (default): contexts are public. context and feedback: "
        "neither can be told from what all others see.",
    )
    segments: Segments | None = Field(
        default=None,
        description="Public segments, such as countries, each with a policy of its own. Rounds are "
        "expected in each of them; epsilon is for someone who stays in theirs.",
    )


class NewDecision(Document):
    """What a decision is asked for with."""

    event_id: EventId | None = Field(
        default=None, description="The same id gets the same answer. Made here if left out."
    )
    person: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="With per_person: whose decision it is. Kept as a keyed hash."
    )
    segment: Label | None = Field(
        default=None, description="With segments: the one that the decision belongs to."
    )
    eligible: Annotated[list[str | int], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None,
        description="Arms to choose among, by name or index; by a rule that is public and looks at "
        "nobody's feedback. All, if left out.",
    )
    advice: list[str | int] | list[list[Finite]] | None = Field(
        default=None, description="With experts: an arm for each, or a distribution for each."
    )
    context: Annotated[dict[Label, Entry], Field(max_length=255)] | None = Field(
        default=None,
        description="With features: what is known of whom it is for, by feature. Those left out "
        "are missing.",
    )
    before: Finite | None = Field(
        default=None,
        description="With adjust: what was known before, a number. The first one sent for an "
        "event_id stands; it is kept until its batch is released.",
    )
    defer: bool = Field(
        default=False,
        description="The decision may never be shown: it counts once it is activated or rewarded.",
    )


class NewReward(Document):
    """Feedback: a reward, or a loss."""

    reward: Feedback | None = None
    loss: Feedback | None = None
    metrics: dict[str, Feedback] | None = Field(
        default=None,
        description="With metrics: a value of each, by name. Sent with the reward or loss.",
    )

    def feedback(self) -> NewFeedback:
        """Return it as experiments take it."""
        return NewFeedback(self.loss, self.reward, metrics=self.metrics)


class PlanRequest(ProblemBody):
    """A problem to plan for."""

    local: bool = Field(default=False, description="Only what people's own devices can feed.")
    deadline_seconds: Seconds | None = None
    decisions_per_second: Often | None = Field(default=None, description=LATE)


def moment(seconds: float) -> str:
    """Write a time as RFC 3339 has it."""
    return (
        datetime.fromtimestamp(seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def _moment(at: object) -> object:
    return moment(at) if isinstance(at, int | float) else at


Moment = Annotated[str, BeforeValidator(_moment)]
"""A time, made of seconds."""


class DecisionAnswer(BaseModel):
    """A decision."""

    event_id: str
    arm: str | int
    chance: float | None = Field(description="With which the arm was drawn, where it is known.")
    expires_at: Moment | None


class DeviceDecisionAnswer(DecisionAnswer):
    """A decision in an experiment with local privacy, and what the device checks before it."""

    release: dict[str, str] = Field(description="The numbers of the release, as text.")
    signature: str = Field(description="Ed25519, of the document in docs/device-protocol.md.")
    key_id: str


class ShippedAnswer(BaseModel):
    """The arm that everyone gets since the experiment ended."""

    model_config = ConfigDict(from_attributes=True)

    arm: str | int
    at: Moment
    by: str = Field(description="The id of the key that shipped it.")


class ExperimentAnswer(BaseModel):
    """An experiment, without anything private."""

    id: str
    name: str
    created_at: Moment
    stopped: bool
    arms: list[str | int]
    epsilon: float
    algorithm: str
    settings: JSON
    decided: int
    observed: int
    released: int
    segments: dict[str, dict[str, int]] | None = Field(
        default=None, description="The same counts in each segment, where there are any."
    )
    guarantee: str | None = None
    owner: str
    outcome: str
    hypothesis: str
    starts_on: str
    ends_on: str
    tags: list[str]
    shipped: ShippedAnswer | None


def decision_answer(event: Event, arm: str | int, told: JSON | None = None) -> DecisionAnswer:
    """Write down a decision, for devices with what they are told."""
    kind = DecisionAnswer if told is None else DeviceDecisionAnswer
    chosen: JSON = {"arm": arm, "chance": event.chance, "expires_at": event.expires_at}
    return kind(event_id=event.id, **chosen, **(told or {}))


def experiment_answer(
    parts: Sequence[Experiment], said: Description, guarantee: Guarantee | None = None
) -> ExperimentAnswer:
    """Write down an experiment, whose counts are those of all its parts together."""
    first, counts = parts[0], {part.segment: _counts(part) for part in parts}
    settings = first.settings
    together: JSON = {name: sum(some[name] for some in counts.values()) for name in COUNTS}
    return ExperimentAnswer(
        id=first.id,
        name=first.name,
        stopped=first.stopped,
        arms=settings["arms"],
        epsilon=settings["epsilon"],
        algorithm=settings["algorithm"],
        settings=settings,
        **together,
        segments=counts if first.segment else None,
        guarantee=None if guarantee is None else str(guarantee),
        **vars(said) | {"created_at": first.created_at},
    )


def check_days(said: Description) -> None:
    """Refuse an end before the start."""
    if said.starts_on and said.ends_on and said.ends_on < said.starts_on:
        raise InputError(
            f"ends_on {said.ends_on} is before starts_on {said.starts_on}; give a later day."
        )


COUNTS = ("decided", "observed", "released")


def _counts(part: Experiment) -> dict[str, int]:
    counters = part.head["counters"]
    return dict(zip(COUNTS, (counters["rounds"], part.observed, counters["released"]), strict=True))


LOCAL, EDGE = "local", "edge"


def is_edge(settings: JSON) -> bool:
    """Whether decisions are made elsewhere, by published shares."""
    return settings.get("decides") == EDGE


def is_local(settings: JSON) -> bool:
    """Whether an experiment takes bits that devices released, and nothing else."""
    return settings.get("privacy") == LOCAL
