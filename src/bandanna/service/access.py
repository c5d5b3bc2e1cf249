"""Who may do what: checked by each endpoint on the key that the gate found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from bandanna.service.core import Core
from bandanna.service.keys import opens
from bandanna.store import KeyRow
from bandanna.store.writer import UnknownError


def core_of(request: Request) -> Core:
    """Return the service."""
    core: Core = request.app.state.core
    return core


def key_for(scope: str, *, everywhere: bool = False) -> Callable[[Request], KeyRow]:
    """Require a key that opens a scope: in the experiment of the path, or everywhere."""

    def check(request: Request) -> KeyRow:
        key: KeyRow = request.state.key
        experiment = key.experiment if not everywhere else None
        wanted = request.path_params.get("experiment")
        if wanted is not None and key.experiment not in (None, wanted):
            raise UnknownError(f"there is no experiment {wanted!r}.")
        if not opens(key, scope, experiment):
            raise HTTPException(403, f"this key does not open {scope!r} here.")
        return key

    return check


CoreHere = Annotated[Core, Depends(core_of)]
CanDecide = Annotated[KeyRow, Depends(key_for("decide"))]
CanReward = Annotated[KeyRow, Depends(key_for("reward"))]
CanRead = Annotated[KeyRow, Depends(key_for("read"))]
CanManage = Annotated[KeyRow, Depends(key_for("manage"))]
CanManageAll = Annotated[KeyRow, Depends(key_for("manage", everywhere=True))]
