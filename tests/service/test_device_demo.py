"""The page with three buttons in a real browser, against a real service at another origin."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from clients.device.client import Budget, Device, HttpTransport, MemoryStorage

from bandanna import signatures
from tests.browser import needs_browser

demo: Any = import_module("examples.device.demo")  # not a package: examples stand alone
pytestmark = [needs_browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with demo.world(tmp_path_factory.mktemp("demo")) as made:
        yield made


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with demo.browser() as made:
        yield made


def asked(here: Any, path: str) -> Any:
    address = f"{here.service}/v1/experiments/{here.experiment}{path}"
    return httpx.get(address, headers={"Authorization": f"Bearer {here.key}"}).json()


def test_visitors_bits_arrive_and_a_picture_shows_both_pages(
    here: Any, driver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = random.Random(1)
    for _ in range(2):
        demo.visit(driver, here.page, people, 2)
        kept = driver.execute_script("return Object.values(localStorage)")
        assert '"bit"' not in kept[0]  # a bit that was sent is forgotten
        driver.execute_script("localStorage.clear()")
    shown = asked(here, "")
    assert (shown["decided"], shown["observed"], shown["released"]) == (4, 4, 4)
    assert {row["released"] for row in asked(here, "/export")} <= {0.0, 1.0}
    monkeypatch.chdir(tmp_path)
    path = demo.picture(driver, here, Path())  # as the Makefile says it: from where one is
    assert path.read_bytes().startswith(b"\x89PNG")
    assert driver.execute_script("return document.images.length") == 2


def test_the_experiments_page_says_what_devices_are_told(here: Any, driver: Any) -> None:
    driver.get(here.service)
    driver.execute_script("sessionStorage.setItem('key', arguments[0])", here.key)
    driver.get("about:blank")
    driver.get(f"{here.service}/#{here.experiment}")
    said = demo.until(driver, "document.getElementById('device')?.innerText")
    device = asked(here, "/privacy")["device"]
    assert device["public_key"] in said
    assert device["fingerprint"][:16] in said
    promise = driver.execute_script("return document.getElementById('promise').innerText")
    assert "whatever the feedback of any one round says" in promise


def test_the_twin_in_python_decides_and_sends_over_http(here: Any) -> None:
    options = json.loads(here.config.read_text())
    way = HttpTransport(here.service, options["key"])
    twin = Device(
        way,
        here.experiment,
        epsilon=demo.EPSILON,
        budget=Budget(10.0, 1.0),
        public_keys=[base64.b64decode(key) for key in options["publicKeys"]],
        storage=MemoryStorage(),
        delay=0.01,
    )
    before = asked(here, "")["observed"]
    event = twin.decide().event_id
    twin.feedback(event, 1.0)
    time.sleep(0.02)
    twin.flush()
    assert twin.kept()["events"][event]["done"]
    assert asked(here, "")["observed"] == before + 1


@pytest.mark.parametrize("wrong", ["epsilon", "signature"])
def test_a_page_that_pins_less_than_the_service_sends_refuses_it(
    here: Any, driver: Any, wrong: str
) -> None:
    """The service of this experiment is as if patched: sharper than allowed, or by another key."""
    fair = here.config.read_text()
    options = json.loads(fair)
    if wrong == "epsilon":
        options["epsilon"] = 0.99 * demo.EPSILON
    else:
        stranger = signatures.make_key().public
        options["publicKeys"] = [base64.b64encode(stranger).decode()]
    driver.get(f"{here.page}/page.css")
    driver.execute_script("localStorage.clear()")
    before = asked(here, "")["observed"]
    here.config.write_text(json.dumps(options))
    try:
        driver.get(here.page)
        assert demo.until(driver, "document.body.dataset.refused") == wrong
        assert not driver.find_element("id", "question").is_displayed()
    finally:
        here.config.write_text(fair)
    assert asked(here, "")["observed"] == before


def test_a_page_that_was_not_named_gets_nothing(here: Any, driver: Any) -> None:
    with demo.page_server(here.config.parent) as other:
        driver.get(other)
        script = f"return fetch('{here.service}/device/key').then(() => 'read', () => 'refused')"
        assert driver.execute_script(script) == "refused"
        driver.get(here.page)
        assert driver.execute_script(script) == "read"
