"""Pages and files for browsers: the dashboard, a description of the API, the device module."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import resources
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from bandanna._core.types import JSON
from bandanna.device import MODULE
from bandanna.scorecard.page import STYLE
from bandanna.service.routes import CoreHere

router = APIRouter(include_in_schema=False)

TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html", "svg": "image/svg+xml"}


def _file(name: str) -> Response:
    content = (resources.files("bandanna.service") / "static" / name).read_bytes()
    return Response(content, media_type=f"{TYPES[name.rpartition('.')[2]]}; charset=utf-8")


@router.get("/")
def index() -> Response:
    """Return the page."""
    return _file("index.html")


@router.get("/page/scorecard.css")
def scorecard_style() -> Response:
    """Return the style of scorecards."""
    return Response(STYLE, media_type="text/css; charset=utf-8")


@router.get("/page/{name}")
def page_file(
    name: Literal["page.css", "page.js", "common.js", "home.js", "charts.js", "icon.svg"],
) -> Response:
    """Return a part of the page."""
    return _file(name)


# --- description of the API -----------------------------------------------------------

# Made from the OpenAPI document; it needs no script and no key.

API_PATH = "/api"

API_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The API of Bandanna</title>
<link rel="icon" href="/page/icon.svg">
<link rel="stylesheet" href="/page/page.css">
</head>
<body>
<header><h1><a href="/">Bandanna</a></h1><p>The API, version {version}.</p></header>
<main>
<p>Send a key with every call: <code>Authorization: Bearer bdn_...</code>. Programs read
<a href="/openapi.json">/openapi.json</a>, which needs a key too.</p>
{calls}
</main>
</body>
</html>
"""


@router.get(API_PATH)
async def api_page(request: Request) -> HTMLResponse:
    """Return the page."""
    document: JSON = request.app.openapi()
    calls = "\n".join(
        _call(document, method, path, call)
        for path, calls in document["paths"].items()
        for method, call in calls.items()
    )
    return HTMLResponse(API_PAGE.format(version=escape(document["info"]["version"]), calls=calls))


def _call(document: JSON, method: str, path: str, call: JSON) -> str:
    """Describe one call."""
    parts = [f"<p>{escape(call.get('description', ''))}</p>"]
    if call.get("security") == []:
        parts.append("<p>It needs no key.</p>")
    given = [(one["name"], one["in"], one) for one in call.get("parameters", [])]
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {})
    fields = list(_fields(document, body.get("schema", {})))
    for title, rows in (("Parameters", given), ("Body, as JSON", fields)):
        if rows:
            parts.append(_table(document, title, rows))
    answers = (
        f"<li>{status}: {escape(answer['description'])}</li>"
        for status, answer in sorted(call["responses"].items())
    )
    parts.append(f"<h2>Answers</h2><ul>{''.join(answers)}</ul>")
    name = f"<code>{method.upper()} {escape(path)}</code>"
    return f"<details><summary>{name}</summary>{''.join(parts)}</details>"


def _table(document: JSON, title: str, rows: list[tuple[str, str, JSON]]) -> str:
    head = "".join(f'<th scope="col">{one}</th>' for one in ("Name", "", "Type", "Meaning"))
    lines = (
        f"<tr><td><code>{escape(name)}</code></td><td>{where}</td>"
        f"<td>{escape(_kind(document, one.get('schema', one)))}</td>"
        f"<td>{escape(one.get('description', ''))}</td></tr>"
        for name, where, one in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return (
        f'<h2>{title}</h2><div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f"{table}</div>"
    )


def _resolved(document: JSON, schema: JSON) -> JSON:
    """Return what a reference stands for."""
    name = schema.get("$ref", "").rpartition("/")[2]
    part: JSON = document["components"]["schemas"][name] if name else schema
    return part


def _fields(document: JSON, schema: JSON) -> Iterator[tuple[str, str, JSON]]:
    """Yield the fields of a body: name, whether it is needed, and its schema."""
    whole = _resolved(document, schema)
    for name, field in whole.get("properties", {}).items():
        yield name, "needed" if name in whole.get("required", []) else "", field


def _kind(document: JSON, schema: JSON) -> str:
    """Say in a few words which values a schema takes."""
    schema = _resolved(document, schema)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(document, one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    return str(schema.get("const", schema.get("type", "anything")))


# --- files for devices ----------------------------------------------------------------


@router.get("/device/bandanna-device.js")
def device_module() -> Response:
    """Return the ES module."""
    return Response(MODULE.read_bytes(), media_type="text/javascript; charset=utf-8")


@router.get("/device/key")
async def device_key(core: CoreHere) -> JSONResponse:
    """Return the public key that signs what devices are told: for people who pin it."""
    return JSONResponse({"public_key": core.signer.public, "key_id": core.signer.key_id})
