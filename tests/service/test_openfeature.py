"""OpenFeature's SDKs for Node and for browsers, as others use them, against the service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import bandanna as bd
from tests.browser import needs_browser, open_browser
from tests.pages import ROOT
from tests.service.running import Process, copied

HERE = Path(__file__).with_name("openfeature")
MODULES = HERE / "node_modules"
PROVIDER = ROOT / "examples" / "openfeature" / "bandanna-provider.js"

needs_sdks = pytest.mark.skipif(
    not (MODULES.is_dir() and shutil.which("node")) and not os.environ.get("BANDANNA_NO_SKIPS"),
    reason=f"needs Node and OpenFeature's SDKs: npm ci --prefix {HERE.relative_to(ROOT)}",
)


class Page(SimpleHTTPRequestHandler):
    """Serves the page, the SDKs and the provider."""

    def translate_path(self, path: str) -> str:
        """Return the file of a path."""
        return str(PROVIDER) if path == "/bandanna-provider.js" else super().translate_path(path)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """Where the page is: another origin than the service's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Page, directory=str(HERE)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("openfeature")
    with copied(folder, **{"allow-origin": origin}) as running:
        yield running


@needs_sdks
def test_flags_through_the_server_sdk(service: Process) -> None:
    with bd.Client(service.url, service.key) as client:
        bandit = client.create("server", ["green", "blue"], 1.0, rounds=1000)
        command = ["node", str(HERE / "server.mjs"), service.url, service.key, "server"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["first"] == found["again"]
        assert found["first"]["value"] in ("green", "blue")
        metadata = found["first"]["flagMetadata"]
        assert (metadata["event_id"], metadata["experiment"]) == ("mine", bandit.id)
        assert found["unknown"]["errorCode"] == "FLAG_NOT_FOUND"
        assert (found["wrong"]["value"], found["wrong"]["errorCode"]) == (7, "TYPE_MISMATCH")
        bandit.observe("mine", reward=1.0)
        assert bandit.show()["observed"] == 1
        bandit.stop()


@needs_sdks
@needs_browser
def test_flags_through_the_web_sdk_in_a_page_of_another_origin(
    service: Process, origin: str
) -> None:
    with bd.Client(service.url, service.key) as client, open_browser() as browser:
        bandit = client.create("button", ["green", "blue"], 1.0, rounds=1000, deadline_seconds=900)
        made = {"name": "page", "scopes": ["decide", "reward"], "experiment": bandit.id}
        key = client.send("POST", "/v1/keys", made)["key"]

        def run(verb: str) -> Any:
            browser.get(f"{origin}/web.html")
            browser.set_script_timeout(60)
            return browser.execute_async_script(
                "const [verb, url, key, done] = arguments;"
                "(async () => {"
                "  while (!window[verb]) await new Promise((next) => setTimeout(next, 20));"
                "  return window[verb](url, key);"
                "})().then(done, (error) => done(String(error)));",
                verb,
                service.url,
                key,
            )

        found = run("play")
        assert isinstance(found, dict), found
        first = found["first"]["flagMetadata"]
        assert found["first"]["value"] in ("green", "blue")
        assert (found["first"]["reason"], first["experiment"]) == ("SPLIT", bandit.id)
        assert found["polled"] == found["first"], "polling decides nothing"
        assert found["unknown"]["errorCode"] == "FLAG_NOT_FOUND"
        assert (found["wrong"]["value"], found["wrong"]["errorCode"]) == (7, "TYPE_MISMATCH")
        answers = Counter(tuple(one) for one in found["answers"])
        assert answers.pop(("flags", 304)) >= 3
        assert answers == {("flags", 200): 1, ("activate", 204): 1, ("reward", 204): 2}
        shown = bandit.show()
        assert (shown["decided"], shown["observed"]) == (1, 1)

        found = run("comeBack")
        assert isinstance(found, dict), found
        assert (found["again"]["reason"], found["again"]["flagMetadata"]) == ("CACHED", first)
        other = found["other"]["flagMetadata"]
        assert (found["other"]["reason"], other["event_id"] != first["event_id"]) == ("SPLIT", True)
        answers = Counter(tuple(one) for one in found["answers"])
        assert answers == {("flags", 304): 1, ("flags", 200): 1, ("activate", 204): 2}
        shown = bandit.show()
        assert (shown["decided"], shown["observed"]) == (2, 1)
        bandit.stop()
