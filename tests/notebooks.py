"""Run notebooks and keep what they show: ``python -m tests.notebooks examples/*.ipynb``.

The tutorial's notebook is made from its page first. A cell's printed text and the value of its
last line are kept, as Jupyter keeps them. Nothing but Bandanna is needed, and nothing is loaded
from a network.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from contextlib import chdir, nullcontext, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
TUTORIAL, TUTORIAL_PAGE = ROOT / "examples" / "tutorial.ipynb", ROOT / "docs" / "tutorial.md"

KINDS = ("image/svg+xml", "text/html", "text/plain")
"""How a value may be shown; all that it offers are kept."""


def of_page(page: Path) -> dict[str, Any]:
    """Return a page of the guide as a notebook that was not run: its text, and its Python code."""
    cells: list[dict[str, Any]] = []
    text = page.read_text("utf-8")
    parts = re.split(r"^```(\w*)\n(.*?)^```\n", text, flags=re.MULTILINE | re.DOTALL)
    for words, language, body in zip(
        parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True
    ):
        if words.strip():
            linked = re.sub(r"\]\((\w[\w/-]*\.(?:md|png))", r"](../docs/\1", words.strip())
            cells.append({"cell_type": "markdown", "metadata": {}, "source": linked})
        if language == "python":
            code: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}}
            cells.append({**code, "outputs": [], "source": body.strip()})
    for number, cell in enumerate(cells):
        cell |= {"id": f"cell-{number}", "source": cell["source"].splitlines(keepends=True)}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def bundle(value: object) -> dict[str, list[str]]:
    """Return a value as notebooks show it, by kind."""
    if hasattr(value, "_repr_mimebundle_"):
        found = dict(value._repr_mimebundle_())
    else:
        found = {"text/plain": repr(value)}
        if hasattr(value, "_repr_html_"):
            found["text/html"] = value._repr_html_()
    return {kind: found[kind].splitlines(keepends=True) for kind in KINDS if kind in found}


def run_cell(source: str, namespace: dict[str, object], count: int) -> list[dict[str, Any]]:
    """Run a cell and return its outputs."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)  # a notebook is code
        if last is not None:
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        shown = {"data": bundle(value), "metadata": {}, "output_type": "execute_result"}
        outputs.append({**shown, "execution_count": count})
    return outputs


def run(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of a fresh run."""
    made = path.resolve() == TUTORIAL
    notebook = of_page(TUTORIAL_PAGE) if made else json.loads(path.read_text("utf-8"))
    namespace: dict[str, object] = {}
    count = 0
    # The tutorial writes a file; the other notebooks read from their folder.
    with TemporaryDirectory() as folder, chdir(folder) if made else nullcontext():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["outputs"] = run_cell("".join(cell["source"]), namespace, count)
                cell["execution_count"] = count
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = json.dumps(run(Path(name)), indent=1, ensure_ascii=False) + "\n"
        Path(name).write_text(text, "utf-8")
        print(f"ran {name}")
