"""Write what every reproduction found, from its JSON file, as a page. ``make reproductions``."""

from __future__ import annotations

import json
from pathlib import Path

from bandanna._core.types import JSON
from research import REPRODUCTIONS

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results", HERE / "results.md"
STUDY = "algorithms"
HEAD = """# Reproductions

What every `bandanna reproduce` found with its full settings, run to the end once; `make
reproductions` runs them all and writes this page. The tables behind the verdicts are in
`research/results`, one JSON file each, with the settings that were used. "No" is a result like
any other: the claim does not hold as it was tested.
"""


def section(name: str) -> str:
    """Return a reproduction's verdicts, and of the study of algorithms also its table."""
    lines = [f"## {name}", "", f"{REPRODUCTIONS[name][0].upper()}{REPRODUCTIONS[name][1:]}.", ""]
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return "\n".join([*lines, "Not run to the end yet.", ""])
    found: JSON = json.loads(file.read_text("utf-8"))
    lines += [f"    bandanna reproduce {name}", ""]
    if name == STUDY:
        lines += [*table(list(found["rows"][0]), [list(row.values()) for row in found["rows"]]), ""]
    verdicts = [
        [one["claim"], one["measured"], one["tolerance"], "yes" if one["holds"] else "no"]
        for one in found["verdicts"]
    ]
    lines += [*table(["claim", "measured", "allowed for", "holds"], verdicts), ""]
    return "\n".join(lines)


def table(headings: list[str], rows: list[list[str]]) -> list[str]:
    """Return a table in Markdown."""
    cells = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in cells]


if __name__ == "__main__":
    PAGE.write_text("\n".join([HEAD, *map(section, REPRODUCTIONS)]).rstrip() + "\n", "utf-8")
