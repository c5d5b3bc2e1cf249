"""Try both packages as someone does who has just installed them: ``make package``.

The library goes into an empty environment. What it depends on is borrowed from the environment this
runs in, so that nothing is downloaded; the package itself is not. Then what is installed on request
only is taken away, and everything but reports must still work. The client gets an
environment with httpx and what that needs, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]

OPTIONAL = (
    "alembic",
    "altair",
    "cryptography",
    "distributed",
    "duckdb",
    "fastapi",
    "httptools",
    "httpx",
    "ibis",
    "jinja2",
    "openfeature.contrib.provider.ofrep",
    "openfeature.track",
    "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry.instrumentation.fastapi",
    "opentelemetry.sdk",
    "prometheus_client",
    "psycopg",
    "pyarrow",
    "sklearn",
    "sqlalchemy",
    "uvicorn",
    "uvloop",
    "vl_convert",
)
STUDY = """
[study]
replicates = 2
[grid]
algorithm = ["uniform"]
environment = ["trial"]
rounds = [50]
"""
SMOKE = """
import json, sys
from importlib import metadata, resources
from pathlib import Path
import bandanna as bd

home = Path(bd.__file__).parent
assert home.is_relative_to(sys.prefix), f"not the wheel: {home}"
assert bd.__version__ == metadata.version("bandanna") == sys.argv[1]
assert (home / "py.typed").exists()
assert len(bd.environments.trial_outcomes()[0]) == 2139
bandit = bd.PrivateBandit(arms=["a", "b"], epsilon=0.5, rounds=1000)
for _ in range(1000):
    bandit.observe(bandit.decide(), loss=0.3)
assert bandit.released and bandit.guarantee.epsilon == 0.5
Path("certificate.json").write_text(json.dumps(bandit.certificate()))
"""

CLIENT = """
import sys
from bandanna_client import AsyncClient, Client, ServiceError
try:
    Client("http://127.0.0.1:9", "none", patience=0.1).experiment("none").decide()
except ServiceError as error:
    assert "did not answer" in str(error)
else:
    raise AssertionError
assert not {"numpy", "numba", "bandanna"} & set(sys.modules)
"""
LARGEST_CLIENT = 15e6
"""Bytes of the client with all that it needs."""


def check(dist: Path) -> None:
    """Install both packages and use them."""
    check_library(dist)
    check_client(dist)


def check_client(dist: Path) -> None:
    """Install the client beside httpx alone, and use it."""
    (wheel,) = dist.glob("bandanna_client-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        env = Path(folder) / "env"
        python = clean_environment(env, wheel, borrow=False)
        (site,) = env.glob("lib/python*/site-packages")
        for name in needed_by("httpx"):
            for file in metadata.files(name) or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    target = site / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(str(file.locate()), target)
        size = sum(path.stat().st_size for path in site.rglob("*") if path.suffix != ".pyc")
        assert size < LARGEST_CLIENT, f"{size / 1e6:.1f} MB"
        run([str(python), "-I", "-c", CLIENT], folder)
    print(f"{wheel.name}: installed and working, {size / 1e6:.1f} MB with all it needs")


def needed_by(package: str) -> set[str]:
    """Return a package and all that it needs, as installed here."""
    found, ahead = set(), [package]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            for text in metadata.requires(name) or ():
                wanted = re.match(r"[A-Za-z0-9._-]+", text)
                if wanted and "extra ==" not in text and installed(wanted[0]):
                    ahead.append(wanted[0])
    return found


def installed(name: str) -> bool:
    """Whether a package is installed here: what only other Python versions need is not."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def check_library(dist: Path) -> None:
    """Install the library's wheel and use it."""
    (wheel,) = dist.glob("bandanna-*.whl")
    (source,) = dist.glob("bandanna-*.tar.gz")
    version = wheel.name.split("-")[1]
    assert source.name == f"bandanna-{version}.tar.gz", "one version for both"
    assert_complete(wheel)
    with tempfile.TemporaryDirectory() as folder:
        python = clean_environment(Path(folder) / "env", wheel)
        bandanna = str(python.with_name("bandanna"))
        (Path(folder) / "study.toml").write_text(STUDY, encoding="utf-8")
        study = [bandanna, "study", "run", "study.toml", "-o", "results"]
        assert "1 cells run" in run(study, folder)
        run([bandanna, "study", "report", "results", "-o", "report.html"], folder)
        take_away_extras(Path(folder) / "env")
        run([str(python), "-I", "-c", SMOKE, version], folder)
        assert "simulate" in run([bandanna, "--help"], folder)
        assert run([bandanna, "--version"], folder) == f"bandanna {version}\n"
        doctor = run([bandanna, "doctor"], folder)
        assert "extra report: needs altair, jinja2, vl-convert-python: pip install" in doctor
        assert doctor.endswith("all that is needed works\n")
        assert "yes" in run([bandanna, "verify", "certificate.json"], folder)
        assert "1 cells run" in run([*study[:-1], "again"], folder)
        log = ["--arm", "plan", "--outcome", "visits", "--epsilon", "1"]
        (Path(folder) / "log.csv").write_text("plan,visits\n" + "A,1\nB,0\n" * 50, encoding="utf-8")
        assert "epsilon = 1" in run([bandanna, "answer", "log.csv", *log], folder)
        assert "Clone the repository" in run([bandanna, "reproduce", "--list"], folder, code=2)
    print(f"{wheel.name} and {source.name}: installed, complete and working")


def assert_complete(wheel: Path) -> None:
    """Require every file of the package, data and py.typed included."""
    package = ROOT / "src"
    files = [path for path in package.rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = {str(path.relative_to(package)) for path in files} - names
    assert not missing, f"not in the wheel: {sorted(missing)}"
    (bill,) = (name for name in names if ".dist-info/sboms/" in name)
    named = json.loads(zipfile.ZipFile(wheel).read(bill))
    assert named["bomFormat"] == "CycloneDX"
    assert {"actg175", "numba", "opendp"} <= {part["name"] for part in named["components"]}


def clean_environment(folder: Path, wheel: Path, *, borrow: bool = True) -> Path:
    """Make an environment with the wheel alone, that may borrow what it depends on."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel.resolve())], folder)
    (site,) = folder.glob("lib/python*/site-packages")
    if borrow:
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return python


def take_away_extras(folder: Path) -> None:
    """Let nothing import what is installed on request only."""
    (site,) = folder.glob("lib/python*/site-packages")
    line = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))"
    (site / "bare.pth").write_text(line, encoding="utf-8")


def run(command: list[str], folder: str | Path, code: int = 0) -> str:
    """Run a command that must end with this code; returns what it printed."""
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env={"PATH": os.defpath}
    )
    assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


if __name__ == "__main__":
    check(Path(sys.argv[1]))
