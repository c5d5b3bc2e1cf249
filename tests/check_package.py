"""Try the wheel as someone does who has just installed it: ``make package``.

It goes into an empty environment. What it depends on is borrowed from the environment this runs
in, so that nothing is downloaded; the package itself is not. Then what is installed on request only
is taken away, and everything but studies and reports must still work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

OPTIONAL = (
    "alembic",
    "altair",
    "cryptography",
    "distributed",
    "fastapi",
    "httptools",
    "httpx",
    "jinja2",
    "joblib",
    "openfeature.contrib.provider.ofrep",
    "openfeature.track",
    "polars",
    "prometheus_client",
    "psycopg",
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
for _ in range(10):
    bandit.observe(bandit.decide(), loss=0.3)
assert bandit.released and bandit.guarantee.epsilon == 0.5
Path("certificate.json").write_text(json.dumps(bandit.certificate()))
"""


def check(dist: Path) -> None:
    """Install the wheel and use it."""
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
        assert "yes" in run([bandanna, "verify", "certificate.json"], folder)
        assert "pip install 'bandanna[studies]'" in run(study, folder, code=2)
    print(f"{wheel.name} and {source.name}: installed, complete and working")


def assert_complete(wheel: Path) -> None:
    """Require every file of the package, data and py.typed included."""
    package = ROOT / "src"
    files = [path for path in package.rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = {str(path.relative_to(package)) for path in files} - names
    assert not missing, f"not in the wheel: {sorted(missing)}"


def clean_environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with the wheel alone, that can borrow what it depends on."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel.resolve())], folder)
    (site,) = folder.glob("lib/python*/site-packages")
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
