"""Which of two reminders works better? A finished log answers, with one private release an arm.

The log is made up here; yours is a file. One row is one person: which reminder they got, by
chance, and whether they came.

python examples/answer_log.py [PEOPLE]
"""

import sys
from random import Random

import bandanna as bd

CAME = {"letter": 0.31, "text message": 0.36}


def main(people: int = 20_000) -> None:
    """Make a log, and ask it at three levels of privacy. Each question costs its own epsilon."""
    world = Random(3)
    reminders = [world.choice(list(CAME)) for _ in range(people)]
    log = {
        "reminder": reminders,
        "came": [float(world.random() < CAME[reminder]) for reminder in reminders],
    }
    for epsilon in (1.0, 0.1, 0.01):
        found = bd.answer(log, arm="reminder", outcome="came", epsilon=epsilon, reward=True)
        print(f"epsilon {epsilon:g}: {found.sentence}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
