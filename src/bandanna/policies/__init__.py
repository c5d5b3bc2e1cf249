"""Private policies: the conversion of any learner, and the same without privacy."""

from __future__ import annotations

from bandanna.policies.bandit import Bandit, PrivateBandit, privatize
from bandanna.policies.batched import BatchedBandit
from bandanna.policies.named import CONTESTANTS, WITHOUT_EPSILON, make_policy
from bandanna.policies.recipe import ALGORITHMS, LEARNER_NAMES, Recipe
from bandanna.policies.state import load

__all__ = [
    "ALGORITHMS",
    "CONTESTANTS",
    "LEARNER_NAMES",
    "WITHOUT_EPSILON",
    "Bandit",
    "BatchedBandit",
    "PrivateBandit",
    "Recipe",
    "load",
    "make_policy",
    "privatize",
]
