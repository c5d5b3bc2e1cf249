"""Colours and dashes, the same for an algorithm in every chart.

The colours are Okabe and Ito's, which colour-blind people can tell apart; lines also differ in
dashes, so that a print without colour can be read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import altair as alt

from bandanna.types import JSON

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, AMBER, SKY, BLACK, GREY = "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A"

WIDTH, HEIGHT = 640, 340

ALGORITHMS: dict[str, tuple[str, list[int]]] = {
    "one-bit": (BLUE, [1, 0]),
    "adaptive": (GREEN, [1, 0]),
    "adaptive, changes": (GREEN, [6, 2]),
    "dp-klucb": (PURPLE, [1, 0]),
    "tracking": (AMBER, [10, 3]),
    "auto": (BLUE, [12, 2]),
    "one-bit-exp3": (SKY, [12, 3]),
    "one-bit-exp4": (SKY, [1, 0]),
    "one-bit-conversion": (BLUE, [1, 0]),
    "one-bit-exp3-conversion": (SKY, [12, 3]),
    "calibrated-exp4": (GREEN, [1, 0]),
    "htinf": (ORANGE, [8, 3]),
    "htinf-conversion": (ORANGE, [8, 3]),
    "exp3-conversion": (GREEN, [4, 3]),
    "ftpl-conversion": (PURPLE, [10, 3, 2, 3]),
    "local-exp4": (AMBER, [2, 3]),
    "batched-exp4": (PURPLE, [4, 2]),
    "exp3": (GREEN, [4, 3]),
    "ftpl": (PURPLE, [10, 3, 2, 3]),
    "ldp-exp3": (AMBER, [2, 3]),
    "dp-exp3-lap": (SKY, [6, 2, 2, 2, 2, 2]),
    "no-privacy": (BLACK, [1, 0]),
    "random-expert": (GREY, [6, 3]),
    "uniform": (GREY, [3, 3]),
}
ARMS = [BLUE, ORANGE, GREEN, AMBER, SKY, PURPLE, BLACK, "#C8C8C8"]


def by_algorithm(names: Iterable[str], field: str = "algorithm") -> JSON:
    """Return the colour and dash encodings of some algorithms, in their usual order.

    Other names get colours and dashes in turn.
    """
    order = in_order(names)
    others = itertools.cycle(ALGORITHMS.values())
    looks = [ALGORITHMS.get(name) or next(others) for name in order]
    colours = alt.Scale(domain=order, range=[colour for colour, _ in looks])
    dashes = alt.Scale(domain=order, range=[dash for _, dash in looks])
    legend = alt.Legend(
        orient="bottom", symbolType="stroke", symbolOpacity=1, symbolSize=500, symbolStrokeWidth=2.5
    )
    shared: JSON = {"title": None, "sort": order, "legend": legend}
    return {
        "color": alt.Color(f"{field}:N", scale=colours, **shared),
        "strokeDash": alt.StrokeDash(f"{field}:N", scale=dashes, **shared),
    }


def in_order(names: Iterable[str]) -> list[str]:
    """Return different names of algorithms in their usual order."""
    given = list(dict.fromkeys(names))
    known = [name for name in ALGORITHMS if name in given]
    return known + [name for name in given if name not in ALGORITHMS]


def logarithmic(title: str, field: str, values: Iterable[float]) -> alt.X:
    """Return a logarithmic axis with a mark at each of the values, or at powers of ten."""
    given = sorted(set(values))
    style = "~g" if given[0] < 1 else "~s"
    axis = alt.Axis(values=given, format=style) if len(given) <= 6 else alt.Axis(format=style)
    scale = alt.Scale(type="log", nice=False, padding=14)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def logarithmic_y(field: str, title: str) -> alt.Y:
    """Return a logarithmic axis up the side."""
    scale = alt.Scale(type="log", nice=False, padding=12)
    return alt.Y(field, title=title, scale=scale, axis=few_marks())


def few_marks() -> alt.Axis:
    """Return marks that are not too many."""
    return alt.Axis(format="~s", tickCount=6)
