"""Ask pip whether every locked dependency has a wheel for each Python version that we name.

    python release/check_wheels.py [3.12 3.13 3.14]

Nothing is installed; pip resolves each pinned version for another interpreter and platform, and
downloads what it must look into. Only Python 3.11 can be run where the tests run, so this is all
that is known of the others there: the packages can be installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64")
PINNED = re.compile(r"^([A-Za-z0-9._-]+(?:\[[a-z,-]+\])?==[^ ;\\]+)", re.MULTILINE)
MISSING = re.compile(r"No matching distribution found for (\S+)")


def versions() -> list[str]:
    """Return the Python versions that the package names, but for the one that is tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [text.rpartition(" ")[2] for text in project["classifiers"] if "Python :: 3." in text]
    return [name for name in named if name != "3.11"]


def locked() -> list[str]:
    """Return every pinned requirement of the lock file, without its hashes."""
    return PINNED.findall((ROOT / "requirements.lock").read_text("utf-8"))


def missing(version: str, requirements: list[str]) -> list[str]:
    """Return the requirements that have no wheel for a Python version."""
    wanted, lacking = list(requirements), []
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]
    command += ["--implementation", "cp", "--python-version", version]
    command += [part for name in PLATFORMS for part in ("--platform", name)]
    with tempfile.TemporaryDirectory() as folder:
        while wanted:
            done = subprocess.run(
                [*command, "--target", folder, *wanted], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                break
            found = MISSING.search(done.stderr)
            if found is None or found[1] not in wanted:
                raise SystemExit(done.stderr)
            lacking.append(found[1])
            wanted.remove(found[1])
    return lacking


def main() -> int:
    """Say for each version what has no wheel."""
    requirements, bad = locked(), False
    for version in sys.argv[1:] or versions():
        lacking = missing(version, requirements)
        bad = bad or bool(lacking)
        text = "no wheel of " + ", ".join(lacking) if lacking else "a wheel of each"
        print(f"Python {version}: {len(requirements)} locked packages, {text}", flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
