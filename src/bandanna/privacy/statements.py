"""Every sentence that a guarantee may state: what is protected, why, and what is assumed.

They are part of the promise, so a certificate may state these and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.types import JSON, plain

POST_PROCESSING = "batches are disjoint and the rest is post-processing (Lemma 'Privacy guarantee')"

PROTECTED = "the feedback of any one round, against everyone who sees all decisions and releases"
PROTECTED_WITH_EXPERTS = (
    f"{PROTECTED}; against those who see only which experts were followed, also the advice of any "
    f"one round (the actions do show advice)"
)
PROTECTED_ON_DEVICE = f"{PROTECTED}, the operator among them: feedback stays on the person's device"

PRESENCE = (
    "whether any one person, who has one row or counts once, is in the log, with their arm, group "
    "and outcome, against everyone who sees what is said of it"
)
DECLARED = "arms and groups were declared without looking at the log"

WEIGHING = "exp4"
"""Algorithms with this in their names weigh all experts in every round, so they cannot hide advice;
others draw an expert and follow it."""

ONE_ROUND = "each person's feedback is one round's; k rounds of one person cost k times epsilon"
ONE_NAME = (
    "each person comes under one name, and slots close by a public rule that looks at nobody's "
    "feedback; whoever comes under two names counts as two people"
)
ONE_NAME_IN_EPOCHS = (
    "each person comes under one name; whoever comes under two names counts as two people"
)
PARTICIPATION = (
    "who comes, when and how often does not depend on feedback that was not released: someone who "
    "stays away because of what they met shows it"
)
CAPS_RESUMED = (
    "nobody takes a slot between saving a file and resuming from it; otherwise slots used since "
    "are forgotten, and a person may have as many again"
)
EPOCHS_RESUMED = (
    "nobody is decided for between saving a file and resuming from it; otherwise epochs in which "
    "they were counted since are forgotten, and a person may be counted in as many again"
)
ALWAYS_ASSUMED = (
    "whether and when feedback arrives does not depend on what it says",
    "only those who may see feedback call observe: it tells whether a repeated value is the same",
    "between saving a file and resuming from it no feedback is observed, and it is resumed once; "
    "otherwise open batches are released twice",
    "how long things take, and the memory of this process, are not watched",
)
PUBLIC_ADVICE = (
    "experts' advice is public: each action shows something of the advice it was drawn from, and "
    "the advice of a round does not depend on feedback that was not released"
)
DRAWN_ON_DEVICE = (
    "the code on each person's device draws one bit for an event, by these numbers, once, and "
    "sends it at a time fixed beforehand, and nothing else; whoever delivers that code could read "
    "feedback"
)
PUBLIC_ARMS = (
    "which arms are eligible is public, and does not depend on feedback that was not released"
)
ARMS_CHANGED = (
    "arms were added or retired after the start; which and when is public, and does not depend on "
    "feedback that was not released"
)
PUBLIC_ROWS = (
    "which rows the log has, and the arm and the categories of each, are public, and do not depend "
    "on outcomes; nothing else was released of the same outcomes"
)
PUBLIC_EXPOSURES = (
    "who was exposed to which arm, and when, is public, and does not depend on facts that were not "
    "released; nothing else was released of the same facts"
)
FOREIGN_LEARNER = "the learner had seen no private data, and nobody else feeds it"

PUBLIC_CONTEXTS = "contexts are public, and do not depend on feedback that was not released"
PUBLIC_FEATURES = (
    "features, their ranges and categories, and the encoder were fixed without looking at the "
    "people who are protected"
)

SOMETIMES_ASSUMED = {
    *(FOREIGN_LEARNER, PUBLIC_ARMS, ARMS_CHANGED),
    *(PUBLIC_ROWS, PUBLIC_EXPOSURES, PUBLIC_CONTEXTS, PUBLIC_FEATURES),
}
"""What learners, contexts and changing arms may add; a learner from outside adds its own."""


def range_assumed(low: float, high: float, *, clip: bool = False, bought: bool = False) -> str:
    """Return the sentence about the range of losses, which may have been ``bought``."""
    outside = "; what is outside is moved to its nearer end" if clip else ""
    how = "fixed without looking at them"
    if bought:
        how = "chosen privately from people's values, which cost an epsilon of its own"
    return f"losses are from {plain(low)} to {plain(high)}, a range {how}{outside}"


def frozen_assumed(column: str) -> str:
    """Return the sentence about a column that is subtracted from outcomes."""
    return (
        f"the column {column!r}, which is subtracted, was frozen before anyone met an arm; where "
        f"it holds feedback that was released before, the epsilon of that adds up with this one"
    )


def before_assumed(name: str, before: float, together: float) -> str:
    """Return the sentence about what a decision comes with and is subtracted from its outcome."""
    held = "it holds no feedback that was released before"
    if before:
        held = (
            f"it holds feedback that was released before with epsilon {plain(before)}, which has "
            f"{plain(together)} in all (Lemma 'Basic Composition')"
        )
    return (
        f"what is subtracted from a person's outcome, {name!r}, was known before the decision, is "
        f"kept with it unchanged, and is covered by the same noise; {held}"
    )


def first_assumed(rounds: int) -> str:
    """Return the sentence about a first phase that finds how outcomes are counted."""
    return (
        f"how outcomes are counted is found from the first {rounds:,} rounds or slots, which are "
        f"used for nothing else; that costs each of them no more than any other is promised"
    )


def batches_in_words(batch: int) -> str:
    """Say how many rounds are released together, given the most that can be.

    Examples
    --------
    >>> batches_in_words(12), batches_in_words(10**12)
    ('batches of 12', 'batches of sizes decided from earlier releases')
    """
    if batch >= MAX_ROUNDS:
        return "batches of sizes decided from earlier releases"
    return f"batches of {batch:,}"


def started_assumed(log: float, together: float) -> str:
    """Return the sentence about the people of a log that a policy starts from."""
    return (
        f"nobody is both in the log that it starts from and in the run: who is in the run alone is "
        f"protected with its epsilon, who is in the log alone with that of the log, {plain(log)}; "
        f"who is in both has {plain(together)} in all (Lemma 'Basic Composition')"
    )


def assumed_by_all(
    low: float,
    high: float,
    *,
    clip: bool = False,
    slots: int | None = None,
    in_epochs: bool = False,
    bought: bool = False,
) -> tuple[str, ...]:
    """Return what every policy assumes; ``slots`` are those a person may have, if it knows any.

    ``in_epochs`` if a person's slots are epochs, which take no several rounds.
    """
    who: tuple[str, ...] = (ONE_ROUND,)
    if slots is not None:
        who = (ONE_NAME, PARTICIPATION, CAPS_RESUMED)
    if slots is not None and in_epochs:
        who = (ONE_NAME_IN_EPOCHS, PARTICIPATION, EPOCHS_RESUMED)
    return range_assumed(low, high, clip=clip, bought=bought), *who, *ALWAYS_ASSUMED


PERSON_ENTRIES = ("slots", "slot_epsilon", "slot_delta")
"""Entries of a certificate for all that a person contributes, composed from its slots."""


def composes_slots(data: JSON) -> bool:
    """Whether a certificate is for all of a person's slots, each of which cost as much."""
    return "slot_epsilon" in data


def protected_person(slots: int) -> str:
    """Return what is protected with a number of slots a person: all that they contribute."""
    where = "one slot, ever" if slots == 1 else f"up to {slots} slots, each in its own batch"
    return (
        f"all feedback of one person, however often they come ({where}; what they say beyond is "
        f"not used), against everyone who sees all decisions and releases; that they came, and "
        f"how often, is not hidden"
    )


def composition_of(slots: int, delta: float) -> str:
    """Return by which argument the slots of a person add up."""
    if slots == 1 and delta == 0.0:
        return "a person's rounds count once, by their mean, and a person has one slot"
    if delta == 0.0:
        return (
            f"a person's rounds in a slot count once, by their mean, and {slots} slots add up "
            f"(Lemma 'Basic Composition')"
        )
    return (
        f"a person's rounds in a slot count once, by their mean, and {slots} slots compose as "
        f"randomised response does (Kairouz, Oh, Viswanath 2017, Theorem 3.3)"
    )


def protected(algorithm: str, experts: int | None, *, on_device: bool = False) -> str:
    """Return what an algorithm protects."""
    if on_device:
        return PROTECTED_ON_DEVICE
    hides_advice = WEIGHING not in algorithm and experts is not None and experts > 1
    return PROTECTED_WITH_EXPERTS if hides_advice else PROTECTED


class Assumed(NamedTuple):
    """What decides which assumptions a certificate must state."""

    low: float
    high: float
    experts: int | None
    slots: int | None = None
    in_epochs: bool = False
    bought: bool = False


def wrong_assumptions(
    stated: Sequence[object], about: Assumed, also: tuple[str, ...] = ()
) -> list[str]:
    """Return what is missing from stated assumptions, repeated or not known here.

    ``also`` are those that a mechanism adds.
    """
    texts = [text for text in stated if isinstance(text, str)]
    ends = about.low, about.high
    clip = range_assumed(*ends, clip=True, bought=about.bought) in texts
    advice = () if about.experts is None else (PUBLIC_ADVICE,)
    common = assumed_by_all(
        *ends, clip=clip, slots=about.slots, in_epochs=about.in_epochs, bought=about.bought
    )
    needed = {*common, *advice, *also}
    wrong = [f"missing: {text}" for text in sorted(needed - set(texts))]
    wrong += [f"not known here: {text}" for text in texts if text not in needed | SOMETIMES_ASSUMED]
    if len(texts) != len(stated) or len(set(texts)) != len(texts):
        wrong.append("not a list of different sentences")
    return wrong
