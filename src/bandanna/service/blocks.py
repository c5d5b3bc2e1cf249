"""Decisions in blocks: a client takes many at once and uses them without asking again.

Every decision of a block is made by the service, as any other: it is drawn from what was released
before, has an event and a position in a batch, and its feedback is sent as usual. So the guarantee
is the same. For learning, a decision that was drawn ahead is one whose feedback comes later.
A decision of a block counts once the client says that it was used, or sends its feedback; at the
deadline those that were not used are given to others.
"""

from __future__ import annotations

from asyncio import gather
from functools import partial
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from bandanna._core.types import InputError
from bandanna.service.access import CanDecide, CoreHere
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS
from bandanna.service.models import DecisionAnswer, Document, EventId, Label, decision_answer
from bandanna.service.routes import ExperimentPath
from bandanna.service.signing import is_local
from bandanna.store.contract import GoneError
from bandanna.store.writer import UnknownError

MOST = 1_000
"""Decisions in one block."""

router = APIRouter(prefix="/v1/experiments/{experiment}", responses=PROBLEMS)


class NewBlock(Document):
    """What a block of decisions is asked for with."""

    block_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,150}$")] = Field(
        description="The same id gets the same decisions: their ids are block_id.0, block_id.1, ..."
    )
    count: Annotated[int, Field(ge=0, le=MOST)] = Field(description="How many decisions.")
    segment: Label | None = Field(default=None, description="As for a single decision.")
    eligible: Annotated[list[str | int], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="As for a single decision."
    )
    used: Annotated[list[EventId], Field(max_length=10 * MOST)] = Field(
        default=[], description="Decisions of earlier blocks that were used since the last call."
    )


class BlockAnswer(BaseModel):
    """A block of decisions."""

    decisions: list[DecisionAnswer]
    use_within_seconds: float = Field(description="Half the deadline: then feedback has the rest.")
    too_late: list[str] = Field(description="Those of ``used`` that had been given to others.")


@router.post("/decisions/block")
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
    decide = partial(
        core.decide, experiment, segment=new.segment, eligible=new.eligible, defer=True
    )
    made = await gather(*(decide(f"{new.block_id}.{k}") for k in range(new.count)))
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
