"""Colours and dashes, the same for an algorithm in every chart.

The colours are Okabe and Ito's, which colour-blind people can tell apart; lines also differ in
dashes, so that a print without colour can be read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import altair as alt

from bandanna._core.types import JSON
from bandanna.algorithms import AUTO, algorithms
from bandanna.simulation.baselines import SAME

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, AMBER, SKY, BLACK, GREY = "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A8A"

WIDTH, HEIGHT = 640, 340

Look = tuple[str, list[int]]
"""A colour, and the dashes of a line."""

BANDITS: list[Look] = [
    *((BLUE, [1, 0]), (SKY, [12, 3]), (GREEN, [1, 0]), (AMBER, [10, 3]), (PURPLE, [1, 0])),
    *((ORANGE, [8, 3]), (ORANGE, [3, 2]), (GREEN, [4, 3]), (GREEN, [2, 2])),
    *((PURPLE, [10, 3, 2, 3]), (PURPLE, [2, 2]), (AMBER, [2, 3]), (AMBER, [6, 2])),
    (SKY, [6, 2, 2, 2, 2, 2]),
]
"""Colours and dashes of the private algorithms; a conversion has those of what it converts."""
WITH_EXPERTS: list[Look] = [
    *((SKY, [1, 0]), (AMBER, [2, 3]), (AMBER, [6, 2]), (PURPLE, [4, 2]), (PURPLE, [6, 3])),
    (GREEN, [7, 3]),
]
"""Colours and dashes of algorithms for experts that are no conversions."""
WITHOUT_PRIVACY: list[Look] = [(BLACK, [1, 0]), (GREY, [3, 3]), (GREY, [6, 3])]
VARIANT = [6, 2]
"""Dashes of an algorithm with other parameters: "adaptive, changes"."""
ARMS = [BLUE, ORANGE, GREEN, AMBER, SKY, PURPLE, BLACK, "#C8C8C8"]


def by_algorithm(names: Iterable[str], field: str = "algorithm") -> JSON:
    """Return the colour and dash encodings of some algorithms, in their usual order.

    Other names get colours and dashes in turn.
    """
    order, known = in_order(names), _looks()
    others = itertools.cycle(BANDITS)
    looks = [known.get(name) or next(others) for name in order]
    for index, name in enumerate(order):
        if name not in known and _base(name) in known:
            looks[index] = known[_base(name)][0], VARIANT
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
    """Return different names of algorithms in the catalogue's order, then all others."""
    known = {name: index for index, name in enumerate(_looks())}
    return sorted(dict.fromkeys(names), key=lambda name: known.get(_base(name), len(known)))


def _base(name: str) -> str:
    """Return the algorithm behind a name such as "adaptive, changes" or "adaptive-no-privacy"."""
    return name.partition(", ")[0].removesuffix(SAME)


def _looks() -> dict[str, Look]:
    """Return how each algorithm of the catalogue looks, in its order; those added go round."""
    bandits, experts = algorithms(with_experts=False), algorithms(with_experts=True)
    looks: dict[str, Look] = {AUTO: (BLUE, [12, 2])}
    for rows, shown in ((bandits, BANDITS), (experts, WITH_EXPERTS)):
        own = [row.name for row in rows if row.private and row.over is None]
        looks |= _in_turn(own, shown)
    looks |= {row.name: looks[row.over.name] for row in experts if row.private and row.over}
    return looks | _in_turn(
        dict.fromkeys(row.name for row in (*bandits, *experts) if not row.private), WITHOUT_PRIVACY
    )


def _in_turn(names: Iterable[str], looks: list[Look]) -> dict[str, Look]:
    return dict(zip(names, itertools.cycle(looks), strict=False))


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
