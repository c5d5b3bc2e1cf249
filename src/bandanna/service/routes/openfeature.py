"""OpenFeature's remote evaluation protocol (OFREP): an experiment is a feature flag.

The flag's key is the experiment's id or its name, which means the running experiment of that
name; the value is the arm. The metadata hold the event's id and the experiment's: a reward is sent
to ``/v1/experiments/{experiment}/events/{event_id}/reward``. Every evaluation is a decision, unless
the context holds an ``event_id`` that this experiment has seen before.
"""

from __future__ import annotations

import hashlib
import json
from asyncio import gather
from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Header, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from bandanna._core.types import JSON, BandannaError, InputError
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS, Problem
from bandanna.service.models import EventId, is_local
from bandanna.service.policies import own_features
from bandanna.service.routes import CanDecide, CoreHere
from bandanna.store import ConflictError, KeyRow
from bandanna.store.rows import NO_BATCH, Experiment
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
    400: {"model": FlagError | Problem, "description": "No context that can be used"},
    404: {"model": FlagError, "description": "No such flag"},
    409: {"model": FlagError, "description": "Stopped, or several that run have this name"},
}


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
        return JSONResponse(await _decide(core, key, experiment, request.context))
    except UnknownError as error:
        content = {"key": key, "errorCode": "FLAG_NOT_FOUND", "errorDetails": str(error)}
        return JSONResponse(content, status_code=404)
    except ConflictError as error:
        content = {"key": key, "errorCode": "GENERAL", "errorDetails": str(error)}
        return JSONResponse(content, status_code=409)
    except InputError as error:
        content = {"key": key, "errorCode": "INVALID_CONTEXT", "errorDetails": str(error)}
        return JSONResponse(content, status_code=400)


@router.post("/flags", response_model=None, responses={304: {"description": "The same as before"}})
async def evaluate_all(
    request: Evaluation,
    core: CoreHere,
    access: CanDecide,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=1000)] = None,
) -> Response:
    """Evaluate every flag that needs neither advice nor a person, as deferred decisions.

    They are the experiments that run, and those that ended because an arm was shipped.
    A flag's key is its experiment's name, or its id where several that run have the same name.
    Those with segments are evaluated if the context's segment is one of theirs.

    A client that shows one activates its event, or rewards it; the others expire without
    counting. With the ``ETag`` of an earlier answer in ``If-None-Match`` nothing is decided (304)
    while the context and the flags are the same and the decisions have at least half their time
    left.
    """
    context = request.context
    flags = await core.all_experiments(running=True, shipped=True, newest=True)
    chosen = [one for one in reversed(_by_name(flags)) if _fits(one, context, access)]
    tag = _tag(context, chosen, core.clock())
    if known is not None and tag in [one.strip() for one in known.split(",")]:
        return Response(status_code=304, headers={"ETag": tag})
    names = Counter(parts[0].name for parts in chosen)
    keys = [p[0].name if names[p[0].name] == 1 else p[0].id for p in chosen]
    found = await gather(
        *(_flag(core, key, parts[0], context) for key, parts in zip(keys, chosen, strict=True))
    )
    return JSONResponse({"flags": found}, headers={"ETag": tag})


def _by_name(flags: list[list[Experiment]]) -> list[list[Experiment]]:
    """Leave out shipped experiments whose name a running one has, or one shipped later."""
    taken = {parts[0].name for parts in flags if not parts[0].stopped}
    found = []
    for parts in flags:
        if not parts[0].stopped or parts[0].name not in taken:
            found.append(parts)
            taken.add(parts[0].name)
    return found


def _fits(parts: list[Experiment], context: Context, access: KeyRow) -> bool:
    """Whether a flag can be evaluated in a context, and may be with a key."""
    one = parts[0]
    asks = any(one.settings.get(name) is not None for name in ("experts", "per_person"))
    here = not one.segment or context.segment in [part.segment for part in parts]
    return not asks and not is_local(one.settings) and here and access.experiment in (None, one.id)


def _tag(context: Context, chosen: list[list[Experiment]], now: float) -> str:
    """Return what stays the same while the same decisions can be shown."""
    deadlines = [parts[0].settings.get("deadline_seconds") for parts in chosen]
    shortest = min((one for one in deadlines if one is not None), default=None)
    period = 0 if shortest is None else int(now // (shortest / 2))
    flags = [(one.id, one.version if one.stopped else 0) for one, *_ in chosen]
    about = [context.model_dump_json(), period, *sorted(flags)]
    return f'"{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]}"'


async def _flag(core: Core, key: str, experiment: Experiment, context: Context) -> JSON:
    try:
        return await _decide(core, key, experiment, context, defer=True)
    except BandannaError as error:
        return {"key": key, "errorCode": "GENERAL", "errorDetails": str(error)}


async def _decide(
    core: Core, key: str, experiment: Experiment, context: Context, *, defer: bool = False
) -> JSON:
    if is_local(experiment.settings):
        raise InputError(
            "this experiment decides for people's own devices, which check what they are told: use "
            "the device module."
        )
    person = context.targetingKey if experiment.settings.get("per_person") else None
    event = await core.decide(
        experiment.id,
        context.event_id,
        person=person,
        segment=context.segment if experiment.segment else None,
        eligible=context.eligible,
        context=own_features(experiment.settings, context.model_dump(exclude_unset=True)),
        defer=defer,
    )
    arm = await core.arm_of(experiment.id, event)
    metadata: JSON = {"event_id": event.id, "experiment": experiment.id}
    if event.chance is not None:
        metadata["chance"] = event.chance
    return {
        "key": key,
        "value": arm,
        "variant": str(arm),
        "reason": "STATIC" if event.batch == NO_BATCH else "SPLIT",
        "metadata": metadata,
    }


async def _find(core: Core, key: str, only: str | None) -> Experiment:
    """Return the experiment of an id or name that the key opens."""
    unknown = UnknownError("no experiment has this id or name.")
    try:
        found = (await (core.find(key) if key.startswith("exp_") else core.find_named(key)))[0]
    except UnknownError:
        raise unknown from None
    if only not in (None, found.id):
        raise unknown
    return found
