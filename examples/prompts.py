"""Choose between prompts of a language model by users' private thumbs up or down.

Nobody knows which prompt suits which request, but there are rules of thumb. Each rule is an
expert who looks at a request and advises a prompt; the policy learns which expert to trust from
thumbs that it never shows. No model is needed here: users are simulated.

python examples/prompts.py [REQUESTS]
"""

import sys
from collections.abc import Callable
from random import Random

import bandanna as bd

PROMPTS = ["answer briefly", "think step by step", "give an example"]
# How often users are content, by kind of request and prompt.
CONTENT = {
    "fact": (0.9, 0.6, 0.5),
    "maths": (0.3, 0.8, 0.5),
    "code": (0.3, 0.6, 0.9),
}
EXPERTS: dict[str, Callable[[str], int]] = {
    "always briefly": lambda kind: 0,
    "always step by step": lambda kind: 1,
    "always an example": lambda kind: 2,
    "steps for maths, otherwise briefly": lambda kind: 1 if kind == "maths" else 0,
    "briefly for facts, otherwise an example": lambda kind: 0 if kind == "fact" else 2,
    "a prompt for each kind": list(CONTENT).index,
}


def main(requests: int = 30_000) -> None:
    """Serve requests and compare with every expert on its own."""
    users = Random(7)
    policy = bd.PrivateExperts(list(EXPERTS), PROMPTS, epsilon=1.0, rounds=requests, seed=7)
    print(policy.why)
    content = 0
    alone = dict.fromkeys(EXPERTS, 0.0)
    for _ in range(requests):
        kind = users.choice(list(CONTENT))
        decision = policy.decide([expert(kind) for expert in EXPERTS.values()])
        thumb = users.random() < CONTENT[kind][decision.index]
        policy.observe(decision, reward=float(thumb))
        content += thumb
        for name, expert in EXPERTS.items():
            alone[name] += CONTENT[kind][expert(kind)]
    print(f"{content / requests:.1%} of users content, at epsilon {policy.guarantee.epsilon:g}")
    for name, total in sorted(alone.items(), key=lambda item: -item[1]):
        print(f"{total / requests:.1%} expected of: {name}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
