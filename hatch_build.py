"""Put a software bill of materials into the wheel (PEP 770), in CycloneDX's form.

It names what the wheel holds, the data of others in it, and the libraries it asks for, with the
versions that requirements.lock pins and the tests ran with. The same sources give the same bytes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = re.compile(r"[A-Za-z0-9._-]+")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
DATA = {
    "type": "data",
    "bom-ref": "actg175",
    "name": "actg175",
    "description": "Outcomes of AIDS Clinical Trials Group Study 175, from lifelines 0.30.3",
    "copyright": "Copyright (c) 2014 Cameron Davidson-Pilon",
    "licenses": [{"license": {"id": "MIT"}}],
}


class BillOfMaterials(BuildHookInterface[Any]):
    """Write the bill beside the build and name it to the builder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write it."""
        path = Path(self.root, "build", "bandanna.cdx.json")
        path.parent.mkdir(exist_ok=True)
        metadata = self.metadata.core
        pinned = dict(PINNED.findall(Path(self.root, "requirements.lock").read_text("utf-8")))
        bill = bill_of(metadata.name, self.metadata.version, metadata.dependencies, pinned)
        path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8", newline="\n")
        build_data["sbom_files"].append(str(path.relative_to(self.root)))


def bill_of(
    name: str, version: str, dependencies: list[str], pinned: dict[str, str]
) -> dict[str, Any]:
    """Return the bill of a version, from its dependencies and the versions they are pinned to."""
    asked = {found[0]: text for text in dependencies if (found := NAME.match(text))}
    libraries = [
        {
            "type": "library",
            "bom-ref": library,
            "name": library,
            "version": pinned[library],
            "purl": f"pkg:pypi/{library}@{pinned[library]}",
            "description": f"not in this package; installed beside it, as {asked[library]}",
            "scope": "required",
        }
        for library in sorted(asked)
    ]
    own = {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [DATA, *libraries],
        "dependencies": [
            {"ref": name, "dependsOn": ["actg175", *sorted(asked)]},
            *({"ref": one, "dependsOn": []} for one in ("actg175", *sorted(asked))),
        ],
    }
