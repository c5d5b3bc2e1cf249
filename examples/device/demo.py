"""Visitors of a page with three buttons: their devices release one bit each, a service learns.

A real service, a page of another origin, and headless Chromium that visits it again and again.
At the end there is a picture of both pages, and what the operator has learned.

python examples/device/demo.py [VISITORS [FOLDER]]
"""

import base64
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import httpx
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

DISLIKED = {"plain": 0.5, "bold": 0.15, "loud": 0.85}
"""How many visitors dislike each button: nobody but they themselves know."""

EPSILON, VIEWS, DELAY = 2.0, 5, 1.0
PAGE = Path(__file__).parent
CHROMIUM = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


class World(NamedTuple):
    """Where things are."""

    service: str
    key: str
    page: str
    experiment: str
    config: Path


class Quiet(SimpleHTTPRequestHandler):
    """Serves the page without a word."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def page_server(folder: Path) -> Iterator[str]:
    """Serve a folder at an origin of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def service(folder: Path, origin: str) -> Iterator[str]:
    """Run ``bandanna serve``, which lets pages of one origin ask."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as free:
        port = free.server_port
    command = [sys.executable, "-m", "bandanna", "serve", "--database", str(folder / "demo.db")]
    command += ["--port", str(port), "--key-file", str(folder / "key"), "--allow-origin", origin]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen([*command, "--device-rate", "1000"], stdout=log, stderr=log)  # noqa: S603
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            if running.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            try:
                httpx.get(f"{url}/healthz")
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield url
    finally:
        running.terminate()
        running.wait()


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Start everything, and make the experiment and the page's key."""
    site = folder / "site"
    shutil.copytree(PAGE, site, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    with page_server(site) as origin, service(folder, origin) as url:
        key = (folder / "key").read_text().strip()
        settings = {"arms": list(DISLIKED), "epsilon": EPSILON, "privacy": "local"}
        settings |= {"name": "three buttons", "rounds": 1000, "deadline_seconds": 600.0}
        headers = {"Authorization": f"Bearer {key}"}
        made = httpx.post(f"{url}/v1/experiments", json=settings, headers=headers)
        experiment = str(made.raise_for_status().json()["id"])
        new = [sys.executable, "-m", "bandanna", "keys", "new", "page", "--scope", "device"]
        new += ["--experiment", experiment, "--database", str(folder / "demo.db")]
        here = World(url, key, origin, experiment, site / "config.json")
        done = subprocess.run(new, check=True, capture_output=True, text=True)  # noqa: S603
        pinned = httpx.get(f"{url}/device/key").json()["public_key"]
        options: dict[str, Any] = {"url": url, "experiment": experiment, "key": done.stdout.strip()}
        options |= {"epsilon": EPSILON, "budget": {"epsilon": VIEWS * EPSILON, "days": 30}}
        here.config.write_text(json.dumps(options | {"publicKeys": [pinned], "delay": DELAY}))
        yield here


@contextmanager
def browser() -> Iterator[Any]:
    """Open Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in (*CHROMIUM, "--window-size=900,1100"):
        options.add_argument(argument)
    path = webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    driver = webdriver.Chrome(options=options, service=path)
    try:
        yield driver
    finally:
        driver.quit()


def until(driver: Any, script: str) -> Any:
    """Wait until a script returns something."""
    return WebDriverWait(driver, 60, 0.02).until(lambda d: d.execute_script(f"return {script}"))


def visit(driver: Any, page: str, people: random.Random, views: int) -> None:
    """Come as someone new, look at a button several times and say whether it is liked."""
    for _ in range(views):
        driver.get(page)
        until(driver, "document.body.dataset.shown")
        button = driver.find_element("id", "offer").get_attribute("class")
        liked = people.random() >= DISLIKED[button]
        driver.find_element("id", "like" if liked else "dislike").click()
        until(driver, "document.body.dataset.answered")
    until(driver, "document.body.dataset.waiting === '0'")


def picture(driver: Any, here: World, folder: Path) -> Path:
    """Take a picture of the page, and of the experiment's page next to it."""
    driver.execute_script("localStorage.clear()")
    driver.get(here.page)
    until(driver, "document.body.dataset.shown")
    shots = [driver.get_screenshot_as_png()]
    driver.get(here.service)
    driver.execute_script("sessionStorage.setItem('key', arguments[0])", here.key)
    driver.get("about:blank")
    driver.get(f"{here.service}/#{here.experiment}")
    until(driver, "document.querySelectorAll('#card .scorecard tr').length")
    shots.append(driver.get_screenshot_as_png())
    images = "".join(
        f"<img src='data:image/png;base64,{base64.b64encode(shot).decode()}'>" for shot in shots
    )
    both = folder / "both.html"
    both.write_text(f"<!doctype html><body style='margin:0;display:flex'>{images}")
    driver.set_window_size(1800, 1100)
    driver.get(both.resolve().as_uri())
    path = folder / "device-demo.png"
    driver.save_screenshot(str(path))
    return path


def main(visitors: int = 100, out: Path = Path("demo"), views: int = VIEWS) -> None:
    """Let visitors come, then show what was learned and what it was learned from."""
    out.mkdir(parents=True, exist_ok=True)
    people = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as here, browser() as driver:
        for _ in range(visitors):
            visit(driver, here.page, people, views)
            driver.execute_script("localStorage.clear()")  # the next visitor is someone else
        headers = {"Authorization": f"Bearer {here.key}"}
        about = f"{here.service}/v1/experiments/{here.experiment}"
        results = httpx.get(f"{about}/results", headers=headers).json()
        promise = httpx.get(f"{about}/privacy", headers=headers).json()["in_words"]
        path = picture(driver, here, out)
    print(f"{visitors} visitors saw {results['rounds_released']} buttons; as many bits arrived.")
    print("button   shown   disliked, by the bits    in truth")
    for choice in results["choices"]:
        mean = "-" if choice["mean"] is None else f"{choice['mean']:.2f}"
        low, high = choice["low"] or 0.0, choice["high"] or 1.0
        name, share = choice["name"], choice["share"]
        print(f"{name:8} {share:4.0%}    {mean:>5} ({low:.2f} to {high:.2f})   {DISLIKED[name]:9}")
    print(promise.partition("because")[0].rstrip())
    print(f"Both pages: {path}")


if __name__ == "__main__":
    size, folder, *_ = [*sys.argv[1:], *("100", "demo")[len(sys.argv) - 1 :]]
    main(int(size), Path(folder))
