"""Draw the scorecard of a trial as a picture, with new noise each time. ``make picture``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import bandanna as bd

TRIAL = Path(__file__).parents[1] / "examples" / "trial.csv"
BROWSER = (
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-sync", "--hide-scrollbars"),
)


def main(to: Path) -> None:
    """Answer the trial and photograph its page."""
    card = bd.compare(
        TRIAL,
        arm="treatment",
        control="zidovudine",
        outcomes={
            "cd4": {"loss_range": (0, 1000), "clip": True, "reward": True},
            "progressed": {"binary": True, "limit": 0.05},
        },
        epsilon=1.0,
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "card.html"
        page.write_text(card.html(), encoding="utf-8")
        size = ("--window-size=1040,1040", f"--user-data-dir={folder}/browser")
        shot = (*BROWSER, *size, f"--screenshot={to.resolve()}", page.as_uri())
        subprocess.run(shot, check=True, capture_output=True)  # noqa: S603


if __name__ == "__main__":
    main(Path(sys.argv[1]))
