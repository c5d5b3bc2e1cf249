"""The source tree is as docs/architecture.md shows it: no import cycles, every package named."""

from __future__ import annotations

import ast
import re
import warnings
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.pages import ROOT

PACKAGE = ROOT / "src" / "bandanna"
SOURCES = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
LONG = 600
"""Lines above which a file is worth a second look: it may hold more than one thought."""
MAP = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(text: str) -> set[str]:
    """Return what a file imports wherever that stands, inside functions too, but not for types."""
    tree = ast.parse(text)
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.filterwarnings("always")
def test_long_files_are_pointed_out() -> None:
    """A mirror, not a limit: a file holds one thought, whole."""
    lengths = {str(path.relative_to(PACKAGE)): text.count("\n") for path, text in SOURCES.items()}
    for name, lines in lengths.items():
        if lines > LONG:
            warnings.warn(f"{name} has {lines} lines: is it one thought?", stacklevel=1)


def test_no_circle_of_imports_hides_anywhere() -> None:
    modules = {module_name(path): text for path, text in SOURCES.items()}
    del modules["bandanna"]  # loads names when they are asked for
    graph = {name: (imports(text) & set(modules)) - {name} for name, text in modules.items()}
    assert len(graph) > 200
    assert circle(graph) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), "a circle would be seen"


def test_values_have_types() -> None:
    assert sum(len(re.findall(r"\bAny\b", text)) for text in SOURCES.values()) < 80


def test_every_room_and_every_file_of_the_hall_is_on_the_map() -> None:
    tree = MAP.partition("```none\n")[2].partition("```")[0]
    rooms = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert {name for name in rooms | files if name not in tree} == set()
    named = set(re.findall(r"^  (\w+/)|([\w.]+\.py)", tree, re.MULTILINE))
    shown = {room or file for room, file in named}
    known = rooms | {path.name for path in SOURCES}
    assert shown - known == set()


def test_the_walks_go_where_they_say() -> None:
    walks = MAP.partition(" walks\n")[2].partition("\n## ")[0]
    files = set(re.findall(r"`([\w/]+\.py)`", walks))
    assert len(files) > 10
    known = {str(path.relative_to(PACKAGE)) for path in SOURCES} | {path.name for path in SOURCES}
    assert files - known == set()
    everything = "\n".join(SOURCES.values())
    said = re.findall(r"`(\w+(?:\.\w+)?)`", walks)
    names = {name.rpartition(".")[2] for name in said if not name.endswith(".py")}
    gone = [name for name in sorted(names) if not re.search(rf"(class|def) {name}\b", everything)]
    assert gone == []
