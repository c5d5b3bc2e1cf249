"""Private policies: the conversion of any learner, and the same without privacy."""

from __future__ import annotations

from bandanna.policies.bandit import Bandit, PrivateBandit, privatize
from bandanna.policies.expert_recipe import EXPERT_ALGORITHMS, ExpertRecipe
from bandanna.policies.experts import Experts, PrivateExperts
from bandanna.policies.loading import load
from bandanna.policies.named import (
    CONTESTANTS,
    EXPERT_CONTESTANTS,
    WITHOUT_EPSILON,
    make_expert_policy,
    make_policy,
)
from bandanna.policies.policy import Policy
from bandanna.policies.recipe import ALGORITHMS, LEARNER_NAMES, Recipe

__all__ = [
    "ALGORITHMS",
    "CONTESTANTS",
    "EXPERT_ALGORITHMS",
    "EXPERT_CONTESTANTS",
    "LEARNER_NAMES",
    "WITHOUT_EPSILON",
    "Bandit",
    "ExpertRecipe",
    "Experts",
    "Policy",
    "PrivateBandit",
    "PrivateExperts",
    "Recipe",
    "load",
    "make_expert_policy",
    "make_policy",
    "privatize",
]
