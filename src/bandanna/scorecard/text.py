"""How a scorecard's numbers are written, and its tables as text."""

from __future__ import annotations

import math

from bandanna.scorecard.view import Effect, Metric


def percent(share: float, width: float | None = None) -> str:
    """Write a share in percent, with its sign, as precisely as an interval of a width tells it.

    Examples
    --------
    >>> percent(0.0381), percent(-0.25), percent(0.0), percent(0.009, width=0.073)
    ('+3.8%', '-25%', '0%', '+0.9%')
    """
    size = abs(share) if width is None else width
    digits = digits_of(100.0 * size) if size else 0
    text = f"{100.0 * share:+,.{digits}f}%"
    return f"{0:.{digits}f}%" if float(text[:-1].replace(",", "")) == 0.0 else text


def lift_of(effect: Effect) -> tuple[str, str]:
    """Write a lift and its interval; nothing for the control."""
    if effect.difference is None:
        return "" if effect.verdict == "control" else "not known", ""
    if effect.lift is None:
        return "cannot be said", ""
    width = effect.lift_high - effect.lift_low
    if "0%" in {percent(end, width).strip("+-") for end in (effect.lift_low, effect.lift_high)}:
        width *= 0.1  # so that the side of 0 is seen
    ends = f"{percent(effect.lift_low, width)} to {percent(effect.lift_high, width)}"
    return percent(effect.lift, width), ends


def digits_of(width: float, exact: int = 2) -> int:
    """Return how many decimals show something of a width to about two digits; ``exact`` if of 0."""
    return max(0, min(8, 1 - math.floor(math.log10(width)))) if width > 0.0 else exact


def amount(value: float, effect: Effect, metric: Metric) -> str:
    """Write a difference as the metric is shown, with its sign; 0 has none."""
    text = f"{metric.times * value:+,.{_digits(metric.times, effect.low, effect.high)}f}"
    return text if any(digit in text for digit in "123456789") else text[1:]


def interval(low: float, high: float, times: float = 1.0) -> str:
    """Write the ends of an interval.

    Examples
    --------
    >>> interval(-0.02, 1.22), interval(0.5, 12.0)
    ('-0.02 to +1.22', '+0.5 to +12.0')
    """
    digits = _digits(times, low, high)
    return f"{times * low:+,.{digits}f} to {times * high:+,.{digits}f}"


def _digits(times: float, low: float, high: float) -> int:
    """Return how many decimals show an interval, and on which side of 0 its ends are."""
    digits = digits_of(times * (high - low))
    near = min((abs(times * end) for end in (low, high) if end), default=1.0)
    return digits + (near <= 0.5 * 10.0**-digits)


def mean_of(effect: Effect, metric: Metric) -> str:
    """Write an arm's mean as precisely as the differences of its metric are known."""
    if effect.mean is None:
        return "-"
    widths = [e.high - e.low for e in metric.effects if e.difference is not None]
    return f"{metric.times * effect.mean:,.{digits_of(metric.times * min(widths, default=0.0))}f}"


def rows_of(metric: Metric) -> list[list[str]]:
    """Return a metric's table: arm, people, mean, lift, difference, what can be said."""
    rows = []
    for effect in metric.effects:
        away = ""
        if effect.difference is not None:
            ends = interval(effect.low, effect.high, metric.times)
            away = f"{amount(effect.difference, effect, metric)} ({ends})"
        lift, ends = lift_of(effect)
        lift += f" ({ends})" if ends else ""
        said = "not clear" if effect.verdict == "open" else effect.verdict
        people = f"{effect.people:,}"
        rows.append([str(effect.arm), people, mean_of(effect, metric), lift, away, said])
    return rows


def table_of(metric: Metric, group: str = "") -> list[str]:
    """Return a metric as lines of text: what it is, and a table."""
    heads = ["", metric.per, "mean", "lift", "difference", ""]
    table = [heads, *rows_of(metric)]
    widths = [max(len(row[k]) for row in table) for k in range(len(heads))]
    lines = [f"{group}: {metric.heading}" if group else metric.heading]
    for row in table:
        cells = zip(row, widths, strict=True)
        aligned = [
            cell.ljust(width) if k in {0, 5} else cell.rjust(width)
            for k, (cell, width) in enumerate(cells)
        ]
        lines.append(f"  {'  '.join(aligned)}".rstrip())
    return lines
