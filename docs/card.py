"""Draw scorecards as pictures, with new noise each time: ``make picture``.

The README's is the trial of ``examples/trial.csv``; the tutorial's are what its code makes.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.pages import blocks

import bandanna as bd
from bandanna.scorecard.card import Scorecard

ROOT = Path(__file__).parents[1]
BROWSER = (
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-sync", "--hide-scrollbars"),
)
ONLY = (
    "<style>body{{margin:0}}.scorecard>*{{display:none!important}}"
    ".scorecard>.{0},.scorecard>.{0}+p{{display:block!important}}</style>"
)


def main(folder: Path) -> None:
    """Answer, and photograph the pages."""
    card = bd.compare(
        ROOT / "examples" / "trial.csv",
        arm="treatment",
        control="zidovudine",
        outcomes={
            "cd4": {"loss_range": (0, 1000), "clip": True, "reward": True},
            "progressed": {"binary": True, "limit": 0.05},
        },
        epsilon=1.0,
    )
    photograph(card.html(), folder / "scorecard.png", 1160)
    made: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.chdir(place),
        contextlib.redirect_stdout(None),
    ):
        for block in blocks(ROOT / "docs" / "tutorial.md"):
            if block.language == "python" and "simulate" not in block.body:
                exec(block.body, made)  # noqa: S102
    log, trial = made["card"], made["trial"]
    assert isinstance(log, Scorecard)
    assert isinstance(trial, bd.PrivateBandit)
    photograph(log.html(), folder / "tutorial-log.png", 900)
    running = trial.scorecard(outcome="progressed").html()
    photograph(running + ONLY.format("lift-over-time"), folder / "tutorial-lift.png", 240)
    photograph(running + ONLY.format("shares"), folder / "tutorial-shares.png", 150)


def photograph(html: str, to: Path, height: int) -> None:
    """Keep what a page looks like."""
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "card.html"
        page.write_text(html, encoding="utf-8")
        size = (f"--window-size=1040,{height}", f"--user-data-dir={place}/browser")
        shot = (*BROWSER, *size, f"--screenshot={to.resolve()}", page.as_uri())
        subprocess.run(shot, check=True, capture_output=True)  # noqa: S603


if __name__ == "__main__":
    main(Path(sys.argv[1]))
