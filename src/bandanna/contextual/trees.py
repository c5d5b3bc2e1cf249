"""Deciding by trees of the declared features, with a guarantee for losses of any kind.

Contexts are public. Every feature is one or more levels of a tree, in the order in which features
are declared: a level of branches for categories, with one more for missing and undeclared ones;
levels of halves for a range. All trees that prune this one, with an arm at each leaf, are EXP4's
experts (``bandanna.learners.context_trees``). Every round's loss is released as one bit.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import (
    UNITS,
    UNNAMED_FEEDBACK,
    array_to_units,
    check_range,
    feedback_to_units,
)
from bandanna._core.html import table as html_table
from bandanna._core.private_inputs import private_feedback, private_inputs
from bandanna._core.streams import Stream, new_stream, uniform
from bandanna._core.types import (
    JSON,
    ArmName,
    Decision,
    DecisionError,
    Guarantee,
    InputError,
    no_guarantee,
    without_frames,
)
from bandanna.contextual.features import Categories, Context, Declared, encoder_from_dict
from bandanna.contextual.policy import KINDS, MAX_ROUNDS, PrivateContextual
from bandanna.environments.frames import read_columns
from bandanna.learners.context_trees import (
    TreeParams,
    TreeState,
    draw_by_tree,
    learn_by_tree,
    play_trees,
    start_tree,
    with_room,
)
from bandanna.policy.transitions import as_decision
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.privacy.charges import charged
from bandanna.privacy.epochs import Protects
from bandanna.privacy.one_bit import OneBitRelease
from bandanna.privacy.statements import PUBLIC_CONTEXTS, PUBLIC_FEATURES, assumed_by_all
from bandanna.spec import arm_names
from bandanna.theory.exp4 import TreeBound, tree_bound, tree_rate

MAX_DEPTH = 24
Integers = NDArray[np.int64]


class Bins:
    """Declared features as levels of a tree.

    Examples
    --------
    >>> bins = Bins(Declared({"plan": ["bronze", "gold"], "age": (0, 100)}), bins=4)
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
        self.declared.encode(context)  # refuses what is wrong with it
        path: list[int] = []
        for name, feature in self.declared.features.items():
            value = context.get(name)
            if isinstance(feature, Categories):
                found = feature.index(value)
                path.append(found if found >= 0 else len(feature.categories))
            else:
                path += self._halves(feature.bin(value, self.bins))
        return np.array(path, dtype=np.int64)

    def paths(self, table: object) -> Integers:
        """Return the branches of every row."""
        columns = read_columns(table, list(self.declared.features))
        parts: list[NDArray[Any]] = []
        for name, feature in self.declared.features.items():
            column = np.asarray(columns[name])
            if isinstance(feature, Categories):
                found = [feature.index(value) for value in column.tolist()]
                parts.append(np.array([k if k >= 0 else len(feature.categories) for k in found]))
                continue
            scaled = feature.encode_column(column)[:, 0]
            which = np.minimum(((scaled + 1.0) / 2.0 * self.bins).astype(np.int64), self.bins - 1)
            parts += [which >> shift & 1 for shift in reversed(range(self.halvings))]
        return np.ascontiguousarray(np.stack(parts, axis=1), dtype=np.int64)

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

    def _halves(self, which: int) -> list[int]:
        return [which >> shift & 1 for shift in reversed(range(self.halvings))]


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


class PrivateTrees(PrivateContextual):
    """Decide by trees of the declared features; made by ``algorithm="trees"``."""

    saved_as = "PrivateTrees"
    algorithm = "trees"

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        features: Mapping[str, object] | Declared,
        epsilon: float,
        delta: float = 0.0,
        rounds: int = 100_000,
        protects: Protects = "feedback",
        *,
        algorithm: str = "trees",
        leaves: int | None = None,
        bins: int | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        clip: bool = False,
        seed: int | None = None,
        per_person: int | None = None,
    ) -> None:
        if per_person is not None:
            raise InputError('per_person goes with algorithm="linear".')
        if protects != "feedback":
            raise InputError(
                'trees need public contexts: leave protects="feedback", or use algorithm="linear".'
            )
        del algorithm, delta  # one-bit releases are pure
        encoder = features if isinstance(features, Declared) else Declared(features)
        self._settle(
            arm_names(arms),
            encoder,
            checks.whole("rounds", rounds, 1, MAX_ROUNDS),
            checks.whole("leaves", 8 if leaves is None else leaves, 1, 10**6),
            4 if bins is None else bins,
        )
        self.bit = OneBitRelease(epsilon, 1)
        self.loss_range = check_range(loss_range)
        self.clip = bool(clip)
        self.resumed = 0
        self._fresh(self.bit, new_stream(seed))

    def _settle(
        self, arms: tuple[ArmName, ...], encoder: Declared, rounds: int, leaves: int, bins: int
    ) -> None:
        self.arms, self.encoder, self.rounds, self.leaves = arms, encoder, rounds, leaves
        self._bins = Bins(encoder, bins)
        self._params = TreeParams(tree_rate(len(arms), rounds, leaves), len(arms))

    def _fresh(self, release: BitRelease, stream: Stream) -> None:
        self._belong_here()
        self._lock = threading.RLock()
        self._publish, self._stream = release, stream
        size = len(self.arms), self._bins.depth, self._bins.branches
        self._tree = start_tree(*size)
        self._identity = secrets.token_hex(8)
        self._issuers = [(0, self._identity)]
        self._decided = self._released = 0
        self._open: dict[int, tuple[int, float, Integers]] = {}

    # --- what a user calls ----------------------------------------------------------------

    @private_inputs
    def decide(self, context: Context, *, person: str | int | None = None) -> Decision:
        """Choose an arm for a person, whose context is public."""
        if person is not None:
            raise InputError("trees protect rounds and know no persons; leave out person=.")
        path = self._bins.path(context)
        self._check_process()
        with self._lock:
            self._tree = with_room(self._tree)
            arm, chance = draw_by_tree(self._params, self._tree, path, self._stream)
            number = self._decided
            self._decided = number + 1
            self._open[number] = arm, chance, path
            return Decision(self.arms[arm], arm, number, number, 0, self._identity, chance)

    @private_feedback
    def observe(
        self,
        decision: Decision | Mapping[str, object],
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
    ) -> None:
        """Take the feedback of a decision, once, and release it as one bit."""
        if unnamed:
            raise InputError(UNNAMED_FEEDBACK)
        made = as_decision(decision)
        units = feedback_to_units(loss, reward, self.loss_range, clip=self.clip)
        self._check_process()
        with self._lock:
            try:
                arm, chance, path = self._take(made)
                bit = float(self._publish.release(units))
            except DecisionError:
                raise
            except BaseException as error:
                raise without_frames(error) from None
            finally:  # no traceback carries them
                del loss, reward, units
            self._released += 1
            self._tree = with_room(self._tree)
            learn_by_tree(self._params, self._tree, path, arm, chance, bit)

    def give_up(self, decision: Decision | Mapping[str, object]) -> None:
        """Stop waiting for the feedback of a decision; it then counts for nothing."""
        made = as_decision(decision)
        with self._lock:
            self._open.pop(made.round, None)

    def _take(self, decision: Decision) -> tuple[int, float, Integers]:
        issuer = [name for first, name in self._issuers if first <= decision.round][-1]
        if decision.policy != issuer or not 0 <= decision.round < self._decided:
            raise DecisionError(f"decision {decision.round} was never made by this policy.")
        found = self._open.get(decision.round)
        if found is None:
            error = DecisionError(
                f"decision {decision.round} had its feedback, which was released, or was given up."
            )
            error.reason = "forgotten"
            raise error
        if found[0] != decision.index:
            raise DecisionError(f"decision {decision.round} was for another arm.")
        del self._open[decision.round]
        return found

    def rehearse(self, arm_stream: Stream, release_stream: Stream) -> Self:
        """Return a fresh copy with seeded streams, bits included: for tests and simulation."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._fresh(SeededBits(self.bit, release_stream), arm_stream)
        return copy

    # --- what it tells of itself ----------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round's feedback, and why."""
        promise = self._promise_once()
        return promise.repeated(self.resumed + 1) if promise.private and self.resumed else promise

    def _promise_once(self) -> Guarantee:
        """Return what a single release promises, however often the policy was resumed."""
        promise = self._publish.guarantee()
        if not promise.private:
            return promise
        return promise.assuming(
            *assumed_by_all(*self.loss_range, clip=self.clip), PUBLIC_CONTEXTS, PUBLIC_FEATURES
        )

    @property
    def protects(self) -> Protects:
        """Which promise holds."""
        return "feedback"

    @property
    def both(self) -> bool:
        """Contexts are public."""
        return False

    def certificate(self) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check."""
        setting = Setting(self._identity, "trees", len(self.arms), None, *self.loss_range)
        return charged(make_certificate(self._promise_once(), setting), self.resumed)

    def bound(self, leaves: int | None = None) -> TreeBound:
        """Return what regret is at most against every tree with so many leaves."""
        low, high = self.loss_range
        found = tree_bound(
            len(self.arms), self.rounds, self.bit.epsilon, leaves or self.leaves, self.leaves
        )
        return found._replace(regret=(high - low) * found.regret)

    def answer(self) -> TreeAnswer:  # type: ignore[override]
        """Return the pruned tree with the largest weight; it costs no privacy."""
        with self._lock:
            found = _likeliest(self._params, self._tree, 0, 0, self._bins.depth)[1]
            leaves = tuple(Leaf(self._bins.words(path), self.arms[arm]) for path, arm in found)
            return TreeAnswer(leaves, int(self._tree.used[0]))

    def summary(self) -> TreeAnswer:  # type: ignore[override]
        """Return the same as ``answer``."""
        return self.answer()

    def chances(self, context: Context) -> dict[ArmName, float]:
        """Return the probability of each arm for a context; nothing is decided."""
        path = self._bins.path(context)
        with self._lock:
            self._tree = with_room(self._tree)
            draw_by_tree(self._params, self._tree, path, self._stream.copy())
            return dict(zip(self.arms, self._tree.chances.tolist(), strict=True))

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return self._decided

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        return len(self._open)

    @property
    def released(self) -> int:
        """Bits released so far."""
        return self._released

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} trees: {len(self.arms)} arms, depth {self._bins.depth}, "
            f"{self.decided} decided, {self.waiting} waiting, {self.released} bits released>"
        )

    # --- files ----------------------------------------------------------------------------

    def to_dict(self, *, private: bool = True) -> JSON:
        """Return everything as plain values; no feedback is in it."""
        used = int(self._tree.used[0])
        return {
            "kind": self.saved_as,
            "algorithm": "trees",
            "arms": list(self.arms),
            "encoder": self.encoder.to_dict(),
            "epsilon": self.bit.epsilon,
            "rounds": self.rounds,
            "leaves": self.leaves,
            "bins": self._bins.bins,
            "loss_range": list(self.loss_range),
            "clip": self.clip,
            "resumed": self.resumed,
            "arm_stream": [int(word) for word in self._stream],
            "decided": self._decided,
            "released": self._released,
            "issuers": [list(pair) for pair in self._issuers],
            "open": [
                [t, arm, chance, path.tolist()] for t, (arm, chance, path) in self._open.items()
            ],
            "losses": self._tree.losses[:used].tolist(),
            "stop": self._tree.stop[:used].tolist(),
            "weight": self._tree.weight[:used].tolist(),
            "children": self._tree.children[:used].tolist(),
        }

    @classmethod
    def from_dict(cls, data: JSON, encoder: object = None, *, latest: bool = False) -> Self:
        """Make a policy from what ``to_dict`` returned, checking every value anew."""
        policy = object.__new__(cls)
        declared = encoder_from_dict(data["encoder"])
        assert isinstance(declared, Declared)
        rounds = checks.whole("rounds", data["rounds"], 1, MAX_ROUNDS)
        leaves = checks.whole("leaves", data["leaves"], 1)
        policy._settle(arm_names(data["arms"]), declared, rounds, leaves, data["bins"])
        policy.bit = OneBitRelease(data["epsilon"], 1)
        low, high = data["loss_range"]
        policy.loss_range = check_range((low, high))
        policy.clip = data["clip"] is True
        policy.resumed = checks.whole("resumed", data["resumed"], 0)
        stream = np.array(data["arm_stream"], dtype=np.uint64)
        if stream.shape != (4,) or not stream.any():
            raise ValueError("its stream is impossible")
        policy._fresh(policy.bit, stream)
        policy._decided = checks.whole("decided", data["decided"], 0)
        policy._released = checks.whole("released", data["released"], 0)
        issuers = [(int(first), str(name)) for first, name in data["issuers"]]
        policy._issuers = [*issuers, (policy._decided, policy._identity)]
        if latest:
            policy._issuers.pop()
            policy._identity = issuers[-1][1]
        policy._load_tree(data)
        depth, branches = policy._bins.depth, policy._bins.branches
        for t, arm, chance, path in data["open"]:
            steps = np.array(path, dtype=np.int64)
            fits = steps.shape == (depth,) and ((steps >= 0) & (steps < branches)).all()
            if not fits or not 0 <= arm < len(policy.arms) or not 0.0 < chance <= 1.0:
                raise ValueError("its waiting decisions are impossible")
            policy._open[int(t)] = int(arm), float(chance), steps
        return policy

    def _load_tree(self, data: JSON) -> None:
        losses = np.array(data["losses"], dtype=np.float64)
        children = np.array(data["children"], dtype=np.int64)
        used = len(losses)
        fresh = start_tree(len(self.arms), self._bins.depth, self._bins.branches, max(64, 2 * used))
        fits = losses.shape == (used, len(self.arms)) and np.isfinite(losses).all()
        if not used or not fits or children.shape != (used, self._bins.branches):
            raise ValueError("its tree is impossible")
        below = children[children >= 0]
        if sorted(below.tolist()) != list(range(1, used)) or (children < -1).any():
            raise ValueError("its nodes do not make a tree")
        fresh.losses[:used], fresh.children[:used] = losses, children
        fresh.stop[:used], fresh.weight[:used] = data["stop"], data["weight"]
        fresh.used[0] = used
        self._tree = fresh


KINDS["trees"] = PrivateTrees


class BitRelease(Protocol):
    """What publishes a loss as a bit."""

    def release(self, total: int) -> float:
        """Publish a loss."""

    def guarantee(self) -> Guarantee:
        """Return what is promised."""


class SeededBits:
    """The same bits from a seeded stream, for simulation; they protect nobody."""

    def __init__(self, release: OneBitRelease, stream: Stream) -> None:
        self._release, self._stream = release, stream

    def release(self, total: int) -> float:
        """Publish a loss as a bit."""
        return 1.0 if uniform(self._stream) < chance_of_one(self._release, total) else 0.0

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee("one-bit release with seeded noise", "for simulation alone")


def chance_of_one(release: OneBitRelease, total: int) -> float:
    """Return the chance that the bit of a loss is 1."""
    return (release.a + release.b * total) / release.denominator


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
            weight, found = _likeliest(params, tree, child, level + 1, depth)
            total += weight
            leaves += [((branch, *path), arm) for path, arm in found]
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
    levels = Bins(declared, bins)
    paths = levels.paths(table)
    losses = UNITS - array_to_units(rewards)
    if len(losses) != len(paths):
        raise InputError(f"{len(paths)} people have features, {len(losses)} have rewards.")
    arms = losses.shape[1]
    params = TreeParams(tree_rate(arms, rounds, leaves), arms)
    release = OneBitRelease(epsilon, 1)
    ones = (release.a + release.b * losses) / release.denominator
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
