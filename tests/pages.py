"""The pages people read, taken apart: what they show as code, commands and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("**/*.md"))
PROTOCOL = ROOT / "clients" / "device" / "PROTOCOL.md"
OTHERS = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "benchmarks" / "tuning.md",
    ROOT / "release" / "README.md",
    ROOT / "research" / "corrections.md",
    ROOT / "research" / "regimes.md",
    ROOT / "research" / "results.md",
    ROOT / "research" / "tight-constants.md",
    ROOT / "tests" / "mutants.md",
    ROOT / "clients" / "device" / "README.md",
    PROTOCOL,
    ROOT / "clients" / "python" / "README.md",
]


class Block(NamedTuple):
    """A fenced block; ``follows`` is the block right before it, if only blank lines lie between."""

    language: str
    body: str
    follows: str | None


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found: list[Block] = []
    end, before = -1, ""
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        close = end >= 0 and not text[end : match.start()].strip()
        found.append(Block(match[1], match[2], before if close else None))
        end, before = match.end(), match[1]
    return found


def sessions(block: Block) -> Iterator[tuple[str, str]]:
    """Give every command of a console block with the output shown below it."""
    for session in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, output = _joined(session).partition("\n")
        yield command, output


def shown_commands(page: Path) -> Iterator[list[str]]:
    """Give all that a page tells people to type: in console blocks, indented, or in a sentence."""
    text = page.read_text("utf-8")
    consoles = [block for block in blocks(page) if block.language == "console"]
    typed = [command for block in consoles for command, _ in sessions(block)]
    typed += re.findall(r"^ {4,}((?:bandanna|make|python) .*)$", _joined(text), flags=re.MULTILINE)
    typed += [" ".join(found.split()) for found in re.findall(r"`((?:bandanna|make) [^`]+)`", text)]
    for command in typed:
        yield shlex.split(command, comments=True)


def _joined(text: str) -> str:
    return re.sub(r"\\\n\s*", "", text)


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
