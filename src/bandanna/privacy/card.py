"""A deployment card: a certificate in words, for privacy officers and for the people protected.

Its fields are those of the Differential Privacy Deployments Registry (Nanayakkara, Ghazi and Vadhan
2025, arXiv 2509.13509, and registry.opendp.org). What follows from the certificate is filled in;
what only the people who run it know is asked for, and where they do not say, the card says "not
stated". Nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from bandanna._core.documents import to_text
from bandanna._core.types import (
    JSON,
    WEAK_EPSILON,
    Guarantee,
    InputError,
    at_least,
    at_most,
    group_delta,
    percent_up,
    plain,
    times_up,
)
from bandanna.privacy.certificate import FORMAT_TOGETHER, verify
from bandanna.privacy.charges import with_charge
from bandanna.privacy.statements import batches_in_words, composes_slots

NOT_STATED = "not stated"

QUESTIONS = {
    "curator": "Who runs it, and is responsible for the data?",
    "use": "What are the decisions and the results used for?",
    "product": "What is published, and to whom?",
    "date": "Since when?",
    "subjects": "Who are the people whose feedback it is?",
    "feedback": "What is a loss: which answer, click or outcome, in which units?",
    "sees": "Who can see feedback before noise is added, and where?",
    "retention": "How long is what kept?",
    "rationale": "Why this epsilon, and this unit?",
    "review": "Who checked or audited it, when, with which result?",
    "contact": "Whom can people ask, or complain to?",
}
"""What the certificate cannot know."""

TIERS = {
    1: ("curator", "use", "product", "date"),
    2: (),
    3: ("subjects", "feedback", "sees", "rationale"),
}
"""Questions that each tier of the registry adds; the rest of it is in the certificate."""

LAWS = {
    "one-bit": "one random bit for each batch (randomised response on a sum)",
    "device-bit": "one random bit for each value, drawn on the person's own device",
    "laplace": "discrete Laplace noise on the sum of each batch",
    "laplace-moments": "discrete Laplace noise on each sum and on the squares beside it",
    "laplace-presence": "discrete Laplace noise on three sums, to which each person adds 1",
    "laplace-ratio": "discrete Laplace noise on two sums, their squares and their products",
    "log-answer": "discrete Laplace noise on sums; parts of epsilon bought what they are made of",
    "with-metrics": "the outcome, and each metric's sum with discrete Laplace noise of its own",
    "vector-laplace": "discrete Laplace noise on one sum for each expert",
    "vector-laplace-composed": "discrete Laplace noise on one sum for each expert",
    "vector-gaussian": "discrete Gaussian noise on one sum for each expert",
    "epoch-gaussian": "discrete Gaussian noise on sums of outcomes by arm and feature",
    "epoch-laplace": "discrete Laplace noise on sums of outcomes by arm and feature",
    "epoch-moments-gaussian": "discrete Gaussian noise on sums of outcomes, products of features",
    "epoch-moments-laplace": "discrete Laplace noise on sums of outcomes, products of features",
}

NOT_COVERED = (
    "that someone took part, when and how often",
    "which arm was chosen for whom: decisions are seen by those who are decided for, and by others "
    "if they are shown",
    "what is learned about people in general, which may concern someone whether they took part or "
    "not",
    "how long computations take, and the memory of the computer that runs them",
)


DERIVED = {
    *("In odds", "Strength", "Epsilon for one person's", "Not hidden"),
    *("Verification", "Post-processing"),
}
"""Fields that follow from a certificate; others are in it."""


class Entry(NamedTuple):
    """A field of the card, and where its value is from."""

    name: str
    value: str
    source: str
    """``certificate``, ``derived`` from it, ``stated`` by its owners, ``ledger``, or nothing."""


@dataclass(frozen=True)
class Card:
    """A deployment card."""

    entries: dict[str, tuple[Entry, ...]]
    """By section."""
    participants: tuple[str, ...]
    """The text for the people protected, in paragraphs."""
    unanswered: dict[str, str] = field(default_factory=dict)
    """Questions without an answer."""

    @property
    def tier(self) -> int:
        """The highest of the registry's tiers for which everything is stated."""
        reached = 0
        for tier, asked in TIERS.items():
            if any(question in self.unanswered for question in asked):
                break
            reached = tier
        return reached

    def to_dict(self) -> JSON:
        """Return the card as a document."""
        return {
            "format": "bandanna deployment card",
            "version": 1,
            "registry_tier": self.tier,
            "sections": {
                section: [entry._asdict() for entry in entries]
                for section, entries in self.entries.items()
            },
            "participants": list(self.participants),
            "not_stated": self.unanswered,
        }

    def to_markdown(self) -> str:
        """Return the card as a page in Markdown."""
        parts = ["# Privacy card\n"]
        for section, entries in self.entries.items():
            rows = [
                f"| {entry.name} | {_cell(entry.value)} | {entry.source} |" for entry in entries
            ]
            parts.append("\n".join([f"## {section}\n", "| | | from |", "|---|---|---|", *rows, ""]))
        parts.append("## For the people whose feedback it is\n\n" + "\n\n".join(self.participants))
        if self.unanswered:
            asked = [f"- `{name}`: {text}" for name, text in self.unanswered.items()]
            parts.append("\n## Not stated\n\n" + "\n".join(asked))
        return "\n".join(parts) + "\n"

    def to_html(self) -> str:
        """Return the card as a page that loads nothing."""
        parts = []
        for section, entries in self.entries.items():
            rows = "".join(
                f"<tr><th>{escape(entry.name)}</th><td>{escape(entry.value)}</td>"
                f"<td class='from'>{escape(entry.source)}</td></tr>"
                for entry in entries
            )
            parts.append(f"<h2>{escape(section)}</h2><table>{rows}</table>")
        said = "".join(f"<p>{escape(text)}</p>" for text in self.participants)
        parts.append(f"<h2>For the people whose feedback it is</h2><div class='said'>{said}</div>")
        if self.unanswered:
            asked = "".join(f"<li>{escape(text)}</li>" for text in self.unanswered.values())
            parts.append(f"<h2>Not stated</h2><ul>{asked}</ul>")
        return PAGE.replace("BODY", "".join(parts))


def make_card(
    certificate: JSON, answers: Mapping[str, str] | None = None, ledger: JSON | None = None
) -> Card:
    """Make a card from a certificate, and answers to ``QUESTIONS``.

    The certificate is verified first; ``InputError`` says what is wrong with one that fails. With
    ``Ledger.to_dict()`` of the people's ledger the card also says what else was spent on them.

    Examples
    --------
    >>> import bandanna as bd
    >>> certificate = bd.PrivateBandit(arms=2, epsilon=0.5).certificate()
    >>> card = make_card(certificate, {"curator": "A clinic"})
    >>> card.tier, "at most 62.3% of the time" in card.participants[1]
    (0, True)
    """
    given = {name: text.strip() for name, text in (answers or {}).items() if text.strip()}
    unknown = sorted(set(given) - set(QUESTIONS))
    if unknown:
        raise InputError(
            f"unknown answers: {', '.join(unknown)}; there are {', '.join(QUESTIONS)}."
        )
    _require_verified(certificate)
    certificate = with_charge(certificate)
    spent = _spent(certificate)

    def stated(name: str, question: str) -> Entry:
        return Entry(name, given.get(question, NOT_STATED), "stated" if question in given else "")

    policy = f"{certificate['policy']} ({certificate['algorithm']})"
    good = "the guarantee follows from the certificate's numbers: bandanna verify said yes"
    assumed = (*certificate["assumptions"], *certificate.get("range_assumptions", ()))
    entries = {
        "Deployment": (
            stated("Curator", "curator"),
            stated("Intended use", "use"),
            stated("Data product", "product"),
            stated("In use since", "date"),
            stated("People", "subjects"),
            stated("Feedback", "feedback"),
            *_entries([("Software", certificate["software"]), ("Policy", policy)]),
        ),
        "Privacy guarantee": _entries(_guarantee(certificate, spent)),
        **({} if ledger is None else {"All releases about these people": _together(ledger)}),
        "Model and mechanism": _entries(_mechanism(certificate)),
        "What is not covered": _entries(
            [("Not hidden", text) for text in _not_hidden(certificate)]
            + [("Assumed", text) for text in assumed]
        ),
        "Operation": (
            stated("Who sees feedback before noise", "sees"),
            stated("Retention", "retention"),
            stated("Rationale", "rationale"),
            *_entries([("Verification", good)]),
            stated("Reviews and audits", "review"),
            stated("Contact", "contact"),
        ),
    }
    unanswered = {name: text for name, text in QUESTIONS.items() if name not in given}
    return Card(entries, participants_text(certificate, given), unanswered)


def _require_verified(certificate: JSON) -> None:
    if not isinstance(certificate, dict):
        raise InputError(f"a certificate is a dict; got {type(certificate).__name__}.")
    if certificate.get("format") == FORMAT_TOGETHER:
        raise InputError("there is a card for each segment: give one of its certificates.")
    wrong = [finding for finding in verify(to_text(certificate)) if not finding.holds]
    if wrong:
        raise InputError(f"the certificate does not verify: {wrong[0].entry}: {wrong[0].why}.")


def participants_text(
    certificate: JSON, answers: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return what the people protected can be told, in plain words and true numbers."""
    spent, answers = _spent(certificate), answers or {}
    whose = "one answer of yours"
    if _per_person(certificate) is not None:
        used = _slots(certificate).replace("epoch", "answer")  # one is counted in an epoch
        whose = f"everything you tell us, however often you come (we use up to {used})"
    who = answers.get("curator", "We")
    first = (
        f"{who} learn{'' if who == 'We' else 's'} from what people answer which choice is better. "
        f"Everything that is published, and every choice, is computed from answers with random "
        f"noise added. This protects {whose}."
    )
    odds = (
        f"Suppose someone sees everything that is published, knows what everybody else answered, "
        f"and thinks two answers of yours equally likely. They can then guess which of the two you "
        f"gave, and be right at most {percent_up(spent.guess)} of the time. Tossing a coin is "
        f"right 50% of the time."
    )
    if spent.epsilon > WEAK_EPSILON:
        odds += " This is weak protection."
    if _per_person(certificate) is None:
        five = percent_up(_grouped(spent, 5).guess)
        odds += f" For five answers of yours together it is at most {five} of the time."
    device = certificate["mechanism"] == "device-bit"
    sees = (
        "The noise is added on your own device: your answer does not leave it."
        if device
        else "Before noise is added, your answer is seen by the computers that collect it"
        + (f": {answers['sees']}" if "sees" in answers else ".")
    )
    rest = "That you took part, and when, is not hidden."
    if _joint(certificate):
        rest += " The choice made for you depends on what is known of you; it is shown to you only."
    last = [f"Questions: {answers['contact']}"] if "contact" in answers else []
    return (first, odds, f"{sees} {rest}", *last)


def _spent(certificate: JSON) -> Guarantee:
    """Return what the certificate promises someone, a bought range and a log included."""
    names = ("epsilon", "epsilon_with_range", "epsilon_with_start", "epsilon_with_before")
    epsilon: float = max(certificate[name] for name in names if name in certificate)
    return Guarantee(epsilon, certificate["delta"], "", "central", "", "")


def _entries(fields: Iterable[tuple[str, object]]) -> tuple[Entry, ...]:
    """Return fields that are in a certificate, or follow from it."""
    sources = {True: "derived", False: "certificate"}
    return tuple(Entry(name, str(text), sources[name in DERIVED]) for name, text in fields)


def _guarantee(certificate: JSON, spent: Guarantee) -> Iterator[tuple[str, object]]:
    """Yield what is promised."""
    epsilon, delta = spent.epsilon, spent.delta
    persons = _per_person(certificate) is not None
    joint = "joint " if _joint(certificate) else ""
    flavour = f"{'approximate' if delta else 'pure'} {joint}differential privacy"
    yield "Flavour", f"{flavour}, adaptive and against any prior knowledge"
    yield "Unit of privacy", _unit(certificate)
    yield "Neighbours", certificate["protects"]
    yield "Epsilon", plain(certificate["epsilon"])
    yield "Delta", plain(delta)
    if "range_epsilon" in certificate:
        yield "Epsilon of the range", plain(certificate["range_epsilon"])
        yield "Epsilon with the range", plain(epsilon)
    if certificate["mechanism"] == "log-answer":
        sums = {"what": "sums", "epsilon": certificate["sums_epsilon"]}
        yield "Spent on", _parts([sums, *certificate["parts"]])
    if "start_certificate" in certificate:
        log = certificate["start_certificate"]["epsilon"]
        yield "Epsilon of the log it starts from", plain(log)
        yield "Epsilon for people in the log and the run", plain(epsilon)
    if "first_parts" in certificate:
        yield "Spent in the first phase on", _parts(certificate["first_parts"])
    if "adjusted" in certificate:
        yield "Subtracted from outcomes", certificate["adjusted"]
        if before := certificate["before_epsilon"]:
            yield "Epsilon of earlier feedback in it", plain(before)
            yield "Epsilon for that earlier feedback", plain(epsilon)
    plus = f", plus {plain(delta)}" if delta else ""
    yield (
        "In odds",
        f"the probability of anything that is seen is at most {_factor(epsilon)} times what it "
        f"is with any other value of the unit{plus}; a guess between two equally likely values "
        f"is right at most {percent_up(spent.guess)} of the time, where 50% is no information",
    )
    if epsilon > WEAK_EPSILON:
        yield "Strength", "weak: epsilon is above 3"
    limits = "none is enforced: a person with several rounds has a weaker guarantee, below"
    if persons:
        each = "each in a batch of its own; a slot counts the mean of its rounds once"
        if _in_epochs(certificate):
            each = "once in each"
        limits = f"{_slots(certificate)} a person, {each}; what a person says beyond is not used"
    yield "Contribution limits", limits
    if not persons:
        shown = ", ".join(f"{k} rounds {plain(_grouped(spent, k).epsilon)}" for k in (2, 5, 10))
        yield "Epsilon for one person's", shown
    yield "Composition", certificate["because"]


def _parts(parts: Iterable[JSON]) -> str:
    return ", ".join(f"{one['what']} {plain(one['epsilon'])}" for one in parts)


def _together(ledger: JSON) -> tuple[Entry, ...]:
    """Return what was spent on the people of a ledger."""
    at = f" at delta {plain(ledger['delta'])}" if ledger["delta"] else ""
    left = (f"{at_least(value)} for {name}" for name, value in ledger["left"].items())
    entries = [
        ("Budget", f"epsilon {plain(ledger['budget'])}{at}"),
        ("Spent", f"epsilon {at_most(ledger['spent'])}{at}"),
        ("Left for one more release", ", ".join(left)),
        ("How it adds up", str(ledger["rule"])),
    ]
    for one in ledger["entries"]:
        who = f", asked by {one['who']}" if one["who"] else ""
        about = f"epsilon {plain(one['epsilon'])} about {one['population']}"
        entries.append((str(one["at"])[:10], f"{about}: {one['what']}{who}"))
    return tuple(Entry(name, text, "ledger") for name, text in entries)


def _hides_presence(certificate: JSON) -> bool:
    """Whether it is of a log, and hides who is in it."""
    return str(certificate["mechanism"]) == "laplace-presence"


def _not_hidden(certificate: JSON) -> tuple[str, ...]:
    """Return what is not hidden by a promise."""
    return NOT_COVERED[2:] if _hides_presence(certificate) else NOT_COVERED


def _in_epochs(certificate: JSON) -> bool:
    """Whether it is of a policy that decides by context and releases epochs."""
    return str(certificate["mechanism"]).startswith("epoch-")


def _batches(certificate: JSON) -> str:
    """Say how many rounds are released together."""
    if _in_epochs(certificate):
        return f"epochs that grow, the first ones of at least {certificate['batch']} rounds"
    if _hides_presence(certificate):
        return "a log, whose size is not told, released once"
    return f"{batches_in_words(certificate['batch'])}, each released once"


def _mechanism(certificate: JSON) -> Iterator[tuple[str, object]]:
    """Yield how noise is added, and to what."""
    device = certificate["mechanism"] == "device-bit"
    model = {
        "central": "central: feedback is collected before noise is added",
        "local": "every value is released by itself, with its own noise"
        + (", on the person's device" if device else "; the operator sees it before"),
    }
    name = str(certificate["mechanism"])
    low, high = plain(certificate["loss_low"]), plain(certificate["loss_high"])
    bought = "range_epsilon" in certificate or bool(certificate.get("bounds"))
    chosen = "chosen privately from people's values" if bought else "public"
    sampler = f"{certificate['sampler']} ({certificate['sampler_version']})"
    yield "Trust model", model[certificate["model"]]
    yield "Mechanism", LAWS.get(name.removesuffix("-person"), name)
    yield "Batches", _batches(certificate)
    yield "Data domain", f"losses from {low} to {high}, a range that is {chosen}"
    yield "Randomness", f"{sampler}, exact, in integers"
    yield "Post-processing", "decisions and results use released values alone"


def _grouped(spent: Guarantee, size: int) -> Guarantee:
    epsilon = times_up(size, spent.epsilon)
    delta = group_delta(spent.epsilon, spent.delta, size)
    return Guarantee(epsilon, delta, "", "central", "", "")


def _factor(epsilon: float) -> str:
    """Write ``exp(epsilon)`` with three digits, rounded up."""
    digits = max(0, 2 - math.floor(epsilon / math.log(10)))
    scale = 10**digits
    return f"{math.ceil(math.exp(epsilon) * scale) / scale:,.{digits}f}"


def _slots(certificate: JSON) -> str:
    slots, unit = _per_person(certificate), "epoch" if _in_epochs(certificate) else "slot"
    return f"one {unit}" if slots == 1 else f"{slots} {unit}s"


def _per_person(certificate: JSON) -> int | None:
    """Return the slots of a person, if persons are protected."""
    by_person = str(certificate["mechanism"]).endswith("-person")
    known = by_person or composes_slots(certificate)
    slots: int | None = certificate["slots"] if known else None
    return slots


def _joint(certificate: JSON) -> bool:
    """Whether contexts are protected, against all others."""
    return str(certificate["mechanism"]).startswith("epoch-moments")


def _unit(certificate: JSON) -> str:
    what = "contexts and feedback" if _joint(certificate) else "feedback"
    if _per_person(certificate) is not None:
        return f"a person: all their {what}, in up to {_slots(certificate)}"
    return f"an event: the {what.replace('contexts', 'context')} of one round"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Privacy card</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff }
h2 { margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border-bottom: 1px solid #ddd; overflow-wrap: anywhere }
th { width: 11rem; font-weight: 600 }
.from { color: #666; width: 6rem; font-size: .85em }
.said { border-left: 4px solid #3b6ea5; padding-left: 1rem }
@media (max-width: 480px) { th, td { display: block; width: auto; border: 0; padding: 0 }
  td.from { width: auto; border-bottom: 1px solid #ddd; padding-bottom: .4rem;
    margin-bottom: .4rem } }
</style></head><body><h1>Privacy card</h1>BODY</body></html>
"""
