"""People come back: everything one person contributes is protected, not only one visit.

Each person may have three slots. All their visits while a slot is open meet the same arm and count
once, by their mean. After a day, which is a rule that looks at nobody's feedback, slots are closed.

python examples/returning_people.py [PEOPLE]
"""

import sys
from random import Random

import bandanna as bd

CLICKS = {"old layout": 0.2, "new layout": 0.5}


def main(people: int = 3_000) -> None:
    """Let people come on some of ten days, up to four times a day."""
    world = Random(2)
    policy = bd.PrivateBandit(
        list(CLICKS), epsilon=2.0, delta=1e-6, rounds=3 * people, per_person=3, seed=2
    )
    for _ in range(10):
        today = [person for person in range(people) if world.random() < 0.3]
        for person in today:
            for _ in range(world.randint(1, 4)):
                decision = policy.decide(person=person)
                clicked = world.random() < CLICKS[str(decision.arm)]
                policy.observe(decision, reward=float(clicked))
            policy.finish(person)
    print(policy)
    print(policy.guarantee.protects)
    print(policy.summary())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
