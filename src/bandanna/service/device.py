"""For people's own devices: the module, the key it pins, and the one bit it sends."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from bandanna.device import MODULE
from bandanna.service.access import CoreHere, require
from bandanna.service.models import Document
from bandanna.service.routes import PROBLEMS, EventPath, body_shown, read_body
from bandanna.store.given import Given

router = APIRouter(responses=PROBLEMS)
files = APIRouter(include_in_schema=False)


class NewBit(Document):
    """What a device sends: the bit that it drew, and nothing else."""

    bit: Annotated[int, Field(strict=True, ge=0, le=1, description="Drawn on the device, once.")]


@router.post(
    "/v1/events/{event}/bit",
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
    await request.app.state.core.reward(event, Given(bit=new.bit), key.experiment)
    return Response(status_code=204)


@files.get("/device/bandanna-device.js")
def module() -> Response:
    """Return the ES module."""
    return Response(MODULE.read_bytes(), media_type="text/javascript; charset=utf-8")


@files.get("/device/key")
async def key(core: CoreHere) -> JSONResponse:
    """Return the public key that signs what devices are told: for people who pin it."""
    return JSONResponse({"public_key": core.signer.public, "key_id": core.signer.key_id})
