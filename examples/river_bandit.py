"""Make a bandit of river private, and measure what that costs.

The bandit is not changed: it stands behind the one-bit release and sees released bits alone.

python examples/river_bandit.py [ROUNDS [REPLICATES]]
"""

import sys

from river import bandit

import bandanna as bd

ARMS = ["red", "green", "blue"]


def main(rounds: int = 10_000, replicates: int = 10) -> None:
    """Use it once, then compare over many runs."""
    ucb = bandit.BayesUCB(seed=0)
    private = bd.privatize(ucb, arms=ARMS, epsilon=0.5)
    decision = private.decide()
    private.observe(decision, reward=1.0)
    print(private.guarantee)

    results = bd.simulate(
        {
            "river, private": private,
            "river, no privacy": bd.Bandit(ARMS, learner=ucb),
            "one-bit, ours": bd.PrivateBandit(ARMS, epsilon=0.5, rounds=rounds),
        },
        bd.environments.Bernoulli([0.7, 0.5, 0.6], rounds),
        replicates=replicates,
    )
    print(results)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
