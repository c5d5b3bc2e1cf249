"""Errors as RFC 9457 has them: a document that says what is wrong, and never a loss."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from bandanna._core.types import BandannaError, InputError
from bandanna.store import ConflictError, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.guard import RestoredError
from bandanna.store.writer import OverloadedError, UnknownError

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


def add_problems(app: FastAPI) -> None:
    """Answer every error with a problem document."""

    @app.exception_handler(BandannaError)
    async def _refused(_: Request, error: BandannaError) -> JSONResponse:
        status = next((code for kind, code in STATUS if isinstance(error, kind)), 500)
        retry = {"Retry-After": "1"} if status == 503 else None
        return problem(status, str(error), retry)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        # Where and why, never what was sent: it may be someone's feedback.
        found = [
            {"where": ".".join(map(str, one["loc"])), "why": str(one["msg"])}
            for one in error.errors()
        ]
        bad_json = any(one["type"] == "json_invalid" for one in error.errors())
        if bad_json:
            return problem(400, "the request is not valid JSON.")
        detail = "; ".join(f"{one['where']}: {one['why']}" for one in found)
        return problem(422, detail, errors=found)

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def _bug(_: Request, error: Exception) -> JSONResponse:
        logger.error("internal error", extra={"facts": {"kind": type(error).__name__}})
        return problem(500, "something went wrong here; nothing was changed.")
