"""The API: experiments, decisions, feedback."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from starlette.concurrency import run_in_threadpool

from bandanna.service.access import CanDecide, CanManage, CanManageAll, CanRead, CanReward, CoreHere
from bandanna.service.models import (
    DecisionAnswer,
    ExperimentAnswer,
    NewDecision,
    NewExperiment,
    NewReward,
    PlanRequest,
    Problem,
    decision_answer,
    experiment_answer,
)
from bandanna.theory.planner import plan as make_plan

ExperimentPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
EventPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:-]{1,200}$")]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "content": {"application/problem+json": {}}, "description": why}
    for status, why in (
        (400, "Not JSON"),
        (401, "No key"),
        (403, "The key does not open this"),
        (404, "Unknown"),
        (409, "The event belongs to another experiment, or the experiment is stopped"),
        (410, "Too late"),
        (413, "Too large"),
        (422, "A value that cannot be used"),
        (429, "Too often"),
        (503, "The database is not available; try again"),
    )
}

router = APIRouter(prefix="/v1", responses=PROBLEMS)


@router.post("/experiments", status_code=201)
async def create(new: NewExperiment, core: CoreHere, _: CanManageAll) -> ExperimentAnswer:
    """Make an experiment."""
    settings = new.model_dump(exclude={"name"}, exclude_none=True)
    made = await core.create(new.name, settings)
    guarantee = await core.look(made.id, lambda policy: str(policy.guarantee))
    return experiment_answer(made, guarantee)


@router.get("/experiments")
async def experiments(core: CoreHere, key: CanRead) -> list[ExperimentAnswer]:
    """List the experiments that the key opens."""
    found = await core.all_experiments()
    return [experiment_answer(one) for one in found if key.experiment in (None, one.id)]


@router.get("/experiments/{experiment}")
async def show(experiment: ExperimentPath, core: CoreHere, _: CanRead) -> ExperimentAnswer:
    """Show an experiment."""
    guarantee = await core.look(experiment, lambda policy: str(policy.guarantee))
    return experiment_answer(await core.current(experiment), guarantee)


@router.post("/experiments/{experiment}/stop", status_code=204, response_class=Response)
async def stop(experiment: ExperimentPath, core: CoreHere, _: CanManage) -> None:
    """Decide nothing more in an experiment; feedback is still counted."""
    await core.stop(experiment)


@router.post("/experiments/{experiment}/decisions")
async def decide(
    experiment: ExperimentPath, new: NewDecision, core: CoreHere, _: CanDecide
) -> DecisionAnswer:
    """Choose an arm. The same event_id gets the same answer."""
    event = await core.decide(experiment, new.event_id, new.advice, defer=new.defer)
    return decision_answer(event, (await core.find(experiment)).settings["arms"])


@router.post("/events/{event}/reward", status_code=204, response_class=Response)
async def reward(event: EventPath, new: NewReward, core: CoreHere, key: CanReward) -> None:
    """Count the feedback of an event, once. A repeat is accepted whatever it says.

    The first value stands. The answer does not say whether they are the same: feedback is private,
    and whoever has a key could find out somebody else's by trying.
    """
    await core.reward(event, new.loss, new.reward, key.experiment)


@router.post("/events/{event}/activate", status_code=204, response_class=Response)
async def activate(event: EventPath, core: CoreHere, key: CanReward) -> None:
    """Say that a deferred decision has been shown; otherwise it expires without counting."""
    await core.activate(event, key.experiment)


@router.post("/plan")
async def plan(problem: PlanRequest, _: CanRead) -> dict[str, Any]:
    """Compare what algorithms guarantee for a problem."""
    found = await run_in_threadpool(
        lambda: make_plan(
            problem.arms,
            problem.rounds,
            problem.epsilon,
            experts=problem.experts,
            delta=problem.delta,
        )
    )
    return found.to_dict()
