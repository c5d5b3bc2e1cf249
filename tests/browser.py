"""A real browser without a window, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def missing(*programs: str) -> bool:
    """Whether a test that needs programs is to be skipped; where nothing may be, it fails."""
    return not all(map(shutil.which, programs)) and not os.environ.get("BANDANNA_NO_SKIPS")


needs_browser = pytest.mark.skipif(
    missing("chromium", "chromedriver"), reason="no chromium and chromedriver on this machine"
)


@contextmanager
def open_browser(profile: Path | None = None) -> Iterator[Any]:
    """Open Chromium; one with a profile remembers what pages stored when it was open before."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ARGUMENTS:
        options.add_argument(argument)
    if profile is not None:
        options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()
