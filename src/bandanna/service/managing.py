"""The API for those who manage: keys, and the trail of who changed what."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON
from bandanna.service.access import CanManage, CanManageAll, CoreHere
from bandanna.service.errors import PROBLEMS
from bandanna.service.keys import make_key
from bandanna.service.models import Document, Label, moment
from bandanna.service.routes import EventPath, ExperimentPath
from bandanna.store import KeyRow
from bandanna.store.writer import UnknownError

router = APIRouter(prefix="/v1", responses=PROBLEMS)

Scope = Literal["decide", "reward", "read", "manage", "device"]


class NewKey(Document):
    """A key to be made."""

    name: Label
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=5)]
    experiment: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Limit the key to this experiment."
    )
    expires_in_seconds: Annotated[float, Field(gt=0, le=10**9)] | None = Field(
        default=None, description="After this it opens nothing."
    )


class KeyAnswer(BaseModel):
    """A key, without what makes it secret."""

    id: str
    name: str
    scopes: list[str]
    experiment: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class NewKeyAnswer(KeyAnswer):
    """A key that was just made."""

    key: str = Field(description="Shown once: only a hash of it is kept.")


def _shown(row: KeyRow) -> JSON:
    times = {name: getattr(row, name) for name in ("expires_at", "revoked_at")}
    return {
        "id": row.id,
        "name": row.name,
        "scopes": list(row.scopes),
        "experiment": row.experiment,
        "created_at": moment(row.created_at),
        **{name: None if at is None else moment(at) for name, at in times.items()},
    }


@router.get("/keys")
async def keys(core: CoreHere, _: CanManageAll) -> list[KeyAnswer]:
    """List all keys, revoked ones included."""
    rows = await run_in_threadpool(core.store.all_keys)
    return [KeyAnswer(**_shown(row)) for row in rows]


@router.get("/keys/me")
async def own_key(request: Request) -> KeyAnswer:
    """Say what the key that is sent may do."""
    return KeyAnswer(**_shown(request.state.key))


@router.post("/keys", status_code=201)
async def new_key(new: NewKey, core: CoreHere, mine: CanManageAll) -> NewKeyAnswer:
    """Make a key; it is shown in this answer alone."""
    expires = None if new.expires_in_seconds is None else time.time() + new.expires_in_seconds
    row, text = await run_in_threadpool(
        lambda: make_key(
            core.store, core.secret, new.name, tuple(new.scopes), new.experiment, expires
        )
    )
    await core.note(mine.id, "key made", row.id, {"name": new.name, "scopes": new.scopes})
    return NewKeyAnswer(**_shown(row), key=text)


@router.post("/keys/{key}/revoke", status_code=204, response_class=Response)
async def revoke_key(
    key: Annotated[str, Path(max_length=40)], core: CoreHere, mine: CanManageAll
) -> None:
    """Let a key open nothing any more, within two seconds; streams that it opened end."""
    if not await run_in_threadpool(core.store.revoke_key, key, core.clock()):
        raise UnknownError(f"there is no key {key!r} to revoke.")
    await core.note(mine.id, "key revoked", key)


@router.get("/trail")
async def trail(
    core: CoreHere,
    _: CanManageAll,
    after: Annotated[int, Query(ge=0, le=2**62, description="Entries after this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JSON:
    """Say who made, changed, stopped and exported what; ask again after ``next`` for more."""
    rows = await run_in_threadpool(core.store.trail, after, limit)
    entries = [{**row._asdict(), "at": moment(row.at)} for row in rows]
    return {"entries": entries, "next": rows[-1].number if len(rows) == limit else None}


@router.delete("/experiments/{experiment}", status_code=204, response_class=Response)
async def erase(experiment: ExperimentPath, core: CoreHere, key: CanManageAll) -> None:
    """Delete everything of a stopped experiment, its releases and keys included.

    What was released before cannot be taken back: the guarantee about it still holds.
    """
    await core.erase(experiment)
    await core.note(key.id, "experiment erased", experiment)


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
