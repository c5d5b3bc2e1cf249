"""Take the client's files from the library, of which this package is a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ClientFiles(BuildHookInterface[Any]):
    """Put ``src/bandanna/_client`` of the repository into the package as ``bandanna_client``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files; a source distribution has them already."""
        library = Path(self.root, "..", "..", "src", "bandanna", "_client").resolve()
        if not library.is_dir():
            return
        where = "src/bandanna_client" if self.target_name == "sdist" else "bandanna_client"
        for path in sorted(library.iterdir()):
            if path.suffix == ".py" or path.name == "py.typed":
                build_data["force_include"][str(path)] = f"{where}/{path.name}"
