"""schemathesis reads the OpenAPI document and sends what a hostile program might."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

import bandanna as bd
from tests.service.running import Process, copied

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
OPERATIONS = 45
"""How many there are, so that none is left out unnoticed."""


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, value: Any) -> bytes:
    """Write what is sent as lines: the schema says that they are a text."""
    return str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with copied(tmp_path_factory.mktemp("schema")) as here:
        yield here


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_nothing_that_is_sent_makes_it_fail(running: Process, mode: str) -> None:
    headers = {"Authorization": f"Bearer {running.key}"}
    with bd.Client(running.url, running.key) as client:
        experiment = client.create(f"test {mode}", ["a", "b"], 0.2, rounds=1000)
        event = experiment.decide().event_id
    document = httpx.get(f"{running.url}/openapi.json", headers=headers).json()
    for path, item in document["paths"].items():  # half of what is sent is about something real
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                real = {
                    "experiment": experiment.id,
                    "event": event,
                    "key": experiment.id,
                    "arm": "b",
                }
                if parameter["in"] == "path":
                    parameter["schema"]["enum"] = [real[parameter["name"]], "none"]
        assert path.startswith(("/v1/", "/ofrep/", "/livez", "/readyz", "/healthz", "/metrics"))
    schema = schemathesis.openapi.from_dict(document)
    found: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(found) == OPERATIONS
    for operation in found:
        if not operation.path.endswith("/live"):
            attack(operation, mode, running.url, headers)


def attack(operation: Any, mode: str, url: str, headers: dict[str, str]) -> None:
    """Send up to 10 requests to one operation."""
    strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))

    @settings(
        max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(case=strategy)
    def send(case: Any) -> None:
        answer = case.call(base_url=url, headers=headers)
        case.validate_response(answer, checks=CHECKS)

    try:
        send()
    except Unsatisfiable:  # nothing can be wrong about a request without parameters
        assert mode == "negative"
