"""Shares that are published for others to decide by, and reports of what came of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from pydantic import AfterValidator, BaseModel, Field

from bandanna._core.types import JSON
from bandanna.phases.payloads import digest
from bandanna.service.errors import PROBLEMS, status_of
from bandanna.service.models import Document, Feedback
from bandanna.service.routes import (
    CanDecide,
    CanReward,
    CoreHere,
    ExperimentPath,
    lines_shown,
    read_lines,
)
from bandanna.store.edge_unit import UnitReport

router = APIRouter(prefix="/v1/experiments/{experiment}", responses=PROBLEMS)


@router.get(
    "/phase", response_class=Response, responses={304: {"description": "The same as before"}}
)
async def phase(
    experiment: ExperimentPath,
    core: CoreHere,
    _: CanDecide,
    known: Annotated[str | None, Header(alias="If-None-Match", max_length=1000)] = None,
) -> Response:
    """Return the shares that are published now, signed, with the hash of those before.

    ``clients/edge`` verifies them and assigns units. They may be kept and passed on by caches.
    """
    text, rest = core.edge.published((await core.current(experiment))[0])
    tag = f'"{digest(text)[:32]}"'
    headers = {"ETag": tag, "Cache-Control": f"public, max-age={int(rest)}"}
    if known is not None and tag in [one.strip() for one in known.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(text, headers=headers, media_type="application/json")


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


class ReportLine(Document):
    """A unit met its arm, and perhaps what came of it."""

    unit: Annotated[str, Field(min_length=1, max_length=1000)]
    value: Feedback | None = None
    time: Annotated[datetime, AfterValidator(_in_utc)] | None = None
    experiment: str | None = None
    arm: str | int | None = None
    metrics: dict[str, Feedback] | None = None


class ReportsAnswer(BaseModel):
    """What became of reports."""

    taken: int = Field(description="How many lines were taken.")
    refused: list[JSON] = Field(
        description="The others: the number of the line, from 1 on, the status that it would have "
        "had alone, and why."
    )


@router.post(
    "/feedback",
    openapi_extra=lines_shown(
        '{"unit": "u17", "value": 12.5, "time": "2030-01-31T09:30:00Z"}. time: when the unit met '
        "its arm, now if left out; or experiment: the key of the phase, as its shares have it. "
        "value may be left out, or be sent later. arm, if given, is compared."
    ),
)
async def feedback(
    experiment: ExperimentPath, request: Request, core: CoreHere, _: CanReward
) -> ReportsAnswer:
    """Count units that met their arm, and what came of it.

    Each unit counts once in a phase, with the first value that was sent: lines may be repeated, and
    nothing tells what was sent before. That a unit was reported is public, its value is not: report
    everyone who met an arm, not only those of whom something came. A unit without a value when the
    window is over counts as 0, moved into the range.
    """
    lines, unread = await read_lines(request, ReportLine)
    refused: list[JSON] = [{"line": place, **why} for place, why in unread.items()]
    given = [(place, UnitReport(**dict(line))) for place, line in lines]
    for place, error in await core.edge.report((await core.find(experiment))[0], given):
        refused.append({"line": place, "status": status_of(error), "detail": str(error)})
    refused.sort(key=lambda one: int(one["line"]))
    return ReportsAnswer(taken=len(lines) + len(unread) - len(refused), refused=refused)
