"""Where no private algorithm can be much better than chance, that is said."""

from __future__ import annotations

import pytest

import bandanna as bd
from bandanna.environments import Segments
from bandanna.theory.phases import few_rounds

RIVALS = ("adaptive", "dp-klucb", "one-bit", "ab-test")


def lost(arms: int, rounds: int, epsilon: float, algorithm: str | None) -> float:
    """Return regret where one arm is better by 0.3, over that of choosing at random."""
    world = Segments([[0.2, *[0.5] * (arms - 1)]], [rounds], bernoulli=True)
    policy = bd.PrivateBandit(arms, epsilon, rounds, algorithm)
    found = bd.simulate(policy, world, replicates=200, checkpoints=1, progress=False)
    return float(found.regret("policy").mean() / found.uniform_regret[-1])


@pytest.mark.parametrize(("arms", "epsilon"), [(4, 0.1), (10, 0.5)])
def test_it_is_said_where_nothing_is_learned_and_only_there(arms: int, epsilon: float) -> None:
    """Means of 200 runs with fixed seeds: nothing is left to chance."""
    needed = round(20 * arms / epsilon)
    few, enough = needed // 4, needed
    policy = bd.PrivateBandit(arms, epsilon, few)
    assert f"need about {needed:,}." in policy.why
    assert f"need about {needed:,}." in repr(policy)
    assert "need about" not in repr(bd.PrivateBandit(arms, epsilon, enough))
    assert few_rounds(bd.Problem(arms, enough, epsilon)) == ""
    assert few_rounds(bd.Problem(arms, None, epsilon)) == ""
    assert min(lost(arms, few, epsilon, name) for name in (None, *RIVALS)) > 0.7
    assert lost(arms, enough, epsilon, None) < 0.65
    assert lost(arms, enough, epsilon, None) < min(lost(arms, enough, epsilon, a) for a in RIVALS)


@pytest.mark.parametrize(
    ("arms", "rounds", "epsilon"), [(2, 2, 0.1), (10, 5, 1.0), (1000, 300, 2.0), (3, 10, 100.0)]
)
def test_the_smallest_problems_are_played(arms: int, rounds: int, epsilon: float) -> None:
    policy = bd.PrivateBandit(arms, epsilon, rounds)
    for _ in range(rounds + 3):
        policy.observe(policy.decide(), loss=0.5)
    assert policy.decided == rounds + 3
    assert "no private algorithm" in policy.why
