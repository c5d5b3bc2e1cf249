"""Shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.noise import repeatable_noise
from tests.postgres import Postgres, open_postgres

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the cores are busy with other tests

# A failure can be repeated, and a busy machine is none. `make soak` draws new examples.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("new", deadline=None)
settings.load_profile("repeatable")

REAL_NOISE = ("tests/privacy/", "tests/audits/")
"""Tests of the samplers, which draw from them; each states its probability of a false alarm."""


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where everything is installed, a skipped test is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("BANDANNA_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, for all tests of one worker."""
    with open_postgres() as server:
        yield server


@pytest.fixture(autouse=True)
def noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a test's noise from its name, so that chance decides no test."""
    name = request.node.nodeid
    if not name.startswith(REAL_NOISE) and request.node.get_closest_marker("soak") is None:
        repeatable_noise(monkeypatch, name)
