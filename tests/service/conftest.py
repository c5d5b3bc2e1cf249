"""Shared by the tests of the service."""

from __future__ import annotations

import pytest

from tests.service.running import SWEEP


@pytest.fixture(autouse=True)
def quick_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a service in this process does every second, it does more often."""
    monkeypatch.setattr("bandanna.service.app.SWEEP_SECONDS", SWEEP)
