"""Private policies: the conversion of any learner, and the same without privacy."""

from __future__ import annotations

from bandanna.policies.bandit import Bandit, PrivateBandit, privatize
from bandanna.policies.experts import Experts, PrivateExperts
from bandanna.policies.loading import load
from bandanna.policies.policy import Policy
from bandanna.policies.recipe import Recipe
from bandanna.policies.segments import Segments

__all__ = [
    "Bandit",
    "Experts",
    "Policy",
    "PrivateBandit",
    "PrivateExperts",
    "Recipe",
    "Segments",
    "load",
    "privatize",
]
