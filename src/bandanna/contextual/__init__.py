"""Decisions by what is known of the person: contexts, encoded and public or protected."""

from bandanna.contextual.answers import ContextAnswer
from bandanna.contextual.features import Declared, Encoder, Fitted
from bandanna.contextual.policy import PrivateContextual
from bandanna.contextual.simulation import (
    ContextRun,
    ContextTable,
    Replay,
    replay,
    simulate_context,
)
from bandanna.contextual.trees import PrivateTrees, TreeAnswer, simulate_trees

__all__ = [
    "ContextAnswer",
    "ContextRun",
    "ContextTable",
    "Declared",
    "Encoder",
    "Fitted",
    "PrivateContextual",
    "PrivateTrees",
    "Replay",
    "TreeAnswer",
    "replay",
    "simulate_context",
    "simulate_trees",
]
