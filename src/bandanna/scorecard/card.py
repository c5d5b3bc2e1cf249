"""The scorecard: the one view of an experiment that a team decides from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from html import escape

from bandanna._core.tabular import Cell, Tabular
from bandanna._core.types import JSON, ArmName
from bandanna.scorecard.page import STYLE, effects_table, over_time
from bandanna.scorecard.text import table_of
from bandanna.scorecard.view import Check, Metric, Moment, Recommendation

SAID = {True: "OK", False: "LOOK", None: "note"}
"""How a check begins."""


@dataclass(frozen=True)
class Scorecard(Tabular):
    """What a team decides from: the control on top, lifts, health, what to do."""

    recommendation: Recommendation
    metrics: tuple[Metric, ...]
    confidence: float
    epsilon: float
    delta: float
    protects: str
    provisos: str
    looks: str
    health: tuple[Check, ...] = ()
    title: str = ""
    about: str = ""
    """One line above the headline."""
    groups: tuple[tuple[str, Metric], ...] = ()
    """The first metric in each group of people, by the group's name."""
    moments: tuple[Moment, ...] = ()
    followed: ArmName | None = None
    """The arm whose lift over time is drawn."""
    certificates: tuple[JSON, ...] = field(default=(), repr=False)
    """What ``bandanna verify`` checks, one for each outcome."""

    @property
    def control(self) -> ArmName:
        """The arm that others are compared with."""
        return self.metrics[0].effects[0].arm

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """All arms, the control first."""
        return tuple(effect.arm for effect in self.metrics[0].effects)

    @property
    def privacy(self) -> str:
        """How private it is, in one line."""
        also = f" and delta {self.delta:.1g}" if self.delta else ""
        known = ""
        if self.epsilon < 5.0 and not self.delta:
            guess = 100.0 / (1.0 + math.exp(-self.epsilon))
            known = (
                f" Whoever held one of two possible outcomes to be 50% likely holds it to be at "
                f"most {math.ceil(guess)}% likely after reading this."
            )
        return (
            f"Epsilon {self.epsilon:.4g}{also}: noise in all that is computed from outcomes "
            f"protects {self.protects}.{known}"
        )

    def to_dict(self) -> JSON:
        """Return it as plain values, for JSON."""
        return asdict(self) | {"control": self.control, "privacy": self.privacy}

    def _records(self) -> list[dict[str, Cell]]:
        """Return a row for each arm and metric, of everyone and of each group."""
        records: list[dict[str, Cell]] = []
        for group, metric in [*((None, metric) for metric in self.metrics), *self.groups]:
            about: dict[str, Cell] = {"group": group, "metric": metric.name, "limit": metric.limit}
            records += [about | effect.to_row() for effect in metric.effects]
        return records

    def __str__(self) -> str:
        lines = [self.recommendation.headline, self.recommendation.rule, ""]
        for group, metric in [*(("", metric) for metric in self.metrics), *self.groups]:
            lines += [*table_of(metric, group), ""]
        lines += [f"{SAID[check.good]}: {check.text}" for check in self.health]
        return "\n".join([*lines, f"{self.provisos} {self.looks}".strip(), self.privacy])

    def _repr_html_(self) -> str:
        """Return it as one HTML element, with its style."""
        return f"<div><style>{STYLE}</style>{self.element()}</div>"

    def element(self) -> str:
        """Return it as one HTML element, for pages that have ``STYLE`` already."""
        sure = f"{100.0 * self.confidence:.4g}% sure"
        if self.recommendation.action not in {"ship", "keep"}:
            sure = f"needs to be {sure}"
        lines = [
            '<section class="scorecard">',
            f'<p class="soft">{escape(self.about)}</p>' if self.about else "",
            f"<h1>{escape(self.recommendation.headline)}</h1>",
            f'<p>{escape(self.recommendation.rule)} <span class="pill">{sure}</span></p>',
            self._facts(),
            f"<h2>Against {escape(str(self.control))} (control)</h2>",
            effects_table([("", metric) for metric in self.metrics]),
        ]
        if self.groups:
            lines += ["<h2>By group</h2>", effects_table(self.groups)]
        if self.moments:
            name = escape(str(self.followed))
            lines.append(f"<h2>Lift of {name} over time, and who met what</h2>")
            lines.append(over_time(self.moments, self.arms, str(self.followed)))
        if self.health:
            rows = "".join(map(_check, self.health))
            lines += ["<h2>Can the data be trusted?</h2>", f"<ul>{rows}</ul>"]
        lines += [
            "<h2>How private is it?</h2>",
            f'<p class="soft">{escape(self.privacy)}</p>',
            f'<p class="soft">{escape(self.provisos)} {escape(self.looks)}</p></section>',
        ]
        return "".join(lines)

    def html(self) -> str:
        """Return it as a page of its own."""
        title = escape(self.title or self.recommendation.headline)
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{title}</title><style>:root{{color-scheme:light dark}}"
            "body{margin:2rem auto;max-width:62rem;padding:0 1rem}"
            "@media(prefers-color-scheme:dark){body{background:#101216}}</style>"
            f"<body><main>{self._repr_html_()}</main></body></html>"
        )

    def _facts(self) -> str:
        first = self.metrics[0]
        people = sum(effect.people for effect in first.effects)
        facts = [(f"{people:,}", first.per), (str(len(first.effects)), "arms")]
        facts.append((f"{self.epsilon:.4g}", "epsilon"))
        inner = "".join(f"<span><b>{value}</b>{escape(what)}</span>" for value, what in facts)
        return f'<div class="facts">{inner}</div>'


def _check(check: Check) -> str:
    kind = {True: "kept", False: "broken", None: "soft"}[check.good]
    word = SAID[check.good].replace("n", "N", 1)
    return f'<li class="{kind}"><b>{word}</b> {escape(check.text)}</li>'
