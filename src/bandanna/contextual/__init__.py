"""Decisions by what is known of the person: contexts, encoded and public or protected."""

from bandanna.contextual.answers import ContextAnswer
from bandanna.contextual.features import Declared, Encoder, Fitted
from bandanna.contextual.policy import PrivateContextual
from bandanna.contextual.simulation import (
    ContextComparison,
    ContextRun,
    ContextTable,
    Replay,
    compare_promises,
    replay,
    simulate_context,
)
from bandanna.contextual.trees import PrivateTrees, TreeAnswer, simulate_trees

__all__ = [
    "ContextAnswer",
    "ContextComparison",
    "ContextRun",
    "ContextTable",
    "Declared",
    "Encoder",
    "Fitted",
    "PrivateContextual",
    "PrivateTrees",
    "Replay",
    "TreeAnswer",
    "compare_promises",
    "replay",
    "simulate_context",
    "simulate_trees",
]
