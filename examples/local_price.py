"""What local privacy costs: one-bit algorithms on the device against central ones.

With batches of one a person's own device can randomise the feedback, and nobody else sees it. A
central policy may add the noise to a batch instead, at the same epsilon. Local algorithms are
compared with each other and with central ones, at epsilons that users of local privacy choose.

python examples/local_price.py [ROUNDS [RUNS]]
"""

import sys

import bandanna as bd

ARMS = 4
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def contestants(epsilon: float, rounds: int) -> dict[str, bd.PrivateBandit | bd.Bandit]:
    """Return local policies, those that a device can feed with bits first, and central ones."""

    def policy(algorithm: str, batch: int | None = None) -> bd.PrivateBandit:
        return bd.PrivateBandit(ARMS, epsilon, rounds, algorithm, batch=batch)

    return {
        "local one-bit": policy("one-bit", batch=1),
        "local one-bit-exp3": policy("one-bit-exp3", batch=1),
        "local ldp-exp3": policy("ldp-exp3"),
        "local dp-exp3-lap": policy("dp-exp3-lap"),
        "central one-bit": policy("one-bit"),
        "central htinf": policy("htinf"),
        "no privacy": bd.Bandit(ARMS),
    }


def main(rounds: int = 100_000, runs: int = 200) -> None:
    """Simulate, and print regret with its standard error."""
    for epsilon in EPSILONS:
        policies = contestants(epsilon, rounds)
        losses = bd.environments.Bernoulli(ARMS, rounds, gap=0.1)
        results = bd.simulate(policies, losses, replicates=runs)
        print(f"epsilon {epsilon:g}, {rounds:,} rounds, {runs} runs: mean regret")
        for name, policy in policies.items():
            regret = results.regret(name)
            error = regret.std() / len(regret) ** 0.5
            batch = policy.guarantee.facts.get("batch", 1)
            print(f"  {name:18} {regret.mean():9,.1f} (s.e. {error:.1f}), batches of {batch}")


if __name__ == "__main__":
    main(*(int(float(size)) for size in sys.argv[1:]))
