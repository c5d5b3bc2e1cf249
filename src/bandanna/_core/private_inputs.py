"""Errors that carry nothing of what a function was given.

What people call with feedback, or with columns of it, may fail anywhere inside, also in other
libraries. An error keeps the frames it came through, whose variables error reporters show, and the
errors it follows from; and messages of other libraries repeat values. ``private_inputs`` takes all
of that away and keeps Bandanna's own messages, which repeat nothing private.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from bandanna._core.types import BandannaError, without_frames

P = ParamSpec("P")
R = TypeVar("R")


def private_inputs(function: Callable[P, R]) -> Callable[P, R]:
    """Let no error of a function carry what it was given.

    Examples
    --------
    >>> @private_inputs
    ... def half(number):
    ...     return float(number) / 2
    >>> half("4.5 visits")
    Traceback (most recent call last):
    bandanna._core.types.BandannaError: half failed with a ValueError, at line ...
    """
    return _with(function, lambda error: _told(error, function.__name__))


def private_feedback(function: Callable[P, R]) -> Callable[P, R]:
    """Let no error of a function carry its frames; what fails inside knows no feedback."""
    return _with(function, without_frames)


def _with(
    function: Callable[P, R], shown: Callable[[BaseException], BaseException]
) -> Callable[P, R]:
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            failed = shown(error)
        del args, kwargs
        try:
            raise failed
        finally:
            del failed

    return call


def _told(error: BaseException, name: str) -> BaseException:
    """Return an error that may be shown."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = isinstance(error, BandannaError) or not isinstance(error, Exception)
    if ours or isinstance(error, MemoryError) or len(frames) < 2:  # refused by Python: a keyword
        return without_frames(error)
    at = frames[-1]
    return BandannaError(
        f"{name} failed with a {type(error).__name__}, at line {at.lineno} of "
        f"{Path(at.filename).name}. What it says is left out, as it may repeat private values."
    )
