"""OpenFeature's remote evaluation protocol (OFREP): an experiment is a feature flag.

The flag's key is the experiment's id or its name, which means the running experiment of that
name; the value is the arm. The metadata hold the event's id and the experiment's: a reward is sent
to ``/v1/experiments/{experiment}/events/{event_id}/reward``. A decision belongs to its targeting
key until its deadline, or for the experiment's ``sticky_seconds``: one round, one feedback.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from asyncio import gather
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from bandanna._core.types import JSON, ArmName, BandannaError, InputError
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS, ProblemDetails, status_of
from bandanna.service.models import EventId, is_edge, is_local
from bandanna.service.policies import known_before, own_features
from bandanna.service.routes import CanDecide, CoreHere
from bandanna.store import ConflictError, KeyRow
from bandanna.store.rows import NO_BATCH, Experiment
from bandanna.store.unit_of_work import DecisionRequest
from bandanna.store.writer import UnknownError

router = APIRouter(prefix="/ofrep/v1/evaluate", responses=PROBLEMS)


class Context(BaseModel):
    """What is known of the person the flag is evaluated for.

    Entries that an experiment declares as features are its context. Others are not looked at.
    """

    model_config = ConfigDict(extra="allow")

    targetingKey: str | None = Field(default=None, max_length=1000)  # noqa: N815
    event_id: EventId | None = None
    segment: str | None = Field(default=None, max_length=200)
    eligible: Annotated[list[str | int], Field(min_length=1, max_length=10_000)] | None = None


class Evaluation(BaseModel):
    """A request to evaluate."""

    context: Context = Context()


class FlagError(BaseModel):
    """Why a flag could not be evaluated, as OFREP has it."""

    key: str
    errorCode: str  # noqa: N815
    errorDetails: str  # noqa: N815


REFUSALS: dict[int | str, JSON] = {
    400: {"model": FlagError | ProblemDetails, "description": "No context that can be used"},
    404: {"model": FlagError, "description": "No such flag"},
    409: {"model": FlagError, "description": "Stopped, or several that run have this name"},
}


CODES = {404: (404, "FLAG_NOT_FOUND"), 409: (409, "GENERAL"), 422: (400, "INVALID_CONTEXT")}
"""What refusals are called in OFREP, by the status they have elsewhere."""


@router.post("/flags/{key}", responses=REFUSALS)
async def evaluate(
    key: Annotated[str, Path(min_length=1, max_length=200)],
    request: Evaluation,
    core: CoreHere,
    access: CanDecide,
) -> JSONResponse:
    """Evaluate one flag: decide."""
    try:
        experiment = await _find(core, key, access.experiment)
        visitor = request.context.targetingKey
        return JSONResponse(await _decide(core, key, experiment, request.context, visitor))
    except (UnknownError, ConflictError, InputError) as error:
        status, code = CODES[status_of(error)]
        content = {"key": key, "errorCode": code, "errorDetails": str(error)}
        return JSONResponse(content, status_code=status)


@router.post("/flags", response_model=None, responses={304: {"description": "The same as before"}})
async def evaluate_all(
    request: Evaluation,
    core: CoreHere,
    access: CanDecide,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=1000)] = None,
) -> Response:
    """Evaluate every flag that needs no advice, as deferred decisions.

    They are the experiments that run, and those that ended because an arm was shipped.
    A flag's key is its experiment's name, or its id where several that run have the same name.
    Those with segments are evaluated if the context's segment is one of theirs, those with
    ``per_person`` if there is a targeting key; what these decide counts at once.

    A client that shows one activates its event, or rewards it; the others expire without
    counting. With the ``ETag`` of an earlier answer in ``If-None-Match`` the answer is 304 while
    all decisions are the same. Without a targeting key the tag stands for whom they were made.
    """
    context, visitor = request.context, request.context.targetingKey
    anonymous = visitor is None and context.event_id is None
    if anonymous:
        match = ANONYMOUS.search(known or "")
        visitor = match[1] if match else secrets.token_hex(16)
    asked = await core.all_experiments(running=True, shipped=True, newest=True)
    chosen = [one for one in reversed(_by_name(asked)) if _fits(one, context, access)]
    names = Counter(parts[0].name for parts in chosen)
    keys = [p[0].name if names[p[0].name] == 1 else p[0].id for p in chosen]
    flags = await gather(
        *(
            _flag(core, key, parts[0], context, visitor)
            for key, parts in zip(keys, chosen, strict=True)
        )
    )
    same = [flag if flag.get("reason") != STATIC else flag["value"] for flag in flags]
    digest = hashlib.sha256(json.dumps(same).encode()).hexdigest()[:32]
    tag = f'"{visitor}.{digest}"' if anonymous else f'"{digest}"'
    if known is not None and tag in [one.strip() for one in known.split(",")]:
        return Response(status_code=304, headers={"ETag": tag})
    return JSONResponse({"flags": flags}, headers={"ETag": tag})


def _by_name(flags: list[list[Experiment]]) -> list[list[Experiment]]:
    """Leave out shipped experiments whose name a running one has, or one shipped later."""
    taken = {parts[0].name for parts in flags if not parts[0].stopped}
    groups = []
    for parts in flags:
        if not parts[0].stopped or parts[0].name not in taken:
            groups.append(parts)
            taken.add(parts[0].name)
    return groups


STATIC = "STATIC"
"""The reason of flags whose arm was shipped: they decide nothing any more."""

ANONYMOUS = re.compile(r'"([0-9a-f]{32})\.[0-9a-f]{32}"')


def _fits(parts: list[Experiment], context: Context, access: KeyRow) -> bool:
    """Whether a flag can be evaluated in a context, and may be with a key."""
    one = parts[0]
    asks = one.settings.get("experts") is not None
    asks |= one.settings.get("per_person") is not None and context.targetingKey is None
    here = not one.segment or context.segment in [part.segment for part in parts]
    decides = not is_local(one.settings) and not is_edge(one.settings)
    return not asks and decides and here and access.experiment in (None, one.id)


async def _flag(
    core: Core, key: str, experiment: Experiment, context: Context, visitor: str | None
) -> JSON:
    by_person = experiment.settings.get("per_person") is not None
    try:
        return await _decide(core, key, experiment, context, visitor, defer=not by_person)
    except BandannaError as error:
        return {"key": key, "errorCode": "GENERAL", "errorDetails": str(error)}


async def _decide(
    core: Core,
    key: str,
    experiment: Experiment,
    context: Context,
    visitor: str | None,
    *,
    defer: bool = False,
) -> JSON:
    if is_local(experiment.settings):
        raise InputError(
            "this experiment decides for people's own devices, which check what they are told: use "
            "the device module."
        )
    settings = experiment.settings
    person = context.targetingKey if settings.get("per_person") else None
    entries = context.model_dump(exclude_unset=True)
    about = own_features(settings, entries), known_before(settings, entries)
    event = await core.decide(
        experiment.id,
        context.event_id,
        DecisionRequest(None, person, context.eligible, *about),
        segment=context.segment if experiment.segment else None,
        visitor=visitor,
        defer=defer,
    )
    arm = await core.arm_of(experiment.id, event)
    metadata: JSON = {"event_id": event.id, "experiment": experiment.id}
    if event.chance is not None:
        metadata["chance"] = event.chance
    return {
        "key": key,
        "value": value_of(arm, experiment.settings["arms"]),
        "variant": str(arm),
        "reason": STATIC if event.batch == NO_BATCH else "SPLIT",
        "metadata": metadata,
    }


def value_of(arm: ArmName, arms: Sequence[ArmName]) -> ArmName | bool | float:
    """Return the value of a flag: of its own type where all arms are booleans, or numbers.

    Examples
    --------
    >>> value_of("true", ["true", "false"]), value_of("1.5", ["1.5", "2"]), value_of("a", ["a"])
    (True, 1.5, 'a')
    """
    texts = [one if isinstance(one, str) else str(one) for one in arms]
    if set(texts) <= {"true", "false"} or all(map(NUMBER.fullmatch, texts)):
        value: bool | float = json.loads(str(arm))
        return value
    return arm


NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")


async def _find(core: Core, key: str, only: str | None) -> Experiment:
    """Return the experiment of an id or name that the key opens."""
    unknown = UnknownError("no experiment has this id or name.")
    try:
        experiment = (await (core.find(key) if key.startswith("exp_") else core.find_named(key)))[0]
    except UnknownError:
        raise unknown from None
    if only not in (None, experiment.id):
        raise unknown
    return experiment
