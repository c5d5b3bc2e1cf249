"""Choose an offer by what is known of each customer, with their features and answers protected.

Young customers like the discount, customers of the gold plan the gift, and nobody the leaflet.

python examples/contextual.py [CUSTOMERS]
"""

import sys
from random import Random

import bandanna as bd

PLANS = ["bronze", "silver", "gold"]


def likes(offer: str, age: int, plan: str) -> float:
    """Return how likely a customer is to take an offer."""
    if offer == "discount":
        return 0.6 if age < 40 else 0.2
    if offer == "gift":
        return 0.6 if plan == "gold" else 0.2
    return 0.1


def main(customers: int = 40_000) -> None:
    """Offer, take answers, and say what was learned."""
    world = Random(5)
    policy = bd.PrivateContextual(
        arms=["discount", "gift", "leaflet"],
        features={"age": (18, 90), "plan": PLANS},
        epsilon=1.0,
        delta=1e-6,
        rounds=customers,
        protects="context and feedback",
        seed=5,
    )
    taken = 0
    for customer in range(customers):
        age, plan = world.randint(18, 90), world.choice(PLANS)
        decision = policy.decide(context={"age": age, "plan": plan})
        took = world.random() < likes(str(decision.arm), age, plan)
        policy.observe(decision, reward=float(took))
        taken += took and customer >= customers // 2
    print(policy)
    print(f"offers taken in the second half: {2 * taken / customers:.0%}")
    print(policy.answer())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
