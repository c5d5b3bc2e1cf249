"""Mutation testing of the privacy code: which planted faults no test finds.

``make mutants`` plants them with mutmut and ends with this report. As a plugin of pytest (``-p
tests.mutants``) this module gives mutmut 3.8 an attribute that it expects and pytest 9.2 lacks.

    python -m tests.mutants      # in the environment that has mutmut
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FOUND, SURVIVED, NOT_RUN = (1, 3, 24, -24, 36, 152, 255), 0, (5, 33, None)
WORDS = re.compile(r'raise \w+Error\(.*|(?<=\()(?:None|"[^"]*")(?=[,)])|f?"[^"]*"')
"""What differs only in the words that a user reads."""

if not hasattr(pytest.Item, "_nodeid"):
    pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]


def results(folder: Path) -> Iterator[tuple[str, dict[str, int | None]]]:
    """Return, for each mutated module, how the tests ended for each of its mutants."""
    for path in sorted(folder.rglob("*.py.meta")):
        ended = json.loads(path.read_text("utf-8"))["exit_code_by_key"]
        if ended:
            yield path.name.removesuffix(".py.meta"), ended


def change(name: str) -> tuple[str, str]:
    """Return the lines that a mutant replaces, and what replaces them."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # type: ignore[import-not-found]

    lines = get_diff_for_mutant(name).splitlines()[2:]
    before, after = (
        "\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return before, after


def only_words(before: str, after: str) -> bool:
    """Whether a change concerns nothing but the words of a message."""
    return WORDS.sub("", before) == WORDS.sub("", after)


def main() -> None:
    """Print what was planted and found in each module, then what was not found."""
    left: dict[str, list[tuple[str, str]]] = defaultdict(list)
    totals: Counter[str] = Counter()
    print("| module | mutants | found | words of a message | not found | not run |")
    print("|---|---|---|---|---|---|")
    for module, ended in results(Path("mutants")):
        counts: Counter[str] = Counter(mutants=len(ended))
        for name, code in ended.items():
            if code in FOUND:
                counts["found"] += 1
            elif code in NOT_RUN:
                counts["not run"] += 1
            elif only_words(*(changed := change(name))):
                counts["words"] += 1
            else:
                counts["not found"] += 1
                left[f"{module}.{name.rpartition('.')[2].rpartition('__mutmut_')[0]}"].append(
                    changed
                )
        totals += counts
        print(_row(module, counts))
    print(_row("all", totals))
    for function, changes in left.items():
        print(f"\n{function}")
        for before, after in changes:
            print(f"- {before}\n+ {after}")


def _row(name: str, counts: Counter[str]) -> str:
    columns = ("mutants", "found", "words", "not found", "not run")
    return f"| {name} | {' | '.join(f'{counts[column]:,}' for column in columns)} |"


if __name__ == "__main__":
    main()
