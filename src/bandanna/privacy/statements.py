"""Every sentence that a guarantee may state: what is protected, why, and what is assumed.

They are part of the promise, so a certificate may state these and no others.
"""

from __future__ import annotations

from collections.abc import Sequence

from bandanna.types import plain

POST_PROCESSING = "batches are disjoint and the rest is post-processing (Lemma 'Privacy guarantee')"

PROTECTED = "the feedback of any one round, against everyone who sees all decisions and releases"
PROTECTED_WITH_EXPERTS = (
    f"{PROTECTED}; against those who see only which experts were followed, also the advice of any "
    f"one round (the actions do show advice)"
)

FOLLOWING = "-conversion"
"""Algorithms with this in their names draw an expert and follow it; no others can hide advice."""

ALWAYS_ASSUMED = (
    "each person's feedback is one round's; k rounds of one person cost k times epsilon",
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
FOREIGN_LEARNER = "the learner had seen no private data, and nobody else feeds it"

SOMETIMES_ASSUMED = {FOREIGN_LEARNER}
"""What learners may add; one from outside the package adds its own sentences here."""


def range_assumed(low: float, high: float, *, clip: bool = False) -> str:
    """Return the sentence about the range of losses."""
    outside = "; what is outside is moved to its nearer end" if clip else ""
    return (
        f"losses are from {plain(low)} to {plain(high)}, a range fixed without looking at "
        f"them{outside}"
    )


def assumed_by_all(low: float, high: float, *, clip: bool = False) -> tuple[str, ...]:
    """Return what every policy assumes."""
    return range_assumed(low, high, clip=clip), *ALWAYS_ASSUMED


def protected(algorithm: str, experts: int | None) -> str:
    """Return what an algorithm protects."""
    hides_advice = FOLLOWING in algorithm and experts is not None and experts > 1
    return PROTECTED_WITH_EXPERTS if hides_advice else PROTECTED


def wrong_assumptions(
    stated: Sequence[object], low: float, high: float, experts: int | None
) -> list[str]:
    """Return what is missing from stated assumptions, repeated or not known here."""
    texts = [text for text in stated if isinstance(text, str)]
    clip = range_assumed(low, high, clip=True) in texts
    advice = () if experts is None else (PUBLIC_ADVICE,)
    needed = {*assumed_by_all(low, high, clip=clip), *advice}
    wrong = [f"missing: {text}" for text in sorted(needed - set(texts))]
    wrong += [f"not known here: {text}" for text in texts if text not in needed | SOMETIMES_ASSUMED]
    if len(texts) != len(stated) or len(set(texts)) != len(texts):
        wrong.append("not a list of different sentences")
    return wrong
