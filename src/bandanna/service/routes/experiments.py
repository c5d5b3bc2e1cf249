"""Experiments: make, list, show, stop and erase them, change arms, plan."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Header, HTTPException, Query, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON
from bandanna.planner.plan import plan as make_plan
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS
from bandanna.service.keys import opens
from bandanna.service.models import (
    ChangedDescription,
    Document,
    ExperimentAnswer,
    Label,
    NewExperiment,
    PlanRequest,
    ShippedAnswer,
    experiment_answer,
)
from bandanna.service.policies import rounds_late
from bandanna.service.routes import (
    ArmPath,
    CanManage,
    CanManageAll,
    CanRead,
    CoreHere,
    ExperimentPath,
    trail_page,
)
from bandanna.store.rows import Experiment

router = APIRouter(prefix="/v1", responses=PROBLEMS)

Words = partial(Query, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")

LATENESS = {"deadline_seconds", "decisions_per_second"}
"""How a plan is told of late feedback."""


@router.post("/experiments", status_code=201)
async def create(
    new: NewExperiment,
    core: CoreHere,
    key: CanManage,
    again: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=200,
            description="Of your choice. With the same one, and the same key to the service, what "
            "was made before is returned and nothing new is made.",
        ),
    ] = None,
) -> ExperimentAnswer:
    """Make an experiment."""
    if key.experiment is not None or not opens(key, "edit", None, new.project):
        raise HTTPException(403, "this key makes no experiments here.")
    said = new.changed()
    settings = new.model_dump(exclude={"name", *said}, exclude_none=True)
    by = None if again is None else f"{key.id} {again}"
    made, is_new = await core.create(new.name, settings, by, said)
    if is_new:
        await core.note(key.id, "experiment made", made[0].id, {"name": new.name})
    return await _shown(core, made)


async def _shown(core: Core, parts: list[Experiment]) -> ExperimentAnswer:
    identity = parts[0].id
    return experiment_answer(parts, await core.described(identity), await core.guarantee(identity))


@router.get("/experiments")
async def experiments(
    core: CoreHere,
    key: CanRead,
    response: Response,
    after: Annotated[str | None, Query(max_length=100, description="Those made later.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    running: Annotated[bool, Query(description="Only those that are not stopped.")] = False,
    ended: Annotated[bool, Query(description="Only those that are stopped.")] = False,
    newest: Annotated[bool, Query(description="The newest first, not the oldest.")] = False,
    search: Annotated[str | None, Words(description="In the name, owner or tags.")] = None,
    owner: Annotated[str | None, Words(description="Whose they are.")] = None,
    tag: Annotated[str | None, Words(description="Only those with this tag.")] = None,
) -> list[ExperimentAnswer]:
    """List the experiments that the key opens, oldest first; ``Link`` leads to the next page.

    Letters' case does not matter in a search.
    """
    if key.experiment is not None and after == key.experiment:
        return []
    which = {"running": running, "ended": ended, "newest": newest}
    words = {"search": search, "owner": owner, "tag": tag}
    rows = await core.all_experiments(after, limit, only=key.experiment, **which, **words)
    if len(rows) == limit and key.experiment is None:
        asked = {"after": rows[-1][0].id, "limit": limit}
        asked |= {name: "true" for name, value in which.items() if value}
        asked |= {name: value for name, value in words.items() if value is not None}
        response.headers["Link"] = f'</v1/experiments?{urlencode(asked)}>; rel="next"'
    if not opens(key, "read", key.experiment):  # someone who sees some projects
        rows = [one for one in rows if opens(key, "read", None, one[0].settings.get("project"))]
    said = await core.descriptions([parts[0].id for parts in rows])
    return [experiment_answer(parts, said[parts[0].id]) for parts in rows]


@router.get("/experiments/{experiment}")
async def show(experiment: ExperimentPath, core: CoreHere, _: CanRead) -> ExperimentAnswer:
    """Show an experiment."""
    return await _shown(core, await core.current(experiment))


@router.patch("/experiments/{experiment}")
async def describe(
    experiment: ExperimentPath, new: ChangedDescription, core: CoreHere, key: CanManage
) -> ExperimentAnswer:
    """Change what is said of an experiment; what is left out stays as it is."""
    changed = await core.describe(experiment, new.changed())
    if changed:
        await core.note(key.id, "description changed", experiment, {"fields": sorted(changed)})
    return await _shown(core, await core.current(experiment))


class NewShipment(Document):
    """The arm that everyone is to get."""

    arm: Label | int


@router.post("/experiments/{experiment}/ship")
async def ship(
    experiment: ExperimentPath, new: NewShipment, core: CoreHere, key: CanManage
) -> ShippedAnswer:
    """Give everyone one arm from now on: the experiment ends, and who did it is kept.

    Decisions go on and have that arm; nothing is learned from their feedback. Repeats change
    nothing; another arm takes its place.
    """
    shipped, is_new = await core.ship(experiment, str(new.arm), key.id)
    if is_new:
        await core.note(key.id, "arm shipped", experiment, {"arm": shipped.arm})
    return ShippedAnswer.model_validate(shipped)


@router.get("/experiments/{experiment}/trail")
async def trail(
    experiment: ExperimentPath,
    core: CoreHere,
    _: CanRead,
    after: Annotated[int, Query(ge=0, le=2**62, description="Entries after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JSON:
    """Say who made, changed, shipped, stopped and exported an experiment, with names of keys."""
    await core.find(experiment)
    return await run_in_threadpool(trail_page, core, after, limit, experiment)


@router.post("/experiments/{experiment}/stop", status_code=204, response_class=Response)
async def stop(experiment: ExperimentPath, core: CoreHere, key: CanManage) -> None:
    """Decide nothing more in an experiment; feedback is still counted."""
    await core.stop(experiment)
    await core.note(key.id, "experiment stopped", experiment)


class ArmsAnswer(BaseModel):
    """The arms of an experiment."""

    arms: list[str | int] = Field(description="Those that are played from now on.")


@router.put("/experiments/{experiment}/arms/{arm}")
async def add_arm(
    experiment: ExperimentPath, arm: ArmPath, core: CoreHere, key: CanManage
) -> ArmsAnswer:
    """Add an arm; the next batch may play it. If it is there already, nothing changes."""
    arms = await core.change_arm(experiment, arm, add=True)
    await core.note(key.id, "arm added", experiment, {"arm": arm})
    return ArmsAnswer(arms=arms)


@router.delete("/experiments/{experiment}/arms/{arm}")
async def retire_arm(
    experiment: ExperimentPath, arm: ArmPath, core: CoreHere, key: CanManage
) -> ArmsAnswer:
    """Retire an arm for good; a batch that plays it and has begun goes on until it is full."""
    arms = await core.change_arm(experiment, arm, add=False)
    await core.note(key.id, "arm retired", experiment, {"arm": arm})
    return ArmsAnswer(arms=arms)


@router.post("/plan")
async def plan(problem: PlanRequest, _: CanRead) -> JSON:
    """Compare what algorithms guarantee for a problem, with late feedback if need be."""
    late = rounds_late(problem.deadline_seconds, problem.decisions_per_second)
    given = problem.model_dump(exclude_none=True, exclude=LATENESS)
    made = await run_in_threadpool(lambda: make_plan(**given, delay=late))
    return made.to_dict()


@router.delete("/experiments/{experiment}", status_code=204, response_class=Response)
async def erase(experiment: ExperimentPath, core: CoreHere, key: CanManageAll) -> None:
    """Delete everything of a stopped experiment, its releases and keys included.

    What was released before cannot be taken back: the guarantee about it still holds.
    """
    await core.erase(experiment)
    await core.note(key.id, "experiment erased", experiment)
