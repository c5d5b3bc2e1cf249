"""The page in a real browser: by keyboard, on a phone, in the dark, live."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import bandanna as bd
from tests.browser import needs_browser, open_browser
from tests.service.running import Process, copied

pytestmark = needs_browser


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with copied(tmp_path_factory.mktemp("page")) as here:
        yield here


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as driver:
        yield driver


def until(driver: Any, what: Callable[[Any], Any]) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 30).until(what)


def text(driver: Any, name: str) -> str:
    return str(driver.execute_script(f"return document.getElementById('{name}').innerText"))


def keys(driver: Any, *sequence: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(driver).send_keys(*sequence).perform()


def picture(driver: Any, name: str) -> None:
    """Keep a picture of the whole page, where someone wants to look at it."""
    if folder := os.environ.get("BANDANNA_PICTURES"):
        options = {"captureBeyondViewport": True}
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", options)
        Path(folder, f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def open_page(driver: Any, running: Process, experiment: str = "") -> None:
    driver.get(f"{running.url}/")
    driver.execute_script("sessionStorage.setItem('key', arguments[0])", running.key)
    driver.get("about:blank")
    driver.get(f"{running.url}/#{experiment}")


def play(bandit: Any, rounds: int) -> None:
    for k in range(rounds):
        decision = bandit.decide()
        bandit.observe(decision, loss=0.9 if decision.arm == "slow" else float(k % 2) * 0.3)


def test_an_experiment_is_made_watched_and_stopped_by_keyboard_alone(
    running: Process, browser: Any
) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{running.url}/")
    until(browser, lambda d: d.find_element("id", "key").is_displayed())
    keys(browser, Keys.TAB)  # past the link that skips, the title, and into the field
    while browser.switch_to.active_element.get_attribute("id") != "key":
        keys(browser, Keys.TAB)
    keys(browser, "bdn_0_0", Keys.ENTER)
    until(browser, lambda d: "send a key" in text(d, "message"))
    keys(browser, running.key, Keys.ENTER)
    until(browser, lambda d: "guaranteed regret" in text(d, "plan"))
    while browser.switch_to.active_element.get_attribute("id") != "name":
        keys(browser, Keys.TAB)
    keys(browser, "button <b>colour</b>", Keys.ENTER)
    until(browser, lambda d: text(d, "title") == "button <b>colour</b>")
    assert "Epsilon is 1" in text(browser, "promise")
    with bd.Client(running.url, running.key) as client:
        bandit = client.experiment(browser.execute_script("return location.hash.slice(1)"))
        play(bandit, 30)
        until(browser, lambda d: "30" in text(d, "numbers").split())
        while browser.switch_to.active_element.get_attribute("id") != "stop":
            keys(browser, Keys.TAB)
        keys(browser, Keys.ENTER)
        until(browser, lambda d: d.find_element("id", "sure").is_displayed())
        keys(browser, Keys.TAB, Keys.ENTER)
        until(browser, lambda d: "(stopped)" in text(d, "title"))
        with pytest.raises(bd.DecisionError):
            bandit.decide()
    assert [entry for entry in browser.get_log("browser") if "401" not in entry["message"]] == []


@pytest.mark.slow
def test_what_is_planned_is_made_and_a_segment_is_looked_at(running: Process, browser: Any) -> None:
    open_page(browser, running)
    until(browser, lambda d: "guaranteed regret" in text(d, "plan"))
    for name, value in (("name", "shops"), ("often", "0.01"), ("segments", "de\nf & r\n")):
        browser.find_element("id", name).send_keys(value)
    browser.find_element("id", "epsilon").click()
    until(browser, lambda d: "864 rounds late" in text(d, "plan"))
    until(browser, lambda d: text(d, "plan").startswith("In each segment"))
    browser.find_element("css selector", "#make button").click()
    until(browser, lambda d: text(d, "title") == "shops")
    with bd.Client(running.url, running.key) as client:
        shops = client.experiment(browser.execute_script("return location.hash.slice(1)"))
        for _ in range(12):
            shops.observe(shops.decide(segment="f & r"), loss=0.5)
    until(browser, lambda d: "0 of 12" in text(d, "numbers"))
    assert "864 rounds late" in text(browser, "condition")
    browser.find_element("css selector", "#segment option:last-child").click()
    until(browser, lambda d: "12 of 12" in text(d, "numbers"))
    assert browser.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1000])
def test_everything_fits_and_can_be_read(
    running: Process, browser: Any, width: int, dark: bool
) -> None:
    with bd.Client(running.url, running.key) as client:
        bandit = client.create("prices", ["fast", "slow", "old"], 1.0, rounds=10_000)
        play(bandit, 60)
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    open_page(browser, running)
    until(browser, lambda d: "guaranteed regret" in text(d, "plan"))
    picture(browser, f"home-{width}-{'dark' if dark else 'light'}")
    open_page(browser, running, bandit.id)
    until(browser, lambda d: "attack" in text(d, "audit"))
    until(browser, lambda d: "slow" in text(d, "difference"))
    browser.find_element("css selector", "#second option:last-child").click()
    until(browser, lambda d: "old" in text(d, "difference"))
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    ink, paper = browser.execute_script(
        "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    )
    assert luminance(paper) < 0.1 if dark else luminance(paper) > 0.9
    lighter, darker = sorted((luminance(ink), luminance(paper)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) > 7
    charts = browser.find_elements("css selector", "#shares svg[role=img], #means svg[role=img]")
    assert all(chart.get_attribute("aria-label") is not None for chart in charts)
    assert len(charts) >= 2
    picture(browser, f"one-{width}-{'dark' if dark else 'light'}")


@pytest.mark.slow
def test_further_outcomes_and_a_retired_arm_are_shown(running: Process, browser: Any) -> None:
    about = {"metrics": {"refund": [0, 1], "revenue": [0, 100]}, "guardrails": {"refund": 0.1}}
    arms = ["usual", "new", "broken"]
    with bd.Client(running.url, running.key) as client:
        shop = client.create("shop", arms, 50.0, rounds=1_000, control="usual", **about)
        for _ in range(300):
            decision = shop.decide()
            sent = {"refund": float(decision.arm == "broken"), "revenue": 20.0}
            shop.observe(decision, reward=0.5, metrics=sent)
            if shop.results()["dropped"]:
                break
        (gone,) = shop.results()["dropped"]
        assert (gone["name"], gone["by"]) == ("broken", "usual")
    for width in (360, 1100):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        open_page(browser, running, shop.id)
        until(browser, lambda d: text(d, "dropped") and text(d, "audit"))
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        picture(browser, f"metrics-{width}")
    said = text(browser, "dropped")
    assert said.startswith("broken, after ")
    assert "refund is higher than with usual by" in said
    assert "retired if its mean is above that of usual by more than 0.1" in text(browser, "metrics")
    assert "No guardrail" in text(browser, "metrics")
    assert len(browser.find_elements("css selector", "#metrics svg[role=img]")) == 2
    assert "usual" in text(browser, "numbers")


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG)."""
    inside = colour[colour.index("(") + 1 : -1].replace("srgb", "")
    parts = [float(part) for part in inside.replace(",", " ").split()[:3]]
    shares = [part / 255 if colour.startswith("rgb") else part for part in parts]
    linear = [s / 12.92 if s <= 0.03928 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_holds_nothing_and_loads_nothing_from_elsewhere(running: Process) -> None:
    for path in ("/", "/page/page.js", "/page/charts.js", "/page/page.css", "/page/icon.svg"):
        answer = httpx.get(running.url + path)
        assert answer.status_code == 200
        assert "https://" not in answer.text
    assert httpx.get(f"{running.url}/page/../core.py").status_code in (401, 404, 422)
    assert httpx.get(f"{running.url}/page/none").status_code == 422


@pytest.mark.slow
def test_a_reader_is_offered_nothing_to_change(running: Process, browser: Any) -> None:
    with bd.Client(running.url, running.key) as client:
        bandit = client.create("read only", ["a", "b"], 1.0, rounds=1000)
        play(bandit, 30)
    header = {"Authorization": f"Bearer {running.key}"}
    body = {"name": "reader", "scopes": ["read"]}
    made = httpx.post(f"{running.url}/v1/keys", json=body, headers=header).json()
    open_page(browser, running)
    browser.execute_script("sessionStorage.setItem('key', arguments[0])", made["key"])
    browser.get("about:blank")
    browser.get(f"{running.url}/")
    until(browser, lambda d: "read only" in text(d, "list"))
    assert not browser.find_element("id", "making").is_displayed()
    browser.get("about:blank")
    browser.get(f"{running.url}/#{bandit.id}")
    until(browser, lambda d: "Feedback has come for 100%" in text(d, "health"))
    assert not browser.find_element("id", "stop").is_displayed()
    assert "the best" in text(browser, "answer")


@pytest.mark.slow
def test_the_page_reconnects_by_itself(tmp_path: Path, browser: Any) -> None:
    with (
        copied(tmp_path) as here,
        bd.Client(here.url, here.key, patience=60) as client,
    ):
        bandit = client.create("reconnect", ["a", "b"], 1.0, rounds=1000)
        open_page(browser, here, bandit.id)
        until(browser, lambda d: "Nothing has been decided" in text(d, "health"))
        here.kill()
        until(browser, lambda d: "connection was lost" in text(d, "connection"))
        here.start()
        play(bandit, 10)
        until(browser, lambda d: "of 10 decisions" in text(d, "health"))
        until(browser, lambda d: text(d, "connection") == "")
