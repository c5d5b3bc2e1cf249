"""Decisions, singly and in blocks, and their feedback."""

from __future__ import annotations

import json
from asyncio import gather
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from bandanna._core.types import JSON, InputError
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS, status_of
from bandanna.service.models import (
    DecisionAnswer,
    DeviceDecisionAnswer,
    Document,
    EventId,
    Label,
    NewDecision,
    NewReward,
    decision_answer,
    is_local,
)
from bandanna.service.routes import (
    NDJSON,
    CanDecide,
    CanManage,
    CanReward,
    CoreHere,
    EventPath,
    ExperimentPath,
    body_shown,
    lines_shown,
    read_body,
    read_lines,
    require,
)
from bandanna.store import KeyRow
from bandanna.store.contract import GoneError
from bandanna.store.unit_of_work import DecisionRequest, NewFeedback
from bandanna.store.writer import UnknownError

router = APIRouter(prefix="/v1", responses=PROBLEMS)

# The calls that are made all the time read their body themselves: what FastAPI does for a parameter
# takes longer than the decision.


@router.post(
    "/experiments/{experiment}/decisions",
    response_model=DeviceDecisionAnswer | DecisionAnswer,
    openapi_extra=body_shown(NewDecision),
)
async def decide(experiment: ExperimentPath, request: Request) -> Response:
    """Choose an arm. The same event_id gets the same answer."""
    await require(request, "decide", "device")
    new, core = await read_body(request, NewDecision), request.app.state.core
    asked = DecisionRequest(new.advice, new.person, new.eligible, new.context, new.before)
    where: JSON = {"segment": new.segment, "defer": new.defer}
    event = await core.decide(experiment, new.event_id, asked, **where)
    arm, part = await core.arm_of(experiment, event), (await core.find(experiment))[0]
    told = core.signer.parameters(part) if is_local(part.settings) else None
    answer = decision_answer(event, arm, told)
    return Response(answer.model_dump_json(), media_type="application/json")


# --- decisions in blocks --------------------------------------------------------------

# A client takes many decisions at once and uses them without asking again. Every decision of a
# block is made by the service, as any other: it is drawn from what was released before, has an
# event and a position in a batch, and its feedback is sent as usual. So the guarantee is the same.
# For learning, a decision that was drawn ahead is one whose feedback comes later. A decision of a
# block counts once the client says that it was used, or sends its feedback; at the deadline those
# that were not used are given to others.

MOST_TOGETHER = 1_000
"""Decisions in one block."""


class NewBlock(Document):
    """What a block of decisions is asked for with."""

    block_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,150}$")] = Field(
        description="The same id gets the same decisions: their ids are block_id.0, block_id.1, ..."
    )
    count: Annotated[int, Field(ge=0, le=MOST_TOGETHER)] = Field(description="How many decisions.")
    segment: Label | None = Field(default=None, description="As for a single decision.")
    eligible: Annotated[list[str | int], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="As for a single decision."
    )
    used: Annotated[list[EventId], Field(max_length=10 * MOST_TOGETHER)] = Field(
        default=[], description="Decisions of earlier blocks that were used since the last call."
    )


class BlockAnswer(BaseModel):
    """A block of decisions."""

    decisions: list[DecisionAnswer]
    use_within_seconds: float = Field(description="Half the deadline: then feedback has the rest.")
    too_late: list[str] = Field(description="Those of ``used`` that had been given to others.")


@router.post("/experiments/{experiment}/decisions/block")
async def block(
    experiment: ExperimentPath, new: NewBlock, core: CoreHere, _: CanDecide
) -> BlockAnswer:
    """Choose arms for many events at once, and note which of earlier blocks were used."""
    settings = (await core.find(experiment))[0].settings
    if is_local(settings):
        raise InputError("experiments with local privacy decide for one device at a time.")
    deadline = settings.get("deadline_seconds")
    if deadline is None:
        raise InputError(
            "blocks need an experiment with deadline_seconds: what is not used is freed then."
        )
    said = await gather(*(_use(core, experiment, name) for name in new.used))
    names = [f"{new.block_id}.{k}" for k in range(new.count)]
    made = await core.decide_block(experiment, names, new.segment, new.eligible)
    return BlockAnswer(
        decisions=[decision_answer(one, await core.arm_of(experiment, one)) for one in made],
        use_within_seconds=deadline / 2,
        too_late=[name for name in said if name is not None],
    )


async def _use(core: Core, experiment: str, name: str) -> str | None:
    """Note that a decision was used; returns its name if that comes too late."""
    try:
        await core.activate(name, experiment)
    except (GoneError, UnknownError):
        return name
    return None


# --- feedback -------------------------------------------------------------------------

# An event's id belongs to its experiment. The calls exist twice: under the experiment, and without
# it for programs that remember ids alone, which works while a single experiment has that id.

events = APIRouter()


class NewBit(Document):
    """What a device sends: the bit that it drew, and nothing else."""

    bit: Annotated[int, Field(strict=True, ge=0, le=1, description="Drawn on the device, once.")]


def _experiment(request: Request, key: KeyRow) -> str | None:
    """Return the experiment in which an event is looked for: the path's, or the key's."""
    experiment: str | None = request.path_params.get("experiment", key.experiment)
    return experiment


@events.post(
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
    key = await require(request, "reward")
    new = await read_body(request, NewReward)
    await request.app.state.core.reward(event, new.feedback(), _experiment(request, key))
    return Response(status_code=204)


class RewardLine(NewReward):
    """A line of feedback in bulk."""

    event_id: EventId


@router.post(
    "/experiments/{experiment}/rewards",
    response_class=Response,
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}},
    openapi_extra=lines_shown('{"event_id": "order-17", "reward": 1}, as for a single reward.'),
)
async def rewards(
    experiment: ExperimentPath, request: Request, core: CoreHere, _: CanReward
) -> Response:
    """Count the feedback of many events, each as if it was sent alone; the answer has a line each.

    A line of the answer holds the event's id and the status that a single reward would have had,
    204 or what was refused with the reason. The same lines may be sent again.
    """
    lines, refused = await read_lines(request, RewardLine)
    verdicts: dict[int, JSON] = {k: {"event_id": None, **why} for k, why in refused.items()}
    verdicts |= {k: {"event_id": new.event_id, "status": 204} for k, new in lines}
    given = [(new.event_id, new.feedback()) for _, new in lines]
    for (k, _new), error in zip(lines, await core.reward_all(experiment, given), strict=True):
        if error is not None:
            verdicts[k] |= {"status": status_of(error), "detail": str(error)}
    text = "".join(f"{json.dumps(verdicts[k])}\n" for k in sorted(verdicts))
    return Response(text, media_type=NDJSON)


@events.post(
    "/{event}/bit",
    status_code=204,
    response_class=Response,
    openapi_extra=body_shown(NewBit),
)
async def bit(event: EventPath, request: Request) -> Response:
    """Count the bit that a device released, once: the first one stands, repeats are answered 204.

    Only experiments with local privacy take bits, and they take no rewards.
    """
    key = await require(request, "device", "reward")
    new = await read_body(request, NewBit)
    await request.app.state.core.reward(event, NewFeedback(bit=new.bit), _experiment(request, key))
    return Response(status_code=204)


@events.post("/{event}/give-up", status_code=204, response_class=Response)
async def give_up(event: EventPath, request: Request, core: CoreHere, key: CanReward) -> None:
    """Count the default loss now, as at the deadline; where feedback has come, nothing happens."""
    await core.give_up(event, _experiment(request, key))


@events.post("/{event}/activate", status_code=204, response_class=Response)
async def activate(event: EventPath, request: Request, core: CoreHere, key: CanReward) -> None:
    """Say that a deferred decision has been shown; otherwise it expires without counting."""
    await core.activate(event, _experiment(request, key))


async def _in_experiment(experiment: ExperimentPath) -> str:
    return experiment


router.include_router(events, prefix="/events")
router.include_router(
    events,
    prefix="/experiments/{experiment}/events",
    dependencies=[Depends(_in_experiment)],
)


@router.post(
    "/experiments/{experiment}/events/{event}/erase", status_code=204, response_class=Response
)
async def erase_event(
    experiment: ExperimentPath, event: EventPath, core: CoreHere, key: CanManage
) -> None:
    """Forget the id of an event.

    Feedback in an open batch cannot be taken out of it: it is released with the others, protected
    by epsilon, and no id leads to it. An id that comes again is a new event.
    """
    await core.erase_event(experiment, event)
    await core.note(key.id, "event erased", experiment)
