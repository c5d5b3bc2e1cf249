"""Run notebooks and keep what they show: ``python -m tests.notebooks examples/*.ipynb``.

A cell's printed text and the value of its last line are kept, as Jupyter keeps them. Nothing but
Bandanna is needed, and nothing is loaded from a network.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

KINDS = ("image/svg+xml", "text/html", "text/plain")
"""How a value may be shown; all that it offers are kept."""


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
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    namespace: dict[str, object] = {}
    count = 0
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
