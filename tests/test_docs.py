"""What README and docs say, happens: code runs and prints what is shown, commands exist."""

from __future__ import annotations

import doctest
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.cli import app
from tests.pages import (
    DOCS,
    OTHERS,
    PROTOCOL,
    README,
    ROOT,
    anchors,
    blocks,
    links,
    name_of,
    sessions,
    shown_commands,
)
from tests.soak import mostly_slow

LONG = ("audits", "experts", "learners", "people", "studies")
"""Pages whose programs draw a lot."""
RUN = [README, PROTOCOL, *DOCS]
CHANCE = (README, ROOT / "docs" / "tutorial.md")
"""Pages that show what one run printed, whose numbers differ from run to run. With REWRITE_PAGES=1
the test writes what it printed into them."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]\d+)?")
quick = [page for page in RUN if page.stem not in LONG]
pages = pytest.mark.parametrize("page", mostly_slow(RUN, quick), ids=name_of)
all_pages = pytest.mark.parametrize("page", [README, *DOCS, *OTHERS], ids=name_of)


@pages
def test_what_is_shown_happens(
    page: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "trial.csv", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed, happened = "", []
    chance = page in CHANCE
    # One run decides which words are shown: its noise is the test's, and its arms are drawn so.
    monkeypatch.setattr("bandanna.policy.policy.new_stream", lambda seed: new_stream(seed or 1))
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.body, name_of(page), "exec"), namespace)
            printed = capsys.readouterr().out
        elif block.language == "":
            assert block.follows == "python", f"output of what? Call it text:\n{block.body}"
            happened.append((block.body, printed))
        elif block.language == "toml":
            tomllib.loads(block.body)
        elif block.language == "console":
            for command, output in sessions(block):
                program, *arguments = shlex.split(command, comments=True)
                if output and program == "bandanna":
                    happened.append((output, CliRunner().invoke(app, arguments).output))
    if chance and os.environ.get("REWRITE_PAGES"):
        rewrite(page, happened)
        return
    for shown, printed in happened:
        assert_shown(shown, printed, numbers=not chance)


def assert_shown(shown: str, printed: str, *, numbers: bool = True) -> None:
    """Compare without spaces at the ends of lines; ``...`` stands for anything.

    Without ``numbers`` any number stands for any other, and any space for any other.
    """
    want, got = (
        "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n"))
        for text in (shown, printed)
    )
    if not numbers:
        want, got = (re.sub(r"[ ─]+", " ", NUMBER.sub("#", text)) for text in (want, got))
    assert doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS), (
        f"printed:\n{got}\nREWRITE_PAGES=1 writes it into pages that show one run."
    )


def rewrite(page: Path, happened: list[tuple[str, str]]) -> None:
    """Write what was printed in the place of what was shown, block by block."""
    text, done = page.read_text("utf-8"), 0
    for shown, printed in happened:
        assert shown, f"{name_of(page)} shows an empty output: write ... there"
        start = text.index(f"\n{shown}```", done) + 1
        lines = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))
        text = f"{text[:start]}{lines}\n{text[start + len(shown) :]}"
        done = start + len(lines)
    page.write_text(text, "utf-8")


@all_pages
def test_commands_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    for program, *arguments in shown_commands(page):
        if program == "make":
            variables = {part.partition("=")[0] for part in arguments if "=" in part}
            assert all(f"$({name})" in makefile for name in variables), arguments
            assert {part for part in arguments if "=" not in part} <= targets, arguments
        elif program == "bandanna":
            assert_understood(arguments)
        elif arguments[0].endswith(".py"):
            assert (ROOT / arguments[0]).exists(), arguments


@cache
def program() -> Any:
    """Return the command line, made once: it has many options."""
    return typer.main.get_command(app)


def assert_understood(arguments: list[str]) -> None:
    """Let the command line read its arguments, down to the subcommand, without running it."""
    command = program()
    context = None
    while hasattr(command, "resolve_command"):
        if not arguments:
            return
        if arguments[0].startswith("-"):
            assert any(arguments[0] in option.opts for option in command.params), arguments
            return
        context = command.context_class(command, parent=context, info_name="bandanna")
        _, command, arguments = command.resolve_command(context, list(arguments))
    try:
        command.make_context(command.name, list(arguments), parent=context)
    except typer.BadParameter as error:
        # A sentence may name a command without saying what it is given.
        if type(error).__name__ != "MissingParameter":
            raise


@all_pages
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize(
    "subpackage", ["", "contextual", "device", "environments", "learners", "privacy"]
)
def test_the_reference_names_everything_public(subpackage: str) -> None:
    module = import_module(f"bandanna.{subpackage}".rstrip("."))
    folder = ROOT / "docs" / "reference"
    subpackages = {"contextual", "device", "environments", "learners", "privacy"}
    pages = [folder / f"{subpackage}.md"] if subpackage else sorted(folder.glob("*.md"))
    text = "".join(
        one.read_text("utf-8") for one in pages if subpackage or one.stem not in subpackages
    )
    named = set(re.findall(r"^\.\. (?:auto\w+|data):: (\w+)$", text, flags=re.MULTILINE))
    public = set(module.__all__) - {
        *("__version__", "contextual", "environments", "learners", "privacy")
    }
    assert named == public


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 150


JARGON = (
    "a/b test|advice|arm|audit|bandit|batch|bound|certificate|central|clip|confidence "
    "sequence|context|control|conversion|decision|delta|differential privacy|epsilon|"
    "expert|exposure|fact|feature|feedback|guarantee|guard|guardrail|interval|laplace|"
    "learner|ledger|lift|local model|log|loss|mechanism|net|noise|normal "
    "approximation|outcome|phase|policy|post-processing|propensity|quantile|range|"
    "regret|release|reward|round|scorecard|sensitivity|simulation|slot|standard error|"
    "steady|study|uniform|vacuous|warehouse"
)
"""Words that someone who is new to bandits, or to privacy, may not know."""


def terms_on(pages: list[Path]) -> set[str]:
    """Return the technical words that a reader of some pages meets, also in what is printed."""
    text = "\n".join(page.read_text("utf-8") for page in pages)
    text = re.sub(r"^```(python|{).*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)|`[^`\n]+`", "", text)
    words = JARGON.split("|")
    return {word for word in words if re.search(rf"\b{word}(s|es)?\b", text, re.IGNORECASE)}


def test_a_newcomer_meets_few_terms_and_the_glossary_has_them() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8").lower()
    explained = ", ".join(re.findall(r"^\*\*(.+?)\*\*", glossary, flags=re.MULTILINE)).split(", ")
    met = terms_on([README, ROOT / "docs" / "index.md", ROOT / "docs" / "tutorial.md"])
    assert {word for word in met if not any(word in term for term in explained)} == set()
    assert len(met) <= 35, sorted(met)
    assert len(met) > 20, "it finds them"
    assert len(explained) == len(set(explained))


def test_wrong_pages_are_found(tmp_path: Path) -> None:
    """The checks above can fail."""
    for wrong in ("plan --armz 3", "plot", "audit --batch many"):
        with pytest.raises(Exception, match=r"No such|valid integer"):
            assert_understood(wrong.split())
    with pytest.raises(AssertionError):
        assert_shown("regret 12\n", "regret 13\n")
    assert_shown("regret ... of\n", "regret 13  of  \n")
    assert_shown("12 of  3.5%\n", "13 of 1,200%\n", numbers=False)
    with pytest.raises(AssertionError):
        assert_shown("12 better\n", "12 worse\n", numbers=False)
    page = tmp_path / "page.md"
    page.write_text(
        "# One `x`, two\n\n[a](b.md#c)\n\n```\nout\n```\n\n    bandanna plan \\\n      --x\n"
    )
    assert links(page) == ["b.md#c"]
    assert anchors(page) == {"one-x-two"}
    assert blocks(page)[0].follows is None
    assert list(shown_commands(page)) == [["bandanna", "plan", "--x"]]


def test_the_version_is_the_packages() -> None:
    assert bd.__version__ in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_sites_check_finds_what_is_wrong(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "style.css").write_text("@import url('https://fonts.example/a.css');")
    (site / "b.html").write_text("<h1 id='top'>b</h1>")
    (site / "a.html").write_text(
        "<link href='style.css'><script src='//cdn.example/x.js'></script><a href='b.html#top'>"
        "<a href='b.html#nowhere'><a href='c.html'><a href='https://elsewhere.example'>"
        "<p>a `b</p><code>`</code>"
    )
    script = [sys.executable, str(ROOT / "docs" / "check_site.py"), str(site)]
    done = subprocess.run(script, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "a.html loads //cdn.example/x.js",
        "a.html has torn markup: a `b",
        "a.html links to b.html#nowhere, which has no such place",
        "a.html links to c.html, which does not exist",
        "style.css loads https://fonts.example/a.css",
    ]


def test_every_public_name_has_a_page_with_an_example() -> None:
    folder = ROOT / "docs" / "reference"
    for name in bd.__all__:
        found = getattr(bd, name)
        if isinstance(found, ModuleType | str) or issubclass_of_error(found):
            continue
        assert f":: {name}\n" in (folder / f"{name}.md").read_text("utf-8")
        assert f"[`{name}`]({name}.md)" in (folder / "README.md").read_text("utf-8")
        assert ">>> " in str(found.__doc__), name


def issubclass_of_error(found: object) -> bool:
    """Whether it is an error or a warning: these share a page."""
    return isinstance(found, type) and issubclass(found, Exception)


GALLERY = sorted((ROOT / "examples" / "gallery").glob("*"))


def test_the_gallery_shows_every_program_and_its_picture() -> None:
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    shown = re.findall(r"\(images/gallery/([a-z-]+)\.svg\)", page)
    assert shown == re.findall(r"\.\./examples/gallery/([a-z-]+)\.py", page)
    kept = sorted((ROOT / "docs" / "images" / "gallery").glob("*"))
    assert sorted(shown) == [path.stem for path in GALLERY] == [path.stem for path in kept]


@pytest.mark.parametrize(
    "program", mostly_slow(GALLERY, GALLERY[:1]), ids=lambda program: program.stem
)
def test_a_program_of_the_gallery_draws(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program))
    assert [path.name for path in tmp_path.iterdir()] == [f"{program.stem}.svg"]
