"""EXP4 over all pruned trees of a context, by context-tree weights.

A context is a path from the root: one branch at each level. An expert is a pruned tree with an arm
at each leaf. There are more of them than can be listed, but their weights factorise (Willems,
Shtarkov and Tjalkens 1995): with ``L_s(a)`` the estimated loss of arm ``a`` at node ``s``,

    Q_s = 1/2 W_s + 1/2 prod_c Q_sc,    W_s = 1/K sum_a exp(-eta L_s(a)),

and ``Q_s = W_s`` at the bottom. A step touches the nodes of one path only. The prior weight of a
tree with m leaves is at least ``K^-m 2^-(2m - 1)``. Estimates are centred as in EXP4
(``bandanna.learners.centring``); the result is EXP4 with all these experts, to rounding.

Nodes are made when a path first visits them: before, ``Q`` is 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, once, step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.sampling import draw_arm

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOG_HALF = math.log(0.5)


class TreeParams(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    arms: int


class TreeState(NamedTuple):
    """Nodes in the order in which they were made; the root is the first."""

    losses: Floats
    """Estimated losses, shape (nodes, arms)."""
    stop: Floats
    """Logarithm of W."""
    weight: Floats
    """Logarithm of Q."""
    children: Integers
    """Node of each branch, or -1."""
    used: Integers
    """How many nodes there are."""
    path: Integers
    """Nodes of the context at hand, from the root."""
    chances: Floats
    """Probabilities of the arms for the current context."""


def start_tree(arms: int, depth: int, branches: int, nodes: int = 64) -> TreeState:
    """Return a tree with a root only."""
    assert nodes > depth, "one path must fit"
    return TreeState(
        np.zeros((nodes, arms)),
        np.zeros(nodes),
        np.zeros(nodes),
        np.full((nodes, branches), -1, dtype=np.int64),
        np.ones(1, dtype=np.int64),
        np.zeros(depth + 1, dtype=np.int64),
        np.zeros(arms),
    )


def with_room(state: TreeState) -> TreeState:
    """Return the same tree with room for one more path: twice the nodes if need be."""
    nodes, depth = len(state.stop), len(state.path) - 1
    if int(state.used[0]) + depth <= nodes:
        return state
    return TreeState(
        np.vstack([state.losses, np.zeros_like(state.losses)]),
        np.concatenate([state.stop, np.zeros(nodes)]),
        np.concatenate([state.weight, np.zeros(nodes)]),
        np.vstack([state.children, np.full_like(state.children, -1)]),
        *state[4:],
    )


@step
def walk(state: TreeState, branches: Integers) -> None:
    """Set the path of a context, making nodes that are new."""
    node = 0
    state.path[0] = 0
    for level in range(branches.size):
        following = state.children[node, branches[level]]
        if following < 0:
            following = state.used[0]
            state.used[0] += 1
            state.children[node, branches[level]] = following
        node = following
        state.path[level + 1] = node


@step
def set_chances(params: TreeParams, state: TreeState) -> None:
    """Compute the chances of the arms on the path: all trees, mixed by their weights."""
    chances, path = state.chances, state.path
    for a in range(params.arms):
        chances[a] = 0.0
    reach = 1.0
    last = path.size - 1
    for level in range(path.size):
        node = path[level]
        ends = 1.0 if level == last else math.exp(LOG_HALF + state.stop[node] - state.weight[node])
        total = state.stop[node] + math.log(params.arms)
        for a in range(params.arms):
            share = math.exp(-params.learning_rate * state.losses[node, a] - total)
            chances[a] += reach * ends * share
        reach *= max(1.0 - ends, 0.0)


@step
def tree_draw(
    params: TreeParams, state: TreeState, branches: Integers, stream: Stream
) -> tuple[int, float]:
    """Draw an arm for a context; returns it with its importance, one over its chance."""
    walk(state, branches)
    set_chances(params, state)
    return draw_arm(state.chances, stream)


@step
def tree_update(
    params: TreeParams,
    state: TreeState,
    branches: Integers,
    arm: int,
    importance: float,
    loss: float,
) -> None:
    """Learn from the loss of an arm that was drawn with that importance in that context."""
    walk(state, branches)
    set_chances(params, state)
    rate, estimates = params.learning_rate, state.chances
    for a in range(params.arms):
        baseline, _ = entropy_baseline(estimates[a] / rate)
        estimates[a] = baseline - 0.5
        if a == arm:
            estimates[a] += (loss - baseline) * importance
    last = state.path.size - 1
    for level in range(last, -1, -1):
        node = state.path[level]
        least = math.inf
        for a in range(params.arms):
            state.losses[node, a] += estimates[a]
            least = min(least, state.losses[node, a])
        total = 0.0
        for a in range(params.arms):
            total += math.exp(-rate * (state.losses[node, a] - least))
        state.stop[node] = math.log(total / params.arms) - rate * least
        if level == last:
            state.weight[node] = state.stop[node]
            continue
        below = 0.0
        for branch in range(state.children.shape[1]):
            child = state.children[node, branch]
            if child >= 0:
                below += state.weight[child]
        high, low = max(state.stop[node], below), min(state.stop[node], below)
        state.weight[node] = LOG_HALF + high + math.log1p(math.exp(low - high))


draw_by_tree, learn_by_tree = once(tree_draw), once(tree_update)


@kernel
def play_trees(
    params: TreeParams,
    state: TreeState,
    table: Integers,
    people: Integers,
    ones: Floats,
    arm_stream: Stream,
    bit_stream: Stream,
    arms: Integers,
) -> int:
    """Play in order until all people are served or there is no room for a path.

    ``table`` has the path of each person, ``ones`` the chance, for every round and arm, that the
    released bit is 1. Returns how many rounds were played.
    """
    room = state.stop.size - (state.path.size - 1)
    for t in range(people.size):
        if state.used[0] > room:
            return t
        branches = table[people[t]]
        arm, importance = tree_draw(params, state, branches, arm_stream)
        arms[t] = arm
        bit = 1.0 if uniform(bit_stream) < ones[t, arm] else 0.0
        tree_update(params, state, branches, arm, importance, bit)
    return people.size
