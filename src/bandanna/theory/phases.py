"""How learners that play phases are run: Laplace noise on one sum for each arm of a phase.

Privacy: a round's feedback is in exactly one of the sums of its phase, whichever its arm, because
the arm is drawn without looking at it; it moves that sum by at most 1. So all sums of a phase
together are epsilon-private, phases are disjoint, and what is played next is computed from sums
that were released: epsilon for the whole run.
"""

from __future__ import annotations

import math

from bandanna._core.types import JSON, InputError
from bandanna.spec import Problem
from bandanna.theory.adaptive import net_regret
from bandanna.theory.centred import smallest_guarantee
from bandanna.theory.tuning import Bound, Tuning, growing_release

PHASED_UNPROVED = "none without a net: regret is measured. phased-net has one."
AB_TEST_UNPROVED = (
    "none for arbitrary losses: if the best arm changes after the exploration, regret is linear. "
    "On steady losses it is at most the exploration's plus what a wrong choice costs."
)
PROMISE = 5.0
"""With the net, regret of phased is at most this times the smallest guarantee known."""
LONG_FIRST = 1.5
"""There is a net if it has room for so many first phases."""
EXPLORE = 0.2
"""Share of the rounds that the A/B test explores in."""


OPENING, LONGEST_FIRST, LONGEST = 0.033, 0.2, 2**22
FIRST, ENOUGH, PLENTY = 5.0, 10.0, 120.0
"""What decides the length of the first phase; ``learners.phase_plan`` has the same numbers."""
PILOT, LEAST_PILOT, SHORT = 20.0, 12.0, 2.0
"""The same of the pilot, as in ``learners.phase_pilot``."""


def first_phase(problem: Problem) -> int:
    """Return the length of phased's first phase: noise is about as large as sampling then."""
    epsilon, rounds = problem.epsilon, problem.rounds
    size = problem.arms * max(FIRST / epsilon**2, 0.1 * PLENTY)
    if rounds is not None:
        most = problem.arms * max(ENOUGH / epsilon**2, PLENTY)
        size = min(max(size, min(OPENING * rounds, most)), LONGEST_FIRST * rounds)
    return math.ceil(min(max(size, 2.0), LONGEST))


def pilot_phase(problem: Problem) -> int:
    """Return the length of the first phase where there may be a pilot."""
    first = first_phase(problem)
    pilot = problem.arms * math.ceil(max(PILOT / problem.epsilon, LEAST_PILOT))
    return pilot if SHORT * pilot <= first else first


def few_rounds(problem: Problem) -> str:
    """Say that rounds are too few for any private algorithm; empty where they are not.

    With fewer than a pilot takes, what is lost is more than half of what choosing at random loses
    even where one arm is better by 0.3, whatever plays (``tests/theory/test_few_rounds.py``).
    """
    needed = problem.arms * math.ceil(max(PILOT / problem.epsilon, LEAST_PILOT))
    if problem.rounds is None or problem.rounds >= needed:
        return ""
    return (
        f"In {problem.rounds:,} rounds no private algorithm is much better than choosing at "
        f"random: at epsilon {problem.epsilon:.3g}, {problem.arms:,} arms need about {needed:,}."
    )


def phased(
    problem: Problem, batch: int | None = None, *, guard: bool = True, probes: bool = True
) -> Tuning:
    """Phases of lengths by epsilon, arms and rounds; without rounds they grow."""
    shape = {"arms": problem.arms, "epsilon": problem.epsilon, "rounds": problem.rounds}
    learner: JSON = {"name": "phased", **shape, "guard": guard, "probes": probes}
    return Tuning(learner, growing_release(problem, first_phase(problem)))


def phased_net(problem: Problem, batch: int | None = None) -> Tuning:
    """Phases with a pilot, and with a net under them where it would say something."""
    tuned = phased(problem)
    learner: JSON = {**tuned.learner, "pilot": True}
    promised = phased_promise(problem)
    if promised is not None:
        learner["budget"] = promised
    return Tuning(learner, growing_release(problem, pilot_phase(problem)))


def phased_promise(problem: Problem) -> float | None:
    """Return what the net keeps: ``PROMISE`` times the smallest guarantee; None without a net.

    There is no net without a number of rounds, where it would promise no more than choosing at
    random does, or where the first phase is too long for it.
    """
    if problem.rounds is None:
        return None
    arms, rounds, epsilon = problem.size
    promised = PROMISE * smallest_guarantee(arms, rounds, epsilon)
    if promised >= (1.0 - 1.0 / arms) * rounds:
        return None
    room = promised - net_regret(problem, min(max(1, round(2.0 / epsilon)), rounds))
    return promised if room > LONG_FIRST * first_phase(problem) else None


def phased_bound(problem: Problem, batch: int | None = None) -> Bound:
    """Return what the net under phases promises; ``InputError`` where there is none."""
    promised = phased_promise(problem)
    if promised is None:
        raise InputError(
            "there is no net without a number of rounds, nor where five times the smallest "
            "guarantee is more than choosing at random loses."
        )
    return Bound(
        "phases with a net under them (docs/theory/phases.md)",
        {f"{PROMISE:g} times the smallest guarantee": promised},
        pilot_phase(problem),
    )


def ab_test(problem: Problem, batch: int | None = None, *, explore: float = EXPLORE) -> Tuning:
    """Explore a share of the rounds in one phase, then play one arm."""
    rounds = problem.horizon("ab-test")
    if explore * rounds < problem.arms:
        enough = math.ceil(problem.arms / explore)
        raise InputError(
            f"ab-test explores {explore:.0%} of {rounds} rounds: too few to play each of "
            f"{problem.arms} arms once. {enough} rounds are enough."
        )
    learner = {"name": "ab-test", "arms": problem.arms, "rounds": rounds, "explore": explore}
    return Tuning(learner, growing_release(problem, max(math.floor(explore * rounds), 1)))
