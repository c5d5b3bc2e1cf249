"""What is in ``deploy/``: tried as far as is possible without a container runtime."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def options() -> set[str]:
    """Return what ``bandanna serve`` understands."""
    done = subprocess.run(
        [sys.executable, "-m", "bandanna", "serve", "--help-all"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin", "COLUMNS": "200"},
    )
    return set(re.findall(r"--[a-z-]+", done.stdout))


@pytest.mark.slow
def test_the_image_is_built_from_the_files_it_copies(tmp_path: Path) -> None:
    """A wheel is made from exactly these files, installed, and holds the module for devices."""
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        *sources, target = line.split()
        for name in sources:
            to = tmp_path / "src" / (name if target == "./" else target)
            to.parent.mkdir(parents=True, exist_ok=True)
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "node_modules")
                shutil.copytree(source, to, symlinks=True, ignore=ignored)
            else:
                shutil.copy(source, to)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    made = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path / "dist")]
    subprocess.run([*pip, "wheel", *made, str(tmp_path / "src")], check=True)
    (wheel,) = (tmp_path / "dist").glob("bandanna-*.whl")
    into = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(into), str(wheel)], check=True)
    program = (
        "import bandanna, bandanna.service.app as app, bandanna.device as device; "
        "assert 'export' in device.MODULE.read_text(); print(app.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(into), "PATH": "/usr/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(into))


def test_the_image_uses_the_versions_that_were_tested(tmp_path: Path) -> None:
    (command,) = re.findall(r"RUN (sed .*?) > /constraints.txt", DOCKERFILE)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, cwd=ROOT)
    pinned = done.stdout.splitlines()
    for name in ("uvicorn", "fastapi", "sqlalchemy", "hatchling", "opendp"):
        assert any(line.startswith(f"{name}==") for line in pinned), name
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[^ ]+", line) for line in pinned)


def test_whatever_is_deployed_is_started_with_options_that_exist() -> None:
    known = options()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    compose = (ROOT / "deploy" / "compose.yaml").read_text()
    (command,) = re.findall(r"command: (.*)$", compose, re.MULTILINE)
    unit = (ROOT / "deploy" / "bandanna.service").read_text()
    used = [*json.loads(entry), *json.loads(command), *re.findall(r"--[a-z-]+", unit)]
    assert {word for word in used if word.startswith("--")} <= known
    volumes = re.findall(r"^VOLUME (.*)$", DOCKERFILE, re.MULTILINE)
    assert json.loads(volumes[0]) == ["/data", "/guard"], "the guard is apart from the database"
    assert "StateDirectory=bandanna bandanna-guard" in unit
