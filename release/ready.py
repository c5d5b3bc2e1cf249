"""Say whether what is in ``dist`` may be released: ``make release``. Nothing is published.

The README beside it says what to do with it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(dist: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield every reason not to release."""
    version = version_of(root)
    client = tomllib.loads((root / "clients/python/pyproject.toml").read_text("utf-8"))["project"]
    if client["version"] != version:
        yield f"clients/python/pyproject.toml has version {client['version']}, not {version}"
    if f"version: {version}\n" not in (root / "CITATION.cff").read_text("utf-8"):
        yield f"CITATION.cff does not name version {version}"
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    heading = re.search(rf"^## {re.escape(version)}, (.*)$", changes, re.MULTILINE)
    if heading is None:
        yield f"CHANGELOG.md has no heading '## {version}, {date.today().isoformat()}'"
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[1]):
        yield f"CHANGELOG.md says {heading[1]!r} of {version} where the date should be"
    for project in (".", "clients/python"):
        table = tomllib.loads((root / project / "pyproject.toml").read_text("utf-8"))["project"]
        if not table.get("urls"):
            yield f"{project}/pyproject.toml has no [project.urls]: which addresses are public?"
    names = {path.name for path in dist.iterdir()}
    for package in ("bandanna", "bandanna_client"):
        for end in ("-py3-none-any.whl", ".tar.gz"):
            if f"{package}-{version}{end}" not in names:
                yield f"{dist} lacks {package}-{version}{end}: make package"
    if git(root, "status", "--porcelain"):
        yield "there are changes that are not committed"
    tag = f"v{version}"
    if tag not in git(root, "tag", "--points-at", "HEAD").split():
        yield f"the commit is not tagged: git tag -s {tag}"


def version_of(root: Path) -> str:
    """Return the library's version."""
    text = (root / "src/bandanna/version.py").read_text("utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    assert found is not None, text
    return found[1]


def git(root: Path, *arguments: str) -> str:
    """Return what git answers."""
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    return done.stdout


def main(dist: str) -> int:
    """List the problems."""
    found = list(problems(Path(dist)))
    for problem in found:
        print(f"not ready: {problem}")
    if not found:
        print(f"ready: {version_of(ROOT)} may be published as release/README.md says")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
