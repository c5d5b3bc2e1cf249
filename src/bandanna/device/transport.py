"""How a device reaches the service: two requests, and nothing else in them."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import NamedTuple, Protocol
from urllib import request
from urllib.error import HTTPError

from bandanna._core.types import JSON, InputError

TIMEOUT_SECONDS = 30.0
MOST_BYTES = 100_000
"""A decision is smaller than this; more is not read."""


class Answer(NamedTuple):
    """What came back: the HTTP status, and the JSON document or None."""

    status: int
    document: object = None


class Transport(Protocol):
    """Posts JSON to a path below the service's ``/v1/``; OSError means that no answer came."""

    def post(self, path: str, body: JSON) -> Answer:
        """Send a document and wait for the answer."""


class HttpTransport:
    """Reaches a service over HTTP, without cookies and without following redirections.

    Parameters
    ----------
    url
        Where the service is, without ``/v1``.
    key
        The key that may decide in this experiment, if the service wants one.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"url must start with https:// or http://; got {url!r}.")
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._opener = request.build_opener(_NoRedirection)

    def post(self, path: str, body: JSON) -> Answer:
        """Send a document and wait for the answer."""
        address = f"{self._url}/v1/{path}"
        data = json.dumps(body).encode()
        asked = request.Request(address, data, self._headers, method="POST")  # noqa: S310
        try:
            with self._opener.open(asked, timeout=TIMEOUT_SECONDS) as response:
                return Answer(response.status, _parsed(response.read(MOST_BYTES)))
        except HTTPError as error:
            with error:
                return Answer(error.code)
        except HTTPException as error:  # half an answer is none
            raise ConnectionError(str(error)) from error


class _NoRedirection(request.HTTPRedirectHandler):
    """Turns a redirection into an error: a bit goes where the page said, or nowhere."""

    def redirect_request(self, *_: object) -> None:
        return None


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None
