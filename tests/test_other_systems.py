"""Without what Windows lacks, and with files as they are written there, everything works.

These tests take things away from the Python they run on; they are no replacement for Windows. The
workflow in .github/workflows/platforms.yml runs the tests there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BARE = """
import os, signal, sys, types

for name in ("register_at_fork", "fork", "forkpty", "getuid", "geteuid", "getgid", "fchmod",
             "O_TMPFILE", "O_NOFOLLOW", "O_DIRECTORY", "statvfs", "getloadavg", "killpg", "setsid"):
    delattr(os, name)
# The standard library knows where it is; the rest must look.
import asyncio, concurrent.futures, multiprocessing.util, shutil, socket, subprocess, tempfile

# On Windows this asks the system by another call.
shutil.disk_usage = lambda path: types.SimpleNamespace(total=2**41, used=2**40, free=2**40)
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios", "uvloop")))
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGALRM", "SIGQUIT"):
    delattr(signal, name)
locked = []
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_LOCK, msvcrt.locking = 1, lambda handle, mode, size: locked.append(size)
sys.modules["msvcrt"] = msvcrt
"""


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BARE + code], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as people on Windows have them."""
    found = tmp_path / "Eigene Dateien & mehr (2)"
    found.mkdir()
    return found


def test_the_library_is_imported_and_used(folder: Path) -> None:
    code = """
import bandanna as bd
bandit = bd.PrivateBandit(["a", "b"], 1.0, 1000, "exp3", batch=2)
for _ in range(10):
    bandit.observe(bandit.decide(), loss=0.3)
bandit.save("policy.json")
again = bd.load("policy.json")
assert again.decided == 10 and locked == [1]
try:
    bd.load("policy.json")
except bd.BandannaError as error:
    assert "resumed before" in str(error)
experts = bd.PrivateExperts(2, 2, 1.0, rounds=1000)
experts.observe(experts.decide([0, 1]), loss=0.3)
found = bd.private_range(range(5000), 1.0, bounds=(0, 10_000))
results = bd.simulate(bd.PrivateBandit(2, 1.0), [[0.1, 0.9]] * 50, replicates=2)
print(bd.plan(2, 1000, 1.0).best is not None)
"""
    assert run(code, folder) == "True\n"


@pytest.mark.slow
def test_files_with_the_line_ends_of_windows(folder: Path) -> None:
    rows = "arm,outcome\r\n" + "a,1\r\nb,0\r\n" * 200
    (folder / "log.csv").write_bytes(rows.encode("utf-8"))
    study = '[study]\r\nreplicates = 2\r\n[grid]\r\nalgorithm = ["uniform"]\r\n'
    study += 'environment = ["trial"]\r\nrounds = [50]\r\n'
    (folder / "study.toml").write_bytes(study.encode("utf-8"))
    code = """
import json
from pathlib import Path
import bandanna as bd
from bandanna.cli import main

def bandanna(*arguments):
    sys.argv = ["bandanna", *arguments]
    try:
        main()
    except SystemExit as error:
        assert not error.code, (arguments, error.code)

bandit = bd.PrivateBandit(2, 0.5, 1000)
bandit.save("policy.json")
for name, text in (("certificate.json", json.dumps(bandit.certificate(), indent=2)),
                   ("policy.json", Path("policy.json").read_text("utf-8"))):
    Path(name).write_bytes(text.replace("\\n", "\\r\\n").encode("utf-8"))
assert bd.load("policy.json").arms == (0, 1)
bandanna("verify", "certificate.json")
bandanna("--quiet", "simulate", "log.csv", "--arm", "arm", "--outcome", "outcome",
         "--epsilon", "1", "--algorithms", "one-bit", "--replicates", "2")
bandanna("--quiet", "study", "run", "study.toml", "-o", "results")
"""
    assert "yes: the guarantee follows from the numbers" in run(code, folder)
    assert (folder / "results").is_dir()


def test_what_is_saved_has_the_same_bytes_everywhere(folder: Path) -> None:
    """Line ends are not the system's: a file moves from one to another unchanged."""
    code = """
import bandanna as bd
bd.PrivateBandit(2, 0.5, 1000).save("policy.json")
"""
    run(code, folder)
    assert b"\r" not in (folder / "policy.json").read_bytes()
    assert json.loads((folder / "policy.json").read_text("utf-8"))


@pytest.mark.slow
def test_the_service_answers(folder: Path) -> None:
    code = """
from pathlib import Path
from fastapi.testclient import TestClient
from bandanna._core.extras import EXTRAS
from bandanna.service.app import make_app
from bandanna.service.core import Core
from bandanna.service.settings import settings_beside

with TestClient(make_app(Core(settings_beside(str(Path("here.db").absolute()))))) as http:
    print(http.get("/healthz").status_code)
"""
    assert run(code, folder) == "200\n"
