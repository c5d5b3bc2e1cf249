"""The page in a real browser: by keyboard, on a phone, in the dark, live."""

from __future__ import annotations

import base64
import json
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
AXE = Path(__file__).parent / "openfeature/node_modules/axe-core/axe.min.js"
needs_axe = pytest.mark.skipif(
    not AXE.exists() and not os.environ.get("BANDANNA_NO_SKIPS"),
    reason="needs axe: npm ci --prefix tests/service/openfeature",
)


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


def unfold(driver: Any) -> None:
    driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")


def choose(driver: Any, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(driver.find_element("id", name)).select_by_value(value)


def look_at(driver: Any, width: int, *, dark: bool = False) -> None:
    """Show pages at a width, in the light or in the dark."""
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def inaccessible(driver: Any) -> list[str]:
    """Return what axe finds on a page."""
    script = f"{AXE.read_text('utf-8')}; axe.run().then(found => JSON.stringify(found.violations))"
    options = {"expression": script, "awaitPromise": True}
    found = driver.execute_cdp_cmd("Runtime.evaluate", options)["result"]["value"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in json.loads(found)]


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
    unfold(browser)
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


@pytest.fixture(scope="module")
def prices(running: Process) -> str:
    """An experiment of which enough is released to draw everything."""
    about = {"owner": "<i>shop</i>", "hypothesis": "Fast is better.", "tags": ["prices", "shop"]}
    with bd.Client(running.url, running.key) as client:
        bandit = client.create(
            "prices", ["fast", "slow", "old"], 2.0, rounds=10_000, outcome="waiting", **about
        )
        play(bandit, 90)
        identity: str = bandit.id
    return identity


@needs_axe
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
def test_everything_fits_and_can_be_read(
    running: Process, browser: Any, prices: str, width: int, dark: bool
) -> None:
    look_at(browser, width, dark=dark)
    open_page(browser, running)
    until(browser, lambda d: "guaranteed regret" in text(d, "plan"))
    until(browser, lambda d: "prices" in text(d, "list"))
    unfold(browser)
    picture(browser, f"home-{width}-{'dark' if dark else 'light'}")
    assert inaccessible(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    open_page(browser, running, prices)
    until(browser, lambda d: "attack" in text(d, "audit"))
    until(browser, lambda d: "Against fast" in text(d, "card"))
    choose(browser, "with", "old")
    until(browser, lambda d: "Against old" in text(d, "card"))
    until(browser, lambda d: "experiment made" in text(d, "trail"))
    picture(browser, f"one-{width}-{'dark' if dark else 'light'}")
    assert inaccessible(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    ink, paper = browser.execute_script(
        "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    )
    assert luminance(paper) < 0.1 if dark else luminance(paper) > 0.9
    lighter, darker = sorted((luminance(ink), luminance(paper)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) > 7
    shown = "svg[role=img]:not([aria-hidden])"
    charts = browser.find_elements("css selector", f"#shares {shown}, #card {shown}")
    assert all(chart.get_attribute("aria-label") for chart in charts)
    assert charts  # of shares; the card has none where no lift can be said
    assert text(browser, "about") == "owner: <i>shop</i> · tags: prices, shop"
    assert "waiting" in text(browser, "card")
    assert "fast " in text(browser, "counts")


@pytest.mark.slow
def test_an_experiment_is_made_with_all_there_is(running: Process, browser: Any) -> None:
    look_at(browser, 1200)
    open_page(browser, running)
    until(browser, lambda d: "guaranteed regret" in text(d, "plan"))
    unfold(browser)
    filled = {
        "name": "all of it",
        "new_outcome": "revenue",
        "new_owner": "growth",
        "new_hypothesis": "More is sold.",
        "new_tags": "shop, spring",
        "further": "refunds 0 to 1, guardrail 0.05\nvisits: 0 to 20",
        "per_person": "5",
        "people": "1000",
    }
    for name, value in filled.items():
        browser.find_element("id", name).send_keys(value)
    browser.execute_script("document.getElementById('new_starts_on').value = '2030-01-01'")
    browser.execute_script("document.getElementById('most').value = 100")
    choose(browser, "control", "blue")
    browser.find_element("css selector", "#make button").click()
    until(browser, lambda d: text(d, "title") == "all of it")
    with bd.Client(running.url, running.key) as client:
        made = client.experiment(browser.execute_script("return location.hash.slice(1)")).show()
    kept = made["settings"]
    assert kept["metrics"] == {"refunds": [0, 1], "visits": [0, 20]}
    assert (kept["guardrails"], kept["control"]) == ({"refunds": 0.05}, "blue")
    assert (kept["per_person"], kept["people"], kept["loss_range"]) == (5, 1000, [0, 100])
    assert (made["owner"], made["tags"]) == ("growth", ["shop", "spring"])
    assert (made["outcome"], made["starts_on"]) == ("revenue", "2030-01-01")
    until(browser, lambda d: "Against blue" in text(d, "card"))
    open_page(browser, running)
    until(browser, lambda d: "guaranteed regret" in text(d, "plan"))
    unfold(browser)
    browser.find_element("id", "name").send_keys("by context")
    browser.find_element("id", "features").send_keys("age: 18 to 90\nplan: gold, silver")
    browser.find_element("css selector", "#make button").click()
    until(browser, lambda d: text(d, "title") == "by context")
    until(browser, lambda d: text(d, "card"))


@pytest.mark.slow
def test_an_experiment_is_found_described_and_shipped_by_keyboard(
    running: Process, browser: Any
) -> None:
    from selenium.webdriver.common.keys import Keys

    def to(name: str) -> None:
        while browser.switch_to.active_element.get_attribute("id") != name:
            keys(browser, Keys.TAB)

    look_at(browser, 400)
    browser.get_log("browser")  # what was logged before
    with bd.Client(running.url, running.key) as client:
        bandit = client.create("shipping", ["a", "b"], 1.0, rounds=1000, tags=["soon"])
        client.create("another", ["a", "b"], 1.0, rounds=1000)
        open_page(browser, running)
        until(browser, lambda d: "another" in text(d, "list"))
        to("search")
        keys(browser, "SOON", Keys.ENTER)
        until(browser, lambda d: "another" not in text(d, "list"))
        assert "shipping" in text(browser, "list")
        choose(browser, "state", "ended")
        until(browser, lambda d: text(d, "none") == "None is like that.")
        open_page(browser, running, bandit.id)
        until(browser, lambda d: "Go on: no arm" in text(d, "card"))
        to("describe")
        keys(browser, Keys.ENTER)
        until(browser, lambda d: d.find_element("id", "describing").is_displayed())
        to("edit_owner")
        keys(browser, "growth", Keys.ENTER)
        until(browser, lambda d: "owner: growth" in text(d, "about"))
        to("ship")
        keys(browser, Keys.ENTER)
        until(browser, lambda d: d.find_element("id", "shipping").is_displayed())
        choose(browser, "shipped", "b")
        picture(browser, "shipping-400")
        browser.find_element("css selector", "#shipping .danger").send_keys(Keys.ENTER)
        until(browser, lambda d: text(d, "title") == "shipping (shipped)")
        until(browser, lambda d: "arm shipped, arm b, by" in text(d, "trail"))
        assert text(browser, "shipment").startswith("b was shipped on")
        assert bandit.decide().arm == "b"
    assert browser.get_log("browser") == []


@pytest.mark.slow
def test_further_outcomes_and_a_retired_arm_are_shown(running: Process, browser: Any) -> None:
    about = {"metrics": {"refund": [0, 1], "revenue": [0, 100]}, "guardrails": {"refund": 0.1}}
    arms = ["usual", "new", "broken"]
    with bd.Client(running.url, running.key, patience=120) as client:
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
        look_at(browser, width)
        open_page(browser, running, shop.id)
        until(browser, lambda d: text(d, "dropped") and text(d, "audit"))
        until(browser, lambda d: "guardrail" in text(d, "card"))
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        picture(browser, f"metrics-{width}")
    said = text(browser, "dropped")
    assert said.startswith("broken, after ")
    assert "refund is higher than with usual by" in said
    card = text(browser, "card")
    assert "guardrail: at most 10 more than usual" in card
    assert "revenue" in card
    assert "usual" in text(browser, "numbers")


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG)."""
    inside = colour[colour.index("(") + 1 : -1].replace("srgb", "")
    parts = [float(part) for part in inside.replace(",", " ").split()[:3]]
    shares = [part / 255 if colour.startswith("rgb") else part for part in parts]
    linear = [s / 12.92 if s <= 0.03928 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("address", ["../keys", "..%2Fkeys", "%2e%2e/keys", "..", "x/../../keys?a"])
def test_what_stands_in_the_address_is_one_part_of_a_path(
    running: Process, browser: Any, address: str
) -> None:
    open_page(browser, running, address)
    until(browser, lambda d: text(d, "message") or d.find_element("id", "name").is_displayed())
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map((one) => one.name)"
    )
    paths = {one.removeprefix(running.url).partition("?")[0] for one in asked}
    known = ("/v1/keys/me", "/v1/experiments", "/v1/plan")
    assert {one for one in paths if one.startswith("/v1") and not one.startswith(known)} == set()
    assert not [one for one in paths if ".." in one.split("/")]


NAMED = """
    const bare = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let isolated = 0;
    while (walk.nextNode()) {
      const at = walk.currentNode, parent = at.parentElement;
      if (!at.data.includes(arguments[0]) || parent.closest("option, script")) continue;
      if (parent.closest("bdi, [dir=auto]")) isolated += 1; else bare.push(at.data);
    }
    return isolated >= 2 && {bare};
"""
"""Texts of the page with a name that stand by themselves, once there are others."""


def test_a_name_that_runs_the_other_way_turns_no_sentence_around(
    running: Process, browser: Any
) -> None:
    name = "\u202eneerg"
    with bd.Client(running.url, running.key) as client:
        bandit = client.create("turned", [name, "blue"], 1.0, rounds=300)
        play(bandit, 300)
        open_page(browser, running, bandit.id)
        until(browser, lambda d: "300" in text(d, "numbers").split())
        unfold(browser)
        found = until(browser, lambda d: d.execute_script(NAMED, name))
        bandit.stop()
    assert found == {"bare": []}


def test_the_page_holds_nothing_and_loads_nothing_from_elsewhere(running: Process) -> None:
    names = (
        "page.js",
        "common.js",
        "home.js",
        "charts.js",
        "page.css",
        "scorecard.css",
        "icon.svg",
    )
    for path in ("/", *(f"/page/{name}" for name in names)):
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
    assert not browser.find_element("id", "ship").is_displayed()
    until(browser, lambda d: "Against a" in text(d, "card"))


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


def test_an_experiment_at_the_edge_is_shown_like_any_other(running: Process, browser: Any) -> None:
    times: dict[str, Any] = {"decides": "edge", "phase_seconds": 1.0, "deadline_seconds": 1.0}
    with bd.Client(running.url, running.key) as client:
        made = client.create("edges", ["blue", "green"], 4.0, rounds=400, reward=True, **times)
        lines = [{"unit": f"u{k}", "value": float(k % 3 == 0)} for k in range(400)]
        assert made.report(lines) == {}
        made.stop()
        until(browser, lambda _: made.decided == 400)
    browser.get_log("browser")  # what other pages met
    open_page(browser, running, made.id)
    until(browser, lambda driver: "400" in driver.find_element("tag name", "body").text)
    shown = browser.find_element("tag name", "body").text
    assert "blue" in shown
    assert "undefined" not in shown
    assert "NaN" not in shown
    found = [one["message"] for one in browser.get_log("browser") if one["level"] == "SEVERE"]
    assert not [one for one in found if "401" not in one], "it asks once before it has a key"
