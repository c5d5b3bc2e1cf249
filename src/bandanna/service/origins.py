"""Pages of other origins: those that the operator names may decide and send feedback.

Nothing else is opened to any page (CORS), and no cookies are ever used.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bandanna._core.types import InputError

OPENED = re.compile(
    r"/v1/experiments/[^/]+/decisions"
    r"|/v1/(experiments/[^/]+/)?events/[^/]+/(bit|reward|activate)"
    r"|/ofrep/v1/evaluate/flags(/[^/]+)?"
    r"|/device/[a-z.-]+"
)
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match",
    "Access-Control-Max-Age": "600",
}
READABLE = "ETag, Retry-After"
"""Headers of answers that pages may read."""


def check_origin(text: str) -> str:
    """Require one origin, written out: a scheme, a host and perhaps a port."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}":
        raise InputError(f"an origin is written like https://shop.example; got {text!r}.")
    return text


class Origins:
    """Tells browsers which pages may ask."""

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...]) -> None:
        self._app, self._allowed = app, frozenset(map(check_origin, allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser's question, or pass the request on and let the page read the answer."""
        origin = dict(scope.get("headers", ())).get(b"origin", b"").decode("latin-1")
        if origin not in self._allowed or not OPENED.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        answer = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=answer | PREFLIGHT)(scope, receive, send)
            return

        answer["Access-Control-Expose-Headers"] = READABLE

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = ((key.lower().encode(), value.encode()) for key, value in answer.items())
                message["headers"] = [*message["headers"], *named]
            await send(message)

        await self._app(scope, receive, sending)
