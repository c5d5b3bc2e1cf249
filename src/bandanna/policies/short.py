"""Batches with fewer counted slots than planned: what they publish, and what is learned from it.

A batch of people's slots may close with fewer of them than planned, and slots beyond a person's cap
count nothing. How many slots of a batch count is public: it follows from who came, never from what
anyone said. So it may be used:

- the slots that are missing count the middle of the loss range in the sum, which is the same for
  every arm. The release is the one for a whole batch, with the same numbers and the same epsilon.
- a learner of losses takes the value as it is: the mean loss of the whole batch, in which missing
  slots lose the same whatever is played. Its regret is that of the slots that count.
- where means are estimated, by ``summary`` and by learners that count rounds, the middle is taken
  out again: ``rescaled``.
- a batch in which nothing counts publishes nothing and teaches nothing.

``docs/theory/people.md`` has the proofs. Everything here is a function of public numbers and of
released values.
"""

from __future__ import annotations

from bandanna.learners.steps import CHOSEN
from bandanna.policies.among import Drawn

MIDDLE = 0.5
"""What a missing slot counts, on the scale from 0 to 1."""


def rescaled(value: float, planned: int, counted: int) -> float:
    """Return an unbiased value for the slots that count, given the value of the whole batch.

    Examples
    --------
    >>> rescaled(0.4, planned=10, counted=10), rescaled(0.4, planned=10, counted=5)
    (0.4, 0.30000000000000004)
    """
    if counted == planned:
        return value
    return MIDDLE + (planned / counted) * (value - MIDDLE)


def evidence(value: float, importance: float, planned: int, counted: int) -> tuple[float, int]:
    """Return the value that a learner is told, and of how many rounds.

    A learner that estimates means and chose the arm by a rule (``dp-klucb``) is told the mean of
    the slots that count, and how many they are. All others are told the value of the whole batch.
    """
    if counted == planned or importance != CHOSEN:
        return value, planned
    return rescaled(value, planned, counted), counted


def within_reach(drawn: Drawn, people: int, first: int) -> Drawn:
    """Shorten a growing batch to the number of people who can fill it, but not below the first.

    ``people`` is how many are known who have slots left: public, as who comes is.
    """
    if drawn.importance != CHOSEN:
        return drawn
    return drawn._replace(size=min(drawn.size, max(first, people)))


def sealed(unused: int, planned: int) -> bool:
    """Whether a batch takes no more people, though it has slots left.

    That is when as many rounds were in no slot as it was to have slots: people come back whose slot
    in it has closed, and others do not come. It depends on who came alone.
    """
    return unused >= planned
