"""Moments in a column of a log, so that rows can be put in order of time.

Dates that are written as text sort by the alphabet, which is the order of time only where the year
comes first: 01/02/2024 would come before 31/01/2024. So other dates are read, and what could be
read in two ways is refused. Errors name rows, not what is in them.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import InputError

YEAR_FIRST = re.compile(r"\d{4}(\D|\d{2,}|$)")
PARTED = re.compile(r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})(?!\d)(.*)", re.DOTALL)
YEAR_LAST = re.compile(
    r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?:[ T,]+(\d{1,2}:\d{2}(?::\d{2}.*)?))?"
)


def moments(column: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return something that sorts as time does, or refuse what cannot be ordered.

    Examples
    --------
    >>> import numpy as np
    >>> when = np.array(["31/01/2024", "01/02/2024", "15/01/2024"], dtype=object)
    >>> np.argsort(moments("day", when)).tolist()
    [2, 0, 1]
    """
    if values.dtype.kind not in "OUS":
        return values
    if not all(isinstance(value, str | bytes) for value in values):
        return values  # dates of Python's own, which sort
    texts = [value.decode() if isinstance(value, bytes) else value.strip() for value in values]
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        pass
    if all(YEAR_FIRST.match(text) for text in texts):
        return np.array([_padded(text) for text in texts])
    parts = [YEAR_LAST.fullmatch(text) for text in texts]
    if None in parts:
        raise InputError(
            f"column {column!r} cannot be put in order of time: row {parts.index(None) + 1:,} has "
            f"neither a number nor a date. Write dates with the year first, such as 2024-01-31."
        )
    found = [(int(part[1]), int(part[2]), part[3], part[4] or "") for part in parts if part]
    days_first = any(first > 12 for first, *_ in found)
    months_first = any(second > 12 for _, second, *_ in found)
    if days_first == months_first:
        raise InputError(
            f"column {column!r} has dates with the year last, and nothing tells days from months. "
            f"Write them with the year first, such as 2024-01-31."
        )
    return np.array(
        [
            f"{year}-{second if days_first else first:02}-{first if days_first else second:02} "
            f"{_hour(hour)}"
            for first, second, year, hour in found
        ]
    )


def _padded(text: str) -> str:
    """Write 2024-1-9 as 2024-01-09; leave the rest as it is."""
    found = PARTED.fullmatch(text)
    if found is None:
        return text
    year, month, day, rest = found.groups()
    return f"{year}-{int(month):02}-{int(day):02}{rest}"


def _hour(text: str) -> str:
    """Write 9:30:00 as 09:30:00."""
    return f"0{text}" if text[1:2] == ":" else text
