"""OpenFeature's server SDK for Node, as others use it, against the service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import bandanna as bd
from tests.service.running import process

PACKAGES = ("@openfeature/server-sdk", "@openfeature/ofrep-provider")
PROGRAM = Path(__file__).with_name("openfeature.mjs")


def install(folder: Path) -> Path:
    """Install the SDK for this test alone; skips where that is not possible."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node and npm on this machine")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install OpenFeature's packages: {done.stderr[-200:]}")
    return folder / "node_modules"


@pytest.mark.soak
def test_flags_through_the_server_sdk(tmp_path: Path) -> None:
    modules = install(tmp_path)
    with process(tmp_path) as service, bd.Client(service.url, service.key) as client:
        bandit = client.create("button", ["green", "blue"], 1.0, rounds=1000)
        command = ["node", str(PROGRAM), service.url, service.key, "button"]
        done = subprocess.run(
            command,
            env=os.environ | {"NODE_PATH": str(modules)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
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
