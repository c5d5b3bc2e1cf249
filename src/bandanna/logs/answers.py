"""The answer from a log, as it is shown, saved and drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from bandanna._core.html import paragraph, table
from bandanna._core.start import Start
from bandanna._core.types import JSON, ArmName, Guarantee, InputError
from bandanna.logs.needed import Needed
from bandanna.logs.rules import Gain
from bandanna.one_look import HOW, Kind, OneLook
from bandanna.policy.answers import Answer, Comparison, check_confidence, index_of
from bandanna.policy.statements import AT_RANDOM, Units, difference_words, sure


@dataclass(frozen=True)
class LogAnswer(Answer):
    """The private answer from a log: an ``Answer`` with differences, gains and a certificate."""

    differences: tuple[Comparison, ...] = ()
    """Every other arm against the one with the best released mean, or against the control. They
    hold together with the confidence, over all pairs of arms or all pairs with the control."""
    gains: tuple[Gain, ...] = ()
    needed: Needed | None = None
    """How many rows would settle it four times in five; None where it is settled."""
    dropped: int = 0
    """Rows that were left out, because a person counts once."""
    guarantee: Guarantee | None = None
    certificate: JSON | None = None
    start: Start | None = field(default=None, repr=False)
    """What was released, for ``PrivateBandit(..., start_from=)``."""
    notes: tuple[str, ...] = ()
    """What was counted up to what, and what an adjustment gained."""
    interval: Kind = "normal"
    """How intervals are made."""
    control: ArmName | None = None
    """The arm that all others are compared with, fixed beforehand."""
    look: OneLook | None = field(default=None, repr=False, compare=False)
    """Released sums of losses, and intervals from them."""

    def compare(
        self, first: ArmName, second: ArmName, *, confidence: float | None = None
    ) -> Comparison:
        """Compare two arms that were chosen before looking: it holds by itself.

        Pairs that are picked by what they show need ``differences``, which hold together.
        """
        assert self.look is not None, "answers from logs have one"
        sure_of = self.confidence if confidence is None else check_confidence(confidence)
        names = [arm.name for arm in self.arms]
        a, b = index_of(names, first), index_of(names, second)
        if a == b:
            raise InputError(f"compare two different arms; got {first!r} twice.")
        return comparison(self.look, names, a, b, 1.0 - sure_of, self.units, sure_of)

    def to_dict(self) -> JSON:
        """Return everything as plain values, for JSON."""
        promise, start = self.guarantee, None if self.start is None else self.start.to_dict()
        return super().to_dict() | {
            "differences": [found.to_dict() for found in self.differences],
            "gains": [gain.to_dict() for gain in self.gains],
            "needed": None if self.needed is None else self.needed._asdict(),
            "interval": self.interval,
            "control": self.control,
            "notes": list(self.notes),
            "dropped": self.dropped,
            "epsilon": None if promise is None else promise.epsilon,
            "delta": None if promise is None else promise.delta,
            "protects": None if promise is None else promise.protects,
            "certificate": self.certificate,
            "start": start and {key: start[key] for key in start if key != "certificate"},
        }

    @property
    def shown(self) -> tuple[Comparison, ...]:
        """The differences that the sentence does not say already."""
        said = self.best is not None and len(self.arms) == 2
        return () if said else self.differences

    @property
    def together(self) -> str:
        """How sure it is, and when it may be looked at."""
        said = f"{100 * self.confidence:.4g}% sure"
        return (
            f"All that is said of pairs of arms holds together, {said}, and each arm's interval by "
            f"itself. {self.looks}"
        )

    def _lines(self) -> list[str]:
        lines = super()._lines()
        lines += self.notes
        lines += [found.sentence for found in self.shown]
        lines += [gain.sentence for gain in self.gains]
        if self.guarantee is not None:
            lines += str(self.guarantee).splitlines()[:2]
        return lines

    def _repr_html_(self) -> str:
        found = super()._repr_html_()
        rows = [
            [
                f"{one.second} minus {one.first}",
                *(f"{value:.4g}" for value in (one.difference or 0.0, one.low, one.high)),
            ]
            for one in self.differences
        ]
        found += table("Differences of means", ["arms", "difference", "low", "high"], rows)
        found += "".join(paragraph(gain.sentence) for gain in self.gains)
        return found + ("" if self.guarantee is None else self.guarantee._repr_html_())

    def html(self) -> str:
        """Return a whole page for a browser."""
        style = (
            "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;"
            "padding:0 1rem}"
            "table{border-collapse:collapse;margin:1rem 0}td,th{border-bottom:1px solid #bbb;"
            "padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top}"
            "caption{text-align:left;font-weight:600}h1+p{font-size:1.2em}"
        )
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(self.sentence.partition('. ')[0])}</title>"
            f"<style>{style}</style><body><h1>Answer</h1>{self._repr_html_()}</body></html>"
        )


def comparison(
    look: OneLook,
    names: list[ArmName],
    a: int,
    b: int,
    alpha: float,
    units: Units,
    confidence: float,
) -> Comparison:
    """Return how two arms differ, in the user's units, with an error probability of its own."""
    found, more = look.difference(a, b, alpha), look.apart(a, b)
    more = min(max(more, found.low), found.high)
    sign = -1.0 if units.reward else 1.0
    low, high = sorted(sign * units.width * end for end in found)
    words = difference_words(names[a], names[b], more, found, units)
    return Comparison(
        names[a],
        names[b],
        sign * units.width * more,
        low,
        high,
        f"{words}, {sure(confidence)}, provided {AT_RANDOM}.",
        confidence,
        AT_RANDOM,
    )


def how_made(kind: Kind) -> str:
    """Say what the intervals are."""
    return f"The intervals are for one look at a finished log, {HOW[kind]}."
