"""Shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.postgres import Postgres, open_postgres

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the cores are busy with other tests


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
