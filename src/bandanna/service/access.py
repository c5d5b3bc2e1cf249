"""Who may do what: checked by each endpoint on the key that the gate found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from bandanna.service.core import Core
from bandanna.service.keys import opens
from bandanna.store import KeyRow
from bandanna.store.writer import UnknownError


async def core_of(request: Request) -> Core:
    """Return the service. Plain functions would wait for a thread each time."""
    core: Core = request.app.state.core
    return core


def require(request: Request, *scopes: str, everywhere: bool = False) -> KeyRow:
    """Require a key that opens one of the scopes: in the path's experiment, or everywhere."""
    key: KeyRow = request.state.key
    experiment = key.experiment if not everywhere else None
    wanted = request.path_params.get("experiment")
    if wanted is not None and key.experiment not in (None, wanted):
        raise UnknownError(f"there is no experiment {wanted!r}.")
    if not any(opens(key, scope, experiment) for scope in scopes):
        raise HTTPException(403, f"this key does not open {scopes[0]!r} here.")
    return key


def key_for(scope: str, *, everywhere: bool = False) -> Callable[[Request], Awaitable[KeyRow]]:
    """Return ``require`` as FastAPI wants it."""

    async def check(request: Request) -> KeyRow:
        return require(request, scope, everywhere=everywhere)

    return check


CoreHere = Annotated[Core, Depends(core_of)]
CanDecide = Annotated[KeyRow, Depends(key_for("decide"))]
CanReward = Annotated[KeyRow, Depends(key_for("reward"))]
CanRead = Annotated[KeyRow, Depends(key_for("read"))]
CanManage = Annotated[KeyRow, Depends(key_for("manage"))]
CanManageAll = Annotated[KeyRow, Depends(key_for("manage", everywhere=True))]
