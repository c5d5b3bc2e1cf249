"""``bandanna reproduce``, as a whole program: every claim, and which hold.

Every run is seeded, so the verdicts are the same each time.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research import REPRODUCTIONS, WITHOUT_FIGURE, frozen_settings
from tests.command import bandanna

YES, NO = True, False
VERDICTS = {
    "rates": [YES, YES, YES, YES, NO, YES],  # T, epsilon, K: htinf's grows faster at these sizes
    "separation": [YES] * 3,
    "bounds": [YES] * 4,
    "regimes": [YES, NO, NO, NO, NO, NO],  # rates, then numbers
    "conversion": [YES] * 4,
    "one-bit": [YES] * 3,
    "leakage": [YES] * 4,
    "people": [YES] * 7,
    "algorithms": [YES] * 3,
    "experts": [YES] * 3,
    "phases": [YES] * 4,
    "local": [YES] * 4,
    "context": [YES] * 4,
    "limits": [YES] * 3,
}


def test_the_list_has_every_name() -> None:
    listed = bandanna("reproduce", "--list").stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(REPRODUCTIONS)
    assert set(VERDICTS) == set(REPRODUCTIONS)


LONG = ("rates", "algorithms", "one-bit", "local")
"""Reproductions that take long even when they are quick."""
QUICK = ("experts", "leakage", "phases")


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Return to which set of tests a reproduction belongs."""
    if name in LONG:
        return [pytest.mark.soak]
    return [] if name in QUICK else [pytest.mark.slow]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in VERDICTS])
def test_every_verdict_is_what_we_know_it_to_be(name: str, tmp_path: Path) -> None:
    chart = tmp_path / "figure.svg"
    figure = () if name in WITHOUT_FIGURE else ("--chart", str(chart))
    done = bandanna("reproduce", name, "--quick", "--json", *figure)
    found = json.loads(done.stdout)
    assert [verdict["holds"] for verdict in found["verdicts"]] == VERDICTS[name], found
    assert all(verdict["tolerance"] for verdict in found["verdicts"])
    assert found["settings"] == frozen_settings(name, quick=True)
    assert done.returncode == (0 if all(VERDICTS[name]) else 1)
    assert chart.exists() == bool(figure)


def test_what_does_not_hold_is_reported_as_not_holding(monkeypatch: pytest.MonkeyPatch) -> None:
    from research import reproduce, separation

    settings = frozen_settings("separation", quick=True) | {"falls": -0.9, "replicates": 10}
    settings["horizons"] = {"one-bit": [10**5, 10**6, 10**7], "ldp-exp3": [10**4]}
    monkeypatch.setattr(separation, "frozen_settings", lambda *_: settings)
    result = reproduce("separation", quick=True)
    assert [verdict.holds for verdict in result.verdicts] == [False, True]
    assert not result.holds
