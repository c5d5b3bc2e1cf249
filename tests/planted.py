"""A value that nobody prints by chance, and all that comes out of a call, to look for it in."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import bandanna

NUMBER = 0.7364518291
WHOLE = 7364518291
WORD = "planted7364518291"
MARK = "7364518291"
"""In all of them, however they are written."""
UNITS = str(round(NUMBER * 2**20))
"""The number as a loss on the grid."""

SOURCE = str(Path(bandanna.__file__).parent)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error, and all that it came from, shown or not."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in seen:
            seen.append(one)
            waiting += [one.__cause__, one.__context__]
    yield from seen


def variables(trace: TracebackType | None) -> str:
    """Return what an error reporter would show of the frames in Bandanna."""
    found = []
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename.startswith(SOURCE):
            found += [f"{name} = {value!r}" for name, value in frame.f_locals.items()]
        trace = trace.tb_next
    return "\n".join(found)


def told_by(error: BaseException, *, frames: bool = True) -> str:
    """Return all that an error says, to people, logs and error reporters."""
    found = []
    for one in chain(error):
        found += [str(one), repr(one), repr(one.args), *getattr(one, "__notes__", [])]
        found += traceback.format_exception(type(one), one, one.__traceback__, chain=True)
        if frames:
            found.append(variables(one.__traceback__))
    return "\n".join(found)


def shown(result: object) -> str:
    """Return a result as text, as a page and as people look at it."""
    found = [repr(result), str(result)]
    for name in ("_repr_html_", "html", "summary", "sentence", "guarantee", "hint"):
        if hasattr(result, name):
            value = getattr(result, name)
            found.append(str(value() if callable(value) else value))
    return "\n".join(found)


def came_out(call: Callable[[], Any], *, frames: bool = True) -> tuple[str, bool]:
    """Return all that a call lets out but what is written to the terminal, and if it failed."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            said, failed = shown(call()), False
        except Exception as error:
            said, failed = told_by(error, frames=frames), True
    return said + "\n".join(str(one.message) for one in warned), failed
