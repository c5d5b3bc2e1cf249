"""Small pieces of HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def paragraph(text: str) -> str:
    """Return a paragraph, or nothing for no text."""
    return f"<p>{escape(text)}</p>" if text else ""


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; every text is escaped.

    Examples
    --------
    >>> table("Two", ["a"], [["<b>"]])
    '<table><caption>Two</caption><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = [f"<caption>{escape(caption)}</caption>" if caption else ""]
    if headings:
        lines.append(_row("th", headings))
    return f"<table>{''.join([*lines, *(_row('td', row) for row in rows)])}</table>"


def _row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
