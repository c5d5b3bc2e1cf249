"""The walks of docs/architecture.md pass all steps written there, and as few as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.walks import WALKS

from tests.pages import ROOT

MAP = (ROOT / "docs" / "architecture.md").read_text("utf-8")
MOST = {"A loss, to the next arm": 35, "A reward, to the disk": 55, "A study, to its report": 40}


def steps(walk: str) -> tuple[int, list[tuple[str, str]]]:
    """Return how many steps the page says a walk has, and those it lists, by file and name."""
    said, _, rest = MAP.partition(f"**{walk}** (")[2].partition(" steps")
    table = rest.partition("|---|---|\n")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([^`]+)`", line) for line in table.splitlines()]
    return int(said), [(file, name) for file, *names in rows for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_passes_the_steps_that_are_written_out(walk: str, tmp_path: Path) -> None:
    said, listed = steps(walk)
    assert len(listed) == said <= MOST[walk]
    passed = {(one.file, one.name) for one in WALKS[walk](tmp_path)}
    assert [step for step in listed if step not in passed] == []
