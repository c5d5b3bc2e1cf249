"""The ES module in Node and in a real browser: the same vectors, properties and audit in both."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bandanna.audits.attack import AuditResult, audit
from bandanna.device import MODULE, make_release
from bandanna.version import __version__
from tests.browser import missing, needs_browser, open_browser
from tests.device.service import CLIENT, EXPERIMENT, TinyService, tiny_service
from tests.device.vectors import PATH, with_a

needs_node = pytest.mark.skipif(missing("node"), reason="no node on this machine")
SOURCE = CLIENT / "bandanna-device.js"
PUBLIC_KEY = json.loads(PATH.read_text("utf-8"))["public_key"]
CLAIMED = 2.0

DRAWS = """
const draws = (module, release, count) => {
  const parameters = module.checkRelease(release, 2);
  return [parameters.units, 0n].map((units) => {
    let bits = "";
    for (let draw = 0; draw < count; draw += 1) bits += module.drawBit(parameters, units);
    return bits;
  });
};
"""

PAGE = """
const done = arguments[arguments.length - 1];
const [options, ...rest] = arguments;
import("/bandanna-device.js").then(async (module) => {
  const device = new module.Device({ url: location.origin, ...options });
  %s
}).then(done, (error) => done({ refused: error.code ?? String(error) }));
"""


def outputs(bits: str) -> NDArray[np.int64]:
    return np.frombuffer(bits.encode(), dtype=np.uint8).astype(np.int64) - ord("0")


def audited(first: str, second: str) -> AuditResult:
    """Attack bits drawn on the largest loss and on the smallest, at significance 1e-6."""
    one, other = outputs(first), outputs(second)
    return audit(lambda draws: one, lambda draws: other, CLAIMED, draws=one.size, significance=1e-6)


def test_the_module_is_small_has_types_and_is_packaged() -> None:
    source = SOURCE.read_text("utf-8")
    assert SOURCE.stat().st_size < 10 * 1024
    assert "import" not in re.findall(r"\w+", re.sub(r"importKey", "", source))
    assert "Math.random" not in source
    exported = r"^export (?:async )?(?:class|function) (\w+)"
    declared = (CLIENT / "bandanna-device.d.ts").read_text("utf-8")
    names = [set(re.findall(exported, text, flags=re.MULTILINE)) for text in (source, declared)]
    assert names[0] == names[1]
    package = json.loads((CLIENT / "package.json").read_text("utf-8"))
    assert package["version"] == __version__
    assert all((CLIENT / file).is_file() for file in package["files"])
    assert "dependencies" not in package
    assert MODULE.read_bytes() == SOURCE.read_bytes()


@needs_node
def test_properties_hold_in_node() -> None:
    command = ["node", "--test", "test/device.test.js"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=CLIENT)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^# pass (\d\d)$", done.stdout, flags=re.MULTILINE), done.stdout


@pytest.mark.slow
@needs_node
def test_bits_drawn_in_node_keep_epsilon(tmp_path: Path) -> None:
    """False alarm: 1e-6 by the audit's significance, and seven standard deviations below."""
    script = tmp_path / "draws.mjs"
    script.write_text(
        f'import * as module from "{SOURCE.as_uri()}";\n{DRAWS}\n'
        'import { webcrypto } from "node:crypto";\nglobalThis.crypto ??= webcrypto;\n'
        f"console.log(JSON.stringify(draws(module, {json.dumps(make_release(CLAIMED))}, 1e5)));"
    )
    drawn = subprocess.run(["node", str(script)], check=True, capture_output=True, text=True)
    result = audited(*json.loads(drawn.stdout))
    assert 0.94 * CLAIMED < result.epsilon < CLAIMED


@pytest.fixture(scope="module")
def service() -> Iterator[TinyService]:
    with tiny_service() as made:
        yield made


@pytest.fixture(scope="module")
def browser(service: TinyService) -> Iterator[Any]:
    with open_browser() as driver:
        driver.set_script_timeout(60)
        yield driver


@pytest.fixture
def fresh(service: TinyService) -> TinyService:
    """The service with nothing written down and nothing patched."""
    service.__dict__.update(TinyService().__dict__ | {"url": service.url})
    return service


def on_page(browser: Any, service: TinyService, work: str, **changes: Any) -> Any:
    """Open the page anew and let it do something with a device."""
    options = {
        "experiment": EXPERIMENT,
        "epsilon": 1,
        "budget": {"epsilon": 100, "days": 30},
        "publicKeys": [PUBLIC_KEY],
        "delay": 0.2,
    }
    browser.get(service.url)
    return browser.execute_async_script(PAGE % work, options | changes)


@needs_browser
def test_properties_hold_in_the_browser(browser: Any, fresh: TinyService) -> None:
    browser.get(fresh.url)
    failures = browser.execute_async_script(
        """
        const done = arguments[0];
        (async () => {
          const module = await import("/bandanna-device.js");
          const { properties } = await import("/test/properties.js");
          const vectors = await (await fetch("/vectors.json")).json();
          const failed = [];
          for (const [name, run] of Object.entries(properties)) {
            try { await run({ module, vectors, crypto }); }
            catch (error) { failed.push(`${name}: ${error}`); }
          }
          return [Object.keys(properties).length, failed];
        })().then(done, (error) => done(String(error)));
        """
    )
    assert failures[1:] == [[]], failures
    assert failures[0] > 10
    assert browser.get_log("browser") == []


@pytest.mark.soak
@needs_browser
def test_a_million_bits_drawn_in_the_browser_keep_epsilon(browser: Any, fresh: TinyService) -> None:
    """On either input a million. False alarm: 1e-6 by the audit's significance; the bound is 0.8%
    below the claim with a standard deviation of 0.15%, so 2% is eight of them away.
    """
    browser.get(fresh.url)
    drawn = browser.execute_async_script(
        f"{DRAWS} const [release, done] = arguments;"
        "import('/bandanna-device.js').then((module) => done(draws(module, release, 1e6)));",
        make_release(CLAIMED),
    )
    result = audited(*drawn)
    assert 0.98 * CLAIMED < result.epsilon < CLAIMED


@needs_browser
def test_a_patched_server_with_sharper_parameters_is_refused(
    browser: Any, fresh: TinyService
) -> None:
    fair = fresh.release
    for release, code in (
        (with_a(fair, int(fair["a"]) - 1), "epsilon"),
        (make_release(1.0001), "epsilon"),
        ({**fair, "batch": "7"}, "parameters"),
    ):
        fresh.release = release
        assert on_page(browser, fresh, "return device.decide();") == {"refused": code}
    fresh.release, fresh.private_key = fair, bytes(32)
    assert on_page(browser, fresh, "return device.decide();") == {"refused": "signature"}
    assert fresh.bits == []


@needs_browser
def test_a_retry_after_a_lost_answer_sends_the_same_bit(browser: Any, fresh: TinyService) -> None:
    """Ten events, three sendings each: fresh draws would all agree with chance 4**-10."""
    fresh.lost_answers = 20
    work = """
        for (let event = 0; event < 10; event += 1) {
          const { event_id } = await device.decide();
          await device.feedback(event_id, 0.5);
        }
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          const { events } = JSON.parse(Object.values(localStorage)[0]);
          if (Object.values(events).every(({ done }) => done)) return events;
        }
    """
    browser.get(fresh.url)
    browser.execute_script("localStorage.clear()")
    events = on_page(browser, fresh, work)
    sent: dict[str, list[int]] = {event: [] for event in events}
    for event, bit in fresh.bits:
        sent[event].append(bit)
    assert sum(map(len, sent.values())) >= 30
    assert all(len(set(bits)) == 1 for bits in sent.values())
    assert {frozenset(body) for body in fresh.bodies} == {
        frozenset({"event_id"}),
        frozenset({"bit"}),
    }


@pytest.mark.slow
@needs_browser
def test_a_page_that_is_closed_and_reopened_does_not_draw_twice(
    tmp_path: Path, fresh: TinyService
) -> None:
    """The whole browser is closed. Draws are counted, and what is sent is what was kept before."""
    count = """
        let draws = 0;
        const { getRandomValues } = crypto;
        crypto.getRandomValues = (words) => (draws += 1, getRandomValues.call(crypto, words));
    """
    decide = """
        const events = [];
        for (let event = 0; event < 10; event += 1) {
          const { event_id } = await device.decide();
          await device.feedback(event_id, 0);
          events.push(event_id);
        }
        return [draws, events, Object.values(localStorage)[0]];
    """
    reopen = """
        const again = [];
        const { events } = JSON.parse(Object.values(localStorage)[0]);
        for (const id in events) again.push(await device.feedback(id, 1));
        await device.resume();
        return [draws, again];
    """
    fresh.lost_answers = 1000
    with open_browser(tmp_path / "profile") as first:
        drawn, events, kept = on_page(first, fresh, count + decide, delay=3)
        assert drawn >= 10
    fresh.lost_answers = 0
    with open_browser(tmp_path / "profile") as second:
        assert on_page(second, fresh, count + reopen, delay=3) == [0, [False] * 10]
        on_page(
            second,
            fresh,
            "await new Promise((done) => setTimeout(done, 3000)); return device.resume();",
            delay=3,
        )
    bits = {event: json.loads(kept)["events"][event]["bit"] for event in events}
    assert dict(fresh.bits) == bits
    assert len(set(fresh.bits)) == 10
