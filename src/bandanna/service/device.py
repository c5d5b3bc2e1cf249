"""For people's own devices: the module, and the key it pins."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from bandanna.device import MODULE
from bandanna.service.access import CoreHere

files = APIRouter(include_in_schema=False)


@files.get("/device/bandanna-device.js")
def module() -> Response:
    """Return the ES module."""
    return Response(MODULE.read_bytes(), media_type="text/javascript; charset=utf-8")


@files.get("/device/key")
async def key(core: CoreHere) -> JSONResponse:
    """Return the public key that signs what devices are told: for people who pin it."""
    return JSONResponse({"public_key": core.signer.public, "key_id": core.signer.key_id})
