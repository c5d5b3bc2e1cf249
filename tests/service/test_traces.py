"""Traces name routes and times, and neither experiments nor clients."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI

from bandanna.service.traces import ENDPOINT, add_traces

export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


def test_a_span_has_the_route_and_no_names() -> None:
    app, spans = FastAPI(), export.InMemorySpanExporter()

    @app.get("/v1/experiments/{experiment}/answer")
    def answer(experiment: str) -> str:
        return "fine"

    add_traces(app, spans)

    async def ask() -> int:
        where = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=where, base_url="http://here") as client:
            found = await client.get("/v1/experiments/exp_4242/answer?segment=secret")
            return found.status_code

    assert asyncio.run(ask()) == 200
    (span,) = spans.get_finished_spans()
    assert span.name == "GET /v1/experiments/{experiment}/answer"
    said = span.to_json()
    assert "exp_4242" not in said
    assert "secret" not in said
    assert "127.0.0.1" not in said


def test_nothing_is_traced_unless_an_address_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT, raising=False)
    app = FastAPI()
    add_traces(app)
    assert not getattr(app, "_is_instrumented_by_opentelemetry", False)
