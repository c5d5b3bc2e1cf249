"""Print everything that work on this project installs: dependencies, all extras, the dev group.

    python release/requirements.py > requirements.in

``make lock`` pins it. Tools that read dependency groups (uv, pip from 25.1) need no such list.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements(pyproject: Path = PYPROJECT) -> list[str]:
    """Return the requirements, each once; extras that name the project itself are left out."""
    data = tomllib.loads(pyproject.read_text("utf-8"))
    project = data["project"]
    found = set(project["dependencies"]) | set(data["dependency-groups"]["dev"])
    for extra in project["optional-dependencies"].values():
        found |= {entry for entry in extra if not entry.startswith(f"{project['name']}[")}
    return sorted(found)


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements()) + "\n")
