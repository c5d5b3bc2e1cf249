"""The parts of a scorecard as HTML: no script, light and dark, any width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from bandanna._core.types import ArmName
from bandanna.scorecard.text import amount, interval, lift_of, mean_of, percent
from bandanna.scorecard.view import Effect, Metric, Moment

STYLE = (Path(__file__).parent / "style.css").read_text("utf-8")

MARKS = {"kept": "guardrail kept", "broken": "guardrail broken", "open": "not clear"}
"""How a verdict is written, where another word is clearer beside the arm's name."""


def effects_table(metrics: Sequence[tuple[str, Metric]]) -> str:
    """Return one table of metrics, each with the group it is about, all lifts on one axis."""
    scale = LiftAxis.of([metric for _, metric in metrics])
    axis = '<td class="plot"></td>'
    if not scale.empty:
        axis = f'<th scope="col" class="plot">{scale.axis()}</th>'
    head = (
        '<thead><tr><th scope="col">arm</th><th scope="col" class="people">'
        f'{escape(metrics[0][1].per)}</th><th scope="col">mean</th><th scope="col">lift</th>'
        f'<th scope="col">difference</th>{axis}</tr>'
        "</thead>"
    )
    rows = []
    for group, metric in metrics:
        name = f"{group}: {metric.heading}" if group else metric.heading
        rows.append(f'<tr class="metric"><th colspan="6" scope="colgroup">{escape(name)}</th></tr>')
        rows += [_row(metric, effect, scale) for effect in metric.effects]
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _row(metric: Metric, effect: Effect, scale: LiftAxis) -> str:
    mark = MARKS.get(effect.verdict, effect.verdict)
    pill = f' <span class="pill {effect.verdict}">{mark}</span>'
    decides = ("", effect.verdict) if metric.limit is None else (effect.verdict, "")
    control = " control" if effect.verdict == "control" else ""
    difference = ""
    if effect.difference is not None:
        away = interval(effect.low, effect.high, metric.times)
        difference = f"{amount(effect.difference, effect, metric)} <small>({away})</small>"
    lift, ends = lift_of(effect)
    lift = f"{lift} <small>({ends})</small>" if ends else f"<small>{lift}</small>"
    return (
        f'<tr class="effect{control}"><th scope="row"><bdi>{escape(str(effect.arm))}</bdi>{pill}'
        "</th>"
        f'<td class="people">{effect.people:,}</td><td class="mean">{mean_of(effect, metric)}</td>'
        f'<td class="lift {decides[1]}">{lift}</td>'
        f'<td class="difference {decides[0]}">{difference}</td>'
        f'<td class="plot{" none" if effect.lift is None else ""}">{scale.bar(effect)}</td></tr>'
    )


class LiftAxis:
    """The axis that all lifts are drawn on."""

    WIDTH, EDGE = 400.0, 22.0

    def __init__(self, low: float, high: float, *, empty: bool = False) -> None:
        self.low, self.high = low, high
        self.empty = empty
        """Whether no lift can be said."""

    @classmethod
    def of(cls, metrics: Sequence[Metric]) -> LiftAxis:
        """Return an axis with room for all intervals; very wide ones are cut at its ends."""
        said = [e for metric in metrics for e in metric.effects if e.lift is not None]
        if not said:
            return cls(-0.1, 0.1, empty=True)
        widths = sorted(e.lift_high - e.lift_low for e in said)
        most = 4.0 * widths[len(widths) // 2] + max(abs(e.lift or 0.0) for e in said)
        low = max(min(0.0, *(e.lift_low for e in said), 0.0), -most)
        high = min(max(0.0, *(e.lift_high for e in said), 0.0), most)
        room = 0.08 * (high - low) or 0.01
        return cls(low - room, high + room)

    def at(self, lift: float) -> float:
        """Return where a lift is, inside the picture."""
        share = (lift - self.low) / (self.high - self.low)
        return self.EDGE + min(max(share, 0.0), 1.0) * (self.WIDTH - 2.0 * self.EDGE)

    def axis(self) -> str:
        """Draw the numbers of the axis."""
        step = nice_step((self.high - self.low) / 7.0)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        ticks = [step * tick for tick in range(first, last + 1)]
        marks = "".join(
            f'<text x="{self.at(tick):.0f}" y="12" text-anchor="middle">'
            f"{percent(tick, step)}</text>"
            for tick in ticks
        )
        said = f"lift from {percent(self.low)} to {percent(self.high)}"
        return f'<svg viewBox="0 0 400 18" role="img" aria-label="{said}">{marks}</svg>'

    def bar(self, effect: Effect) -> str:
        """Draw one interval, or only the line of no difference."""
        zero = f'<line class="axis" x1="{self.at(0):.1f}" x2="{self.at(0):.1f}" y1="0" y2="20"/>'
        if effect.lift is None:
            return f'<svg viewBox="0 0 400 20" aria-hidden="true">{zero}</svg>'
        low, middle, high = map(self.at, (effect.lift_low, effect.lift, effect.lift_high))
        said = f"{escape(str(effect.arm))}: {' from '.join(lift_of(effect))}"
        return (
            f'<svg viewBox="0 0 400 20" role="img" aria-label="{said}" class="{effect.verdict}">'
            f'{zero}<line class="bar" x1="{low:.1f}" x2="{high:.1f}" y1="10" y2="10"/>'
            f'<circle class="dot" cx="{middle:.1f}" cy="10" r="4.5"/></svg>'
        )


def nice_step(least: float) -> float:
    """Return the next larger 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return power * next(times for times in (1.0, 2.0, 5.0, 10.0) if power * times >= least)


LEFT = 64.0
"""Where pictures over time begin, so that the numbers of the axis stand before them."""


def over_time(moments: Sequence[Moment], arms: Sequence[ArmName], followed: str) -> str:
    """Draw the lift of one arm after each phase, and the shares of all arms."""
    last = moments[-1].rounds or 1
    said = [m for m in moments if m.lift is not None]
    left, right = LEFT, 896.0
    across = {m.rounds: left + (right - left) * m.rounds / last for m in moments}
    lines, zero = [], 100.0
    if said:
        top = max(0.0, _farthest([m.high for m in said]))
        bottom = min(0.0, _farthest([m.low for m in said]))
        room = top - bottom or 0.01

        def down(lift: float) -> float:
            return 10.0 + 180.0 * min(max((top - lift) / room, 0.0), 1.0)

        zero = down(0.0)
        upper = [f"{across[m.rounds]:.1f} {down(m.high):.1f}" for m in said]
        lower = [f"{across[m.rounds]:.1f} {down(m.low):.1f}" for m in reversed(said)]
        middle = [f"{across[m.rounds]:.1f} {down(m.lift or 0.0):.1f}" for m in said]
        ends = [(end, y) for end, y in ((top, 24.0), (bottom, 190.0)) if abs(y - zero) > 30.0]
        lines = [
            f'<path class="band" d="M{" L".join(upper + lower)} Z"/>',
            f'<path d="M{" L".join(middle)}" fill="none" stroke="var(--good)" stroke-width="2"/>',
            *(_at_left(percent(end), y) for end, y in ends),
        ]
    marks = "".join(
        f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="200"/>' for x in across.values()
    )
    label = "No lift can be said yet."
    if said:
        end = said[-1]
        label = (
            f"Lift of {followed} after {end.rounds:,} rounds: {percent(end.lift or 0.0)}, "
            f"from {percent(end.low)} to {percent(end.high)}"
        )
    shares = _shares(moments, arms, across)
    return (
        '<svg class="time lift-over-time" viewBox="0 0 900 210" role="img" '
        f'aria-label="{escape(label)}">{marks}'
        f'<line class="axis" x1="{left}" x2="{right}" y1="{zero:.0f}" y2="{zero:.0f}"/>'
        f"{''.join(lines)}{_at_left('0%', zero + 4.0)}</svg>"
        f"{shares}"
    )


def _at_left(text: str, y: float) -> str:
    return f'<text x="{LEFT - 6.0}" y="{y:.0f}" text-anchor="end">{text}</text>'


def _farthest(ends: Sequence[float]) -> float:
    """Return how far an axis goes for these ends: to the farthest, if the others come near it."""
    ordered = sorted(ends, key=abs)
    usual, last = 3.0 * abs(ordered[len(ordered) // 2]), ordered[-1]
    return math.copysign(min(abs(last), usual), last)


def _shares(moments: Sequence[Moment], arms: Sequence[ArmName], across: dict[int, float]) -> str:
    """Draw which share of people met each arm, phase by phase."""
    before, boxes = LEFT, []
    for moment in moments:
        top, here = 0.0, across[moment.rounds]
        for arm, share in enumerate(moment.shares):
            boxes.append(
                f'<rect class="share{arm % 6}" x="{before:.1f}" width="{here - before:.1f}" '
                f'y="{top:.1f}" height="{80.0 * share:.1f}"/>'
            )
            top += 80.0 * share
        before = here
    last = moments[-1].rounds
    names = list(zip(map(str, arms), moments[-1].shares, strict=True))
    alone = ", ".join(f"{name} {100.0 * share:.0f}%" for name, share in names)
    key = ", ".join(
        f'<svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect class="share{arm % 6}" '
        f'width="10" height="10"/></svg> <bdi>{escape(name)}</bdi> {100.0 * share:.0f}%'
        for arm, (name, share) in enumerate(names)
    )
    return (
        '<svg class="shares" viewBox="0 0 900 84" role="img" aria-label="shares in the last phase: '
        f'{escape(alone)}">{"".join(boxes)}</svg>'
        f'<p class="soft">{last:,} decisions from left to right; lines mark where phases ended. '
        f"In the last one: {key}.</p>"
    )
