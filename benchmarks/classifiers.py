"""Regret with three classifiers of handwritten digits as experts, for docs/experts.md."""

from __future__ import annotations

from research.experts import classifiers

import bandanna as bd

ROUNDS, RUNS = 20_000, 30


def main() -> None:
    """Print mean regrets: of the smallest guarantee, of defaults, and without privacy."""
    place = classifiers("all", ROUNDS, seed=1)
    size = place.experts, place.arms
    for epsilon in (0.1, 0.5, 1.0):
        best = bd.plan(place.arms, ROUNDS, epsilon, experts=place.experts).best.algorithm
        policies: dict[str, bd.Policy] = {
            f"{best}, the smallest guarantee": bd.PrivateExperts(
                *size, epsilon, rounds=ROUNDS, algorithm=best
            ),
            "auto": bd.PrivateExperts(*size, epsilon, rounds=ROUNDS),
            "losses='steady'": bd.PrivateExperts(*size, epsilon, rounds=ROUNDS, losses="steady"),
            "no privacy: exp4": bd.Experts(*size, ROUNDS, "exp4"),
            "no privacy: default": bd.Experts(*size, ROUNDS),
        }
        found = bd.simulate(policies, place, replicates=RUNS, seed=3, checkpoints=1)
        print(f"epsilon {epsilon:g}, best expert's reward {found.best_reward:.4f} a round")
        for name in policies:
            regret, reward = found.regret(name).mean(), found.reward(name).mean()
            print(f"  {name}: regret {regret:,.0f}, reward {reward:.4f} a round")


if __name__ == "__main__":
    main()
