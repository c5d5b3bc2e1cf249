"""A fast path for the most frequent calls.

A framework looks through all routes, solves what each function depends on and watches over its
answer, which together takes longer than a decision. These calls are answered behind the gate,
before the framework sees them. Whatever does not fit exactly, such as an id with a space in it,
goes the usual way, where the same function is described for OpenAPI. So does what a call refuses:
the framework then only writes the refusal.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from bandanna.service import events, routes

REFUSED = "bandanna.refused"
NAMES = {"experiment": r"[A-Za-z0-9_.-]{1,100}", "event": r"[A-Za-z0-9_.:-]{1,200}"}


class QuickRoute(BaseRoute):
    """A POST whose function takes the last name of its path, and the request."""

    def __init__(self, path: str, call: Callable[[str, Request], Awaitable[Response]]) -> None:
        self.path, self._call = path, call
        pattern = path
        for name, allowed in NAMES.items():
            pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{allowed})")
        self._pattern = re.compile(pattern)
        self._name = re.findall(r"{(\w+)}", path)[-1]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether a request is meant."""
        if scope["type"] == "http" and scope["method"] == "POST":
            found = self._pattern.fullmatch(scope["path"])
            if found is not None:
                return Match.FULL, {"path_params": found.groupdict(), "route": self}
        return Match.NONE, {}

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        """Call the function."""
        return await self._call(scope["path_params"][self._name], Request(scope, receive))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a refusal be written; what is not refused was answered before."""
        raise scope[REFUSED]


class Quick:
    """Answers calls of these routes, and passes everything else on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        for route in QUICK:
            found, more = route.matches(scope)
            if found is Match.FULL:
                scope.update(more)
                try:
                    answer = await route.answer(scope, receive)
                except Exception as error:
                    scope[REFUSED] = error
                    break
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


QUICK = (
    QuickRoute("/v1/experiments/{experiment}/decisions", routes.decide),
    QuickRoute("/v1/events/{event}/reward", events.reward),
    QuickRoute("/v1/experiments/{experiment}/events/{event}/reward", events.reward),
)
