"""Deciding by trees of the declared features, with a guarantee for losses of any kind.

Contexts are public. Every feature is one or more levels of a tree, in the order in which features
are declared: a level of branches for categories, with one more for missing and undeclared ones;
levels of halves for a range. All trees that prune this one, with an arm at each leaf, are EXP4's
experts (``bandanna.learners.context_trees``). Every round is a batch of one, released as one bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Advice, Ticket
from bandanna._core.grid import UNITS
from bandanna._core.html import table as html_table
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.contextual.features import Categories, Context, Declared, Encoder
from bandanna.contextual.plays import ContextLearner, ContextPlay, checked_ticket
from bandanna.contextual.policy import KINDS, PrivateContextual
from bandanna.contextual.simulation import losses_of
from bandanna.contextual.steps import Floats
from bandanna.learners.context_trees import (
    TreeParams,
    TreeState,
    draw_by_tree,
    learn_by_tree,
    play_trees,
    start_tree,
    with_room,
)
from bandanna.policy.parts import Recipe
from bandanna.policy.state import EligibleArms
from bandanna.privacy import Release
from bandanna.privacy.composition import slot_for
from bandanna.privacy.epochs import Protects
from bandanna.privacy.one_bit import OneBitRelease
from bandanna.privacy.release import Released, Tally
from bandanna.privacy.statements import PUBLIC_CONTEXTS, PUBLIC_FEATURES
from bandanna.spec import Spec
from bandanna.theory.exp4 import TreeBound, tree_bound, tree_rate

MAX_DEPTH = 24
Integers = NDArray[np.int64]


class Levels:
    """Declared features as levels of a tree.

    Examples
    --------
    >>> bins = Levels(Declared({"plan": ["bronze", "gold"], "age": (0, 100)}), bins=4)
    >>> bins.depth, bins.branches
    (3, 3)
    >>> bins.path({"plan": "gold", "age": 80}).tolist()
    [1, 1, 1]
    """

    def __init__(self, declared: Declared, bins: int = 4) -> None:
        self.declared = declared
        self.bins = checks.whole("bins", bins, 2, 1024)
        self.halvings = self.bins.bit_length() - 1
        if 2**self.halvings != self.bins:
            raise InputError(f"bins must be a power of two, such as 4 or 8; got {bins}.")
        features = declared.features.values()
        self.depth = sum(1 if isinstance(one, Categories) else self.halvings for one in features)
        if self.depth > MAX_DEPTH:
            raise InputError(
                f"the features make a tree of depth {self.depth}; at most {MAX_DEPTH} works. Use "
                f"fewer features or bins."
            )
        counts = [len(one.categories) + 1 for one in features if isinstance(one, Categories)]
        self.branches = max([2, *counts])

    def path(self, context: Context) -> Integers:
        """Return the branch of a context at every level."""
        return np.array(self._branches(self.declared.raw(context)), dtype=np.int64)

    def paths(self, table: object) -> Integers:
        """Return the branches of every row."""
        raw = self.declared.raw_table(table)
        return np.array([self._branches(row) for row in raw], dtype=np.int64)

    def _branches(self, raw: NDArray[np.float64]) -> list[int]:
        path: list[int] = []
        for value, feature in zip(raw.tolist(), self.declared.features.values(), strict=True):
            if isinstance(feature, Categories):
                path.append(int(value) if value >= 0.0 else len(feature.categories))
            else:
                which = feature.bin(value, self.bins)
                path += [which >> shift & 1 for shift in reversed(range(self.halvings))]
        return path

    def words(self, path: Sequence[int]) -> str:
        """Say which contexts a path from the root holds."""
        said, left = [], list(path)
        for name, feature in self.declared.features.items():
            if not left:
                break
            if isinstance(feature, Categories):
                k = left.pop(0)
                known = feature.categories
                said.append(f"{name} = {known[k]}" if k < len(known) else f"{name} not known")
                continue
            low, high = feature.low, feature.high
            for half in left[: self.halvings]:
                middle = (low + high) / 2.0
                low, high = (middle, high) if half else (low, middle)
            left = left[self.halvings :]
            said.append(f"{name} from {low:g} to {high:g}")
        return ", ".join(said) or "everyone"


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree."""

    who: str
    arm: ArmName


@dataclass(frozen=True)
class TreeAnswer:
    """The pruned tree with the largest weight: it follows from released bits."""

    leaves: tuple[Leaf, ...]
    nodes: int
    """Nodes that contexts have visited."""

    @property
    def best(self) -> ArmName | None:
        """The arm of the tree, if it has one leaf."""
        return self.leaves[0].arm if len(self.leaves) == 1 else None

    def __str__(self) -> str:
        return "\n".join(f"{leaf.who}: {leaf.arm}" for leaf in self.leaves)

    def _repr_html_(self) -> str:
        rows = [[leaf.who, str(leaf.arm)] for leaf in self.leaves]
        return html_table("The likeliest tree", ["who", "arm"], rows)


@dataclass(frozen=True)
class TreeLearner(ContextLearner):
    """All pruned trees of the features, weighed by what their leaves lost."""

    name: ClassVar[str] = "trees"
    assumptions: ClassVar[tuple[str, ...]] = (PUBLIC_CONTEXTS, PUBLIC_FEATURES)
    arms: int
    encoder: Declared
    leaves: int
    """Leaves of the tree that the learning rate is for."""
    levels: Levels

    def encode(self, context: Context) -> Integers:
        """Return the branches of a context."""
        return self.levels.path(context)

    def begin(self, release: Release, rounds: int, stream: Stream) -> TreePlay:
        """Begin to play with the rate for so many rounds."""
        rate = tree_rate(self.arms, rounds, self.leaves)
        return TreePlay(self, TreeParams(rate, self.arms), release, stream)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        made = {"name": self.name, "arms": self.arms, "encoder": self.encoder.to_dict()}
        return made | {"leaves": self.leaves, "bins": self.levels.bins}


class TreePlay(ContextPlay):
    """The tree of all contexts so far."""

    def __init__(
        self, learner: TreeLearner, params: TreeParams, release: Release, stream: Stream
    ) -> None:
        self.learner, self.params = learner, params
        self._release, self._stream = release, stream
        self._size = learner.arms, learner.levels.depth, learner.levels.branches
        self.tree: TreeState = start_tree(*self._size)

    def open(self, number: int) -> tuple[int, Tally]:
        """Open a batch of one."""
        return 1, self._release.start(1)

    def choose(
        self, choice: int, side: Advice | None, among: EligibleArms | None
    ) -> tuple[int, Ticket]:
        """Draw an arm by the mixture of all trees."""
        assert side is not None, "a round comes with a context"
        self.tree = with_room(self.tree)
        arm, importance = draw_by_tree(self.params, self.tree, side, self._stream)
        return arm, Ticket(side, arm, importance)

    def chances(self, side: Advice) -> Floats:
        """Return the probability of each arm in a context."""
        self.tree = with_room(self.tree)
        draw_by_tree(self.params, self.tree, side, self._stream.copy())
        return self.tree.chances.copy()

    def learn(self, released: Released, ticket: Ticket | None) -> None:
        """Learn from a bit; of a slot that never had a round there is nothing to learn."""
        assert isinstance(released, float), "a round is released as a bit"
        if ticket is None:
            return
        self.tree = with_room(self.tree)
        learn_by_tree(self.params, self.tree, *ticket, released)

    def as_ticket(self, saved: JSON) -> Ticket:
        """Read a ticket."""
        arms, depth, branches = self._size
        path = np.array(saved["advice"], dtype=np.int64)
        if path.shape != (depth,) or not ((path >= 0) & (path < branches)).all():
            raise ValueError("a waiting round holds impossible values")
        return checked_ticket(saved, path, arms)

    def state_dict(self) -> JSON:
        """Return the nodes there are."""
        used = int(self.tree.used[0])
        kept = ("losses", "stop", "weight", "children")
        return {name: getattr(self.tree, name)[:used].tolist() for name in kept}

    def load_state(self, state: JSON) -> None:
        """Go on with nodes that make a tree."""
        arms, depth, branches = self._size
        losses = np.array(state["losses"], dtype=np.float64)
        children = np.array(state["children"], dtype=np.int64)
        used = len(losses)
        fresh = start_tree(arms, depth, branches, max(64, 2 * used))
        fits = losses.shape == (used, arms) and np.isfinite(losses).all()
        if not used or not fits or children.shape != (used, branches):
            raise ValueError("its tree is impossible")
        below = children[children >= 0]
        if sorted(below.tolist()) != list(range(1, used)) or (children < -1).any():
            raise ValueError("its nodes do not make a tree")
        fresh.losses[:used], fresh.children[:used] = losses, children
        fresh.stop[:used], fresh.weight[:used] = state["stop"], state["weight"]
        fresh.used[0] = used
        self.tree = fresh


class PrivateTrees(PrivateContextual):
    """Decide by trees of the declared features; made by ``algorithm="trees"``."""

    saved_as = "PrivateContextual"
    plays = "trees"
    of_bits = True

    @classmethod
    def _recipe_with(
        cls, spec: Spec, encoder: Encoder, protects: Protects, leaves: int | None, bins: int | None
    ) -> Recipe:
        """Return the learner and the release: each round, or slot of a person, is a bit."""
        if protects != "feedback":
            raise InputError(
                'trees need public contexts: leave protects="feedback", or use algorithm="linear".'
            )
        if not isinstance(encoder, Declared):
            raise InputError("trees need declared features: ranges and categories by name.")
        own = checks.whole("leaves", 8 if leaves is None else leaves, 1, 10**6)
        levels = Levels(encoder, 4 if bins is None else bins)
        learner, each = TreeLearner(len(spec.arms), encoder, own, levels), spec.epsilon
        if spec.per_person is not None:
            each = slot_for(spec.epsilon, spec.delta, spec.per_person).epsilon
        return Recipe(learner, OneBitRelease(each, 1))

    @property
    def _play(self) -> TreePlay:
        return cast(TreePlay, self._state.learned)

    def among(self, eligible: object) -> EligibleArms | None:
        """Refuse: the trees of EXP4 play any arm."""
        raise InputError('eligible= goes with algorithm="linear"; trees draw among all arms.')

    def bound(self, leaves: int | None = None) -> TreeBound:
        """Return what regret is at most against every tree with so many leaves."""
        low, high = self.loss_range
        own, epsilon = self._play.learner.leaves, self.recipe.release.guarantee().epsilon
        limit = tree_bound(len(self.arms), self._rounds, epsilon, leaves or own, own)
        return limit._replace(regret=(high - low) * limit.regret)

    def answer(self) -> TreeAnswer:  # type: ignore[override]
        """Return the pruned tree with the largest weight; it costs no privacy."""
        play, levels = self._play, self._play.learner.levels
        with self._lock:
            likeliest = _likeliest(play.params, play.tree, 0, 0, levels.depth)[1]
            leaves = tuple(Leaf(levels.words(path), self.arms[arm]) for path, arm in likeliest)
            return TreeAnswer(leaves, int(play.tree.used[0]))

    def summary(self) -> TreeAnswer:  # type: ignore[override]
        """Return the same as ``answer``."""
        return self.answer()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} trees: {len(self.arms)} arms, depth "
            f"{self._play.learner.levels.depth}, {self.decided} decided, {self.waiting} waiting, "
            f"{self.released} bits released>"
        )


KINDS["trees"] = PrivateTrees


def _likeliest(
    params: TreeParams, tree: TreeState, node: int, level: int, depth: int
) -> tuple[float, list[tuple[tuple[int, ...], int]]]:
    """Return the largest log weight of a tree below a node, and its leaves."""
    losses = tree.losses[node]
    best = int(losses.argmin())
    stop = -params.learning_rate * float(losses[best]) - float(np.log(params.arms))
    if level == depth:
        return stop, [((), best)]
    total, leaves = 0.0, []
    for branch, child in enumerate(tree.children[node].tolist()):
        if child >= 0:
            weight, below = _likeliest(params, tree, child, level + 1, depth)
            total += weight
            leaves += [((branch, *path), arm) for path, arm in below]
    half = float(np.log(0.5))
    if not leaves or stop >= total:
        return half + stop, [((), best)]
    return half + total, leaves


@dataclass(frozen=True)
class TreeRun:
    """One simulated run."""

    arms: Integers
    rewards: NDArray[np.float64]
    nodes: int


def simulate_trees(
    table: object,
    features: Mapping[str, object],
    rewards: object,
    epsilon: float,
    rounds: int = 100_000,
    *,
    leaves: int = 8,
    bins: int = 4,
    seed: int = 0,
    in_order: bool = False,
) -> TreeRun:
    """Play trees against a table of features and rewards, compiled, bit for bit as online.

    People are drawn from the table with replacement, or come in its order, again and again.
    """
    declared = Declared(features)
    levels = Levels(declared, bins)
    paths = levels.paths(table)
    losses = losses_of(rewards, len(paths))
    arms = losses.shape[1]
    params = TreeParams(tree_rate(arms, rounds, leaves), arms)
    bit = OneBitRelease(epsilon, 1).fast()
    ones = np.asarray(bit.base + bit.slope * losses, dtype=np.float64)
    rng = np.random.default_rng([seed, 2])
    people = (
        np.arange(rounds) % len(paths) if in_order else rng.integers(0, len(paths), rounds)
    ).astype(np.int64)
    streams = new_stream([seed, 0]), new_stream([seed, 1])
    tree = start_tree(arms, levels.depth, levels.branches)
    played = np.empty(rounds, dtype=np.int64)
    start = 0
    while start < rounds:
        tree = with_room(tree)
        stop = min(start + 2**16, rounds)
        who = people[start:stop]
        start += play_trees(params, tree, paths, who, ones[who], *streams, played[start:stop])
    earned = 1.0 - losses[people, played] / UNITS
    return TreeRun(played, earned, int(tree.used[0]))
