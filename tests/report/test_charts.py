from __future__ import annotations

import re
from pathlib import Path

import pytest

import bandanna as bd
from bandanna._core.types import InputError
from bandanna.report.charts import audit_chart, save_chart

ROWS = [
    {"release": release, "claimed": eps, "audited": 0.97 * eps, "audited_policy": 0.9 * eps}
    for release in ("one-bit", "laplace")
    for eps in (0.1, 1.0)
]
CHART = audit_chart(ROWS)
STARTS = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>"}


@pytest.mark.parametrize("suffix", STARTS)
def test_charts_are_written_in_every_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"chart{suffix}"
    save_chart(CHART, path)
    content = path.read_bytes().lstrip()
    assert content.startswith(STARTS[suffix])
    if suffix == ".html":
        assert b'src="http' not in content  # works offline


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.html, \.svg"):
        save_chart(CHART, tmp_path / "chart.gif")
    with pytest.raises(InputError, match="cannot write"):
        save_chart(CHART, tmp_path / "nowhere" / "chart.svg")


def test_a_notebook_shows_results_without_a_network() -> None:
    """A picture is in the notebook itself; nothing is loaded when it is shown."""
    results = bd.simulate(bd.Bandit(arms=2), [[0.1, 0.9]] * 50, replicates=2)
    shown = results.plot()._repr_mimebundle_()  # type: ignore[attr-defined]
    picture = shown["image/svg+xml"]
    assert picture.startswith("<svg")
    assert "policy" in picture
    loaded = [url for url in re.findall(r"https?://[^\"\s<]+", picture) if "w3.org" not in url]
    assert loaded == []
