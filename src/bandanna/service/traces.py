"""OpenTelemetry traces of requests, sent where ``OTEL_EXPORTER_OTLP_ENDPOINT`` says.

A span has the route, the method, the status and the time it took. Paths, queries and addresses are
left out: they name experiments, events and clients.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fastapi import FastAPI

from bandanna._core.extras import need

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
LEFT_OUT = (
    *("http.url", "http.target", "url.full", "url.path", "url.query"),
    *("net.peer.ip", "net.peer.port", "client.address", "client.port", "http.client_ip"),
    *("http.user_agent", "user_agent.original"),
)


def add_traces(app: FastAPI, exporter: SpanExporter | None = None) -> None:
    """Trace an application's requests if an address for that is set, or to an exporter."""
    if exporter is None and not os.environ.get(ENDPOINT):
        return
    need("tracing", f"{ENDPOINT} is set, and a trace")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "bandanna")})
    provider = TracerProvider(resource=resource)
    if exporter is None:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    else:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    FastAPIInstrumentor.instrument_app(
        app,
        tracer_provider=provider,
        server_request_hook=_leave_out,
        exclude_spans=["receive", "send"],
    )


def _leave_out(span: Span, _: dict[str, object]) -> None:
    if span.is_recording():
        for name in LEFT_OUT:
            span.set_attribute(name, "")
