"""Experiments: make, list, show, stop and erase them, change arms, plan."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON
from bandanna.planner.plan import plan as make_plan
from bandanna.service.errors import PROBLEMS
from bandanna.service.models import ExperimentAnswer, NewExperiment, PlanRequest, experiment_answer
from bandanna.service.policies import rounds_late
from bandanna.service.routes import (
    ArmPath,
    CanManage,
    CanManageAll,
    CanRead,
    CoreHere,
    ExperimentPath,
)

router = APIRouter(prefix="/v1", responses=PROBLEMS)

LATENESS = {"deadline_seconds", "decisions_per_second"}
"""How a plan is told of late feedback."""


@router.post("/experiments", status_code=201)
async def create(
    new: NewExperiment,
    core: CoreHere,
    key: CanManageAll,
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
    settings = new.model_dump(exclude={"name"}, exclude_none=True)
    by = None if again is None else f"{key.id} {again}"
    made, is_new = await core.create(new.name, settings, by)
    if is_new:
        await core.note(key.id, "experiment made", made[0].id, {"name": new.name})
    return experiment_answer(made, await core.guarantee(made[0].id))


@router.get("/experiments")
async def experiments(
    core: CoreHere,
    key: CanRead,
    response: Response,
    after: Annotated[str | None, Query(max_length=100, description="Those made later.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    running: Annotated[bool, Query(description="Only those that are not stopped.")] = False,
    newest: Annotated[bool, Query(description="The newest first, not the oldest.")] = False,
) -> list[ExperimentAnswer]:
    """List the experiments that the key opens, oldest first; ``Link`` leads to the next page."""
    if key.experiment is not None:
        found = [] if after == key.experiment else [await core.current(key.experiment)]
        return [experiment_answer(one) for one in found if not (running and one[0].stopped)]
    rows = await core.all_experiments(after, limit, running=running, newest=newest)
    if len(rows) == limit:
        more = f"/v1/experiments?after={rows[-1][0].id}&limit={limit}"
        more += "&running=true" * running + "&newest=true" * newest
        response.headers["Link"] = f'<{more}>; rel="next"'
    return [experiment_answer(one) for one in rows]


@router.get("/experiments/{experiment}")
async def show(experiment: ExperimentPath, core: CoreHere, _: CanRead) -> ExperimentAnswer:
    """Show an experiment."""
    return experiment_answer(await core.current(experiment), await core.guarantee(experiment))


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
    found = await core.change_arm(experiment, arm, add=True)
    await core.note(key.id, "arm added", experiment, {"arm": arm})
    return ArmsAnswer(arms=found)


@router.delete("/experiments/{experiment}/arms/{arm}")
async def retire_arm(
    experiment: ExperimentPath, arm: ArmPath, core: CoreHere, key: CanManage
) -> ArmsAnswer:
    """Retire an arm for good; a batch that plays it and has begun goes on until it is full."""
    found = await core.change_arm(experiment, arm, add=False)
    await core.note(key.id, "arm retired", experiment, {"arm": arm})
    return ArmsAnswer(arms=found)


@router.post("/plan")
async def plan(problem: PlanRequest, _: CanRead) -> JSON:
    """Compare what algorithms guarantee for a problem, with late feedback if need be."""
    late = rounds_late(problem.deadline_seconds, problem.decisions_per_second)
    given = problem.model_dump(exclude_none=True, exclude=LATENESS)
    found = await run_in_threadpool(lambda: make_plan(**given, delay=late))
    return found.to_dict()


@router.delete("/experiments/{experiment}", status_code=204, response_class=Response)
async def erase(experiment: ExperimentPath, core: CoreHere, key: CanManageAll) -> None:
    """Delete everything of a stopped experiment, its releases and keys included.

    What was released before cannot be taken back: the guarantee about it still holds.
    """
    await core.erase(experiment)
    await core.note(key.id, "experiment erased", experiment)
