"""The API for events: feedback, bits of devices, giving up, and what was shown after all.

An event's id belongs to its experiment. The calls exist twice: under the experiment, and without
it for programs that remember ids alone, which works while a single experiment has that id.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from bandanna.service.access import require
from bandanna.service.errors import PROBLEMS
from bandanna.service.models import Document, NewReward
from bandanna.service.routes import EventPath, ExperimentPath, body_shown, read_body
from bandanna.store import KeyRow
from bandanna.store.unit import NewFeedback

_calls = APIRouter()


class NewBit(Document):
    """What a device sends: the bit that it drew, and nothing else."""

    bit: Annotated[int, Field(strict=True, ge=0, le=1, description="Drawn on the device, once.")]


def _experiment(request: Request, key: KeyRow) -> str | None:
    """Return the experiment in which an event is looked for: the path's, or the key's."""
    found: str | None = request.path_params.get("experiment", key.experiment)
    return found


@_calls.post(
    "/{event}/reward",
    status_code=204,
    response_class=Response,
    openapi_extra=body_shown(NewReward),
)
async def reward(event: EventPath, request: Request) -> Response:
    """Count the feedback of an event, once: the first value stands.

    Every repeat is answered 204, whatever it says: a key for rewards cannot be used to find out
    what was sent before.
    """
    key = require(request, "reward")
    new = await read_body(request, NewReward)
    given = NewFeedback(new.loss, new.reward, metrics=new.metrics)
    await request.app.state.core.reward(event, given, _experiment(request, key))
    return Response(status_code=204)


@_calls.post(
    "/{event}/bit",
    status_code=204,
    response_class=Response,
    openapi_extra=body_shown(NewBit),
)
async def bit(event: EventPath, request: Request) -> Response:
    """Count the bit that a device released, once: the first one stands, repeats are answered 204.

    Only experiments with local privacy take bits, and they take no rewards.
    """
    key = require(request, "device", "reward")
    new = await read_body(request, NewBit)
    await request.app.state.core.reward(event, NewFeedback(bit=new.bit), _experiment(request, key))
    return Response(status_code=204)


@_calls.post("/{event}/give-up", status_code=204, response_class=Response)
async def give_up(event: EventPath, request: Request) -> Response:
    """Count the default loss now, as at the deadline; where feedback has come, nothing happens."""
    key = require(request, "reward")
    await request.app.state.core.give_up(event, _experiment(request, key))
    return Response(status_code=204)


@_calls.post("/{event}/activate", status_code=204, response_class=Response)
async def activate(event: EventPath, request: Request) -> Response:
    """Say that a deferred decision has been shown; otherwise it expires without counting."""
    key = require(request, "reward")
    await request.app.state.core.activate(event, _experiment(request, key))
    return Response(status_code=204)


async def _in_experiment(experiment: ExperimentPath) -> str:
    return experiment


router = APIRouter(responses=PROBLEMS)
router.include_router(_calls, prefix="/v1/events")
router.include_router(
    _calls,
    prefix="/v1/experiments/{experiment}/events",
    dependencies=[Depends(_in_experiment)],
)
