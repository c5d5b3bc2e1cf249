"""The dashboard: static files without data; it calls the API with the reader's key."""

from __future__ import annotations

from importlib import resources
from typing import Literal

from fastapi import APIRouter, Response

router = APIRouter(include_in_schema=False)

TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html", "svg": "image/svg+xml"}


def _file(name: str) -> Response:
    content = (resources.files("bandanna.service") / "static" / name).read_bytes()
    return Response(content, media_type=f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8")


@router.get("/")
def index() -> Response:
    """Return the page."""
    return _file("index.html")


@router.get("/page/{name}")
def part(name: Literal["page.css", "page.js", "charts.js", "icon.svg"]) -> Response:
    """Return a part of the page."""
    return _file(name)
