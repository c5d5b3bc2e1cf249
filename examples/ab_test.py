"""A private A/B/n test of a page, with feedback that comes a week late or never.

Each visitor sees one of three pages. A week later, not sooner, we look whether they bought: at a
fixed time, because a purchase that is reported when it happens tells what it was by its arrival.
Some visitors have left by then, whatever they bought; for them a fixed loss is counted.

python examples/ab_test.py [VISITORS]
"""

import sys
from collections import Counter, deque
from random import Random
from tempfile import TemporaryDirectory

import bandanna as bd

BUYERS = {"old page": 0.10, "short page": 0.12, "new page": 0.30}
WEEK = 700  # visitors that arrive in a week
STAY = 0.9  # share of visitors whose purchase can be looked up a week later


def main(visitors: int = 20_000) -> None:
    """Run the test, moving to another machine halfway."""
    world = Random(1)
    pages = list(BUYERS)
    test: bd.Policy = bd.PrivateBandit(pages, 0.5, rounds=visitors, default_loss=1.0, seed=1)
    print(test)
    waiting: deque[tuple[bd.Decision, bool]] = deque()
    shown: Counter[str] = Counter()
    for visitor in range(visitors):
        decision = test.decide()
        shown[str(decision.arm)] += 1
        waiting.append((decision, world.random() < BUYERS[str(decision.arm)]))
        if len(waiting) > WEEK:
            answer(test, *waiting.popleft(), known=world.random() < STAY)
        if visitor == visitors // 2:
            test = moved(test)
    print(f"{visitors:,} visitors at epsilon {test.guarantee.epsilon:g}; shown:", dict(shown))
    print(f"{test.waiting} purchases are still to be looked up; none of them has been used.")


def answer(test: bd.Policy, decision: bd.Decision, bought: bool, known: bool) -> None:
    """Take a visitor's feedback, or count what was fixed for those who left."""
    if known:
        test.observe(decision, reward=float(bought))
    else:
        test.give_up(decision)


def moved(test: bd.Policy) -> bd.Policy:
    """Save and resume. The file holds raw feedback: the folder is deleted with it."""
    with TemporaryDirectory() as folder:
        test.save(f"{folder}/test.json")
        loaded: bd.Policy = bd.load(f"{folder}/test.json")
        return loaded


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
