"""Errors as RFC 9457 describes them: a document that says what is wrong, and never a loss."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from bandanna._core.types import JSON, BandannaError, InputError
from bandanna.store import ConflictError, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.guard import RestoredError
from bandanna.store.writer import OverloadedError, UnknownError


class ProblemDetails(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


PROBLEMS: dict[int | str, JSON] = {
    status: {
        "model": ProblemDetails,
        "content": {"application/problem+json": {}},
        "description": why,
    }
    for status, why in (
        (400, "Not JSON"),
        (401, "No key"),
        (403, "The key does not open this"),
        (404, "Unknown"),
        (408, "The request did not arrive in time"),
        (409, "Contradicts what exists, or the experiment is stopped"),
        (410, "Too late"),
        (413, "Too large"),
        (422, "A value that cannot be used"),
        (429, "Too often"),
        (431, "The headers are too long"),
        (503, "The database is not available; try again"),
    )
}


logger = logging.getLogger("bandanna.service")

STATUS: tuple[tuple[type[BandannaError], int], ...] = (
    (UnknownError, 404),
    (ConflictError, 409),
    (GoneError, 410),
    (InputError, 422),
    (StoreUnavailableError, 503),
    (OverloadedError, 503),
    (RestoredError, 503),
)


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: object
) -> JSONResponse:
    """Return a problem document."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    return JSONResponse(
        content | {"detail": detail} | more,
        status_code=status,
        headers=headers,
        media_type="application/problem+json",
    )


def status_of(error: BandannaError) -> int:
    """Return the status that says what was refused."""
    return next((code for kind, code in STATUS if isinstance(error, kind)), 500)


def said_of(error: RequestValidationError | ValidationError) -> JSON:
    """Return the status and the reason why a document is refused, without what it holds."""
    if any(one["type"] == "json_invalid" for one in error.errors()):
        return {"status": 400, "detail": "the request is not valid JSON."}
    why = "; ".join(f"{one['where']}: {one['why']}" for one in _places(error))
    return {"status": 422, "detail": why}


def _places(error: RequestValidationError | ValidationError) -> list[JSON]:
    return [
        {"where": ".".join(map(str, one["loc"])), "why": str(one["msg"])} for one in error.errors()
    ]


REFUSALS = (BandannaError, RequestValidationError, HTTPException, ClientDisconnect)


def refusal_of(error: Exception) -> Response:
    """Return the answer that says what is wrong: where and why, never what was sent."""
    if isinstance(error, BandannaError):
        status = status_of(error)
        return problem(status, str(error), {"Retry-After": "1"} if status == 503 else None)
    if isinstance(error, RequestValidationError):
        said = said_of(error)
        if said["status"] == 422:
            said["errors"] = _places(error)
        return problem(**said)
    if isinstance(error, HTTPException):
        return problem(error.status_code, str(error.detail), error.headers)
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # nobody reads it
    logger.error("internal error", extra={"facts": {"kind": type(error).__name__}})
    return problem(500, "something went wrong here; nothing was changed.")


def add_problems(app: FastAPI) -> None:
    """Answer every error with a problem document."""

    async def answer(_: Request, error: Exception) -> Response:
        return refusal_of(error)

    for kind in (*REFUSALS, Exception):
        app.add_exception_handler(kind, answer)
