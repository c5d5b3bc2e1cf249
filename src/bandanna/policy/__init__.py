"""Private policies: the conversion of any learner, and the same without privacy."""

from __future__ import annotations

from bandanna.policy.facade import (
    Bandit,
    Experts,
    PrivateBandit,
    PrivateExperts,
    privatize,
)
from bandanna.policy.parts import Recipe
from bandanna.policy.policy import Policy
from bandanna.policy.segments import Segments

__all__ = [
    "Bandit",
    "Experts",
    "Policy",
    "PrivateBandit",
    "PrivateExperts",
    "Recipe",
    "Segments",
    "privatize",
]
