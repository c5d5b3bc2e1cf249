"""Contextual policies on tables: compiled, the same steps as online, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.extras import need
from bandanna._core.grid import UNITS, array_to_units, feedback_to_units
from bandanna._core.private_inputs import private_inputs
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.contextual.features import Encoder, Fitted, as_encoder
from bandanna.contextual.plays import LinearLearner
from bandanna.contextual.steps import play
from bandanna.environments.frames import read_columns
from bandanna.privacy.epoch_sums import EpochRelease, NoRelease, OfEpochs
from bandanna.privacy.epochs import Protects

Floats = NDArray[np.float64]
CHUNK = 2**16
"""Rounds whose losses are laid out at a time."""


@dataclass(frozen=True, repr=False)
class ContextTable:
    """People with their encoded features and a reward for every arm: who comes is drawn from them.

    Parameters
    ----------
    phi
        Encoded features, shape (people, features).
    losses
        Losses in grid units for every arm, shape (people, arms).
    encoder
        How features were encoded.
    about
        Where the rewards of all arms come from.
    """

    phi: Floats
    losses: NDArray[np.int64]
    encoder: Encoder
    about: str

    @classmethod
    @private_inputs
    def from_rewards(cls, table: object, features: object, rewards: object) -> ContextTable:
        """Take a table of features and a reward in [0, 1] for every person and arm.

        ``table`` is a pandas or polars frame, a file or a dict of columns; ``rewards`` has shape
        (people, arms).
        """
        encoder = as_encoder(features)
        phi = encoder.encode_table(table)
        losses = losses_of(rewards, len(phi))
        return cls(phi, losses, encoder, "a reward for every arm is known")

    @classmethod
    @private_inputs
    def from_labels(cls, table: object, features: object, labels: Sequence[object]) -> ContextTable:
        """Take a table for classification: classes are arms, and the right one has reward 1."""
        classes, which = np.unique(np.asarray(labels), return_inverse=True)
        rewards = (which[:, np.newaxis] == np.arange(len(classes))).astype(np.float64)
        made = cls.from_rewards(table, features, rewards)
        return cls(made.phi, made.losses, made.encoder, "classes are arms: the right one earns 1")

    @classmethod
    @private_inputs
    def from_log(
        cls,
        log: object,
        features: object,
        *,
        arm: str = "arm",
        reward: str = "reward",
        arms: Sequence[object] | None = None,
    ) -> ContextTable:
        """Fit a linear model of the reward to each arm of a log, and simulate from the model.

        What is found holds for the model; the log does not show what other arms would have given.
        Use ``replay`` for an estimate from the log itself.
        """
        encoder = as_encoder(features)
        phi = encoder.encode_table(log)
        columns = read_columns(log, [arm, reward])
        played = np.asarray(columns[arm])
        names = list(np.unique(played)) if arms is None else list(arms)
        means = np.empty((len(phi), len(names)))
        for k, name in enumerate(names):
            mine = played == name
            if not mine.any():
                raise InputError(f"the log has no round with arm {name!r}.")
            gram = phi[mine].T @ phi[mine] + 1e-3 * np.eye(encoder.size)
            fitted = np.linalg.solve(gram, phi[mine].T @ columns[reward][mine].astype(np.float64))
            means[:, k] = np.clip(phi @ fitted, 0.0, 1.0)
        about = "a linear model of the reward, fitted to the log for each arm"
        return cls(phi, losses_of(means, len(phi)), encoder, about)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.losses.shape[1])


def losses_of(rewards: object, people: int) -> NDArray[np.int64]:
    """Return losses in grid units of rewards in [0, 1], a row for each of so many people."""
    losses = UNITS - array_to_units(rewards)
    if len(losses) != people:
        raise InputError(f"{people} people have features, {len(losses)} have rewards.")
    return np.ascontiguousarray(losses)


@dataclass(frozen=True)
class ContextRun:
    """One simulated run."""

    arms: NDArray[np.int64]
    """The arm of each round."""
    rewards: Floats
    """The reward of each round."""
    best: Floats
    """The best reward that any arm had in each round."""
    single: float
    """Mean reward of the best single arm over the table."""
    ends: tuple[int, ...]
    about: str

    @property
    def reward(self) -> float:
        """Mean reward."""
        return float(self.rewards.mean())

    @property
    def last_fifth(self) -> float:
        """Mean reward in the last fifth of the rounds."""
        return float(self.rewards[-max(1, len(self.rewards) // 5) :].mean())

    def curve(self, points: int = 50) -> list[tuple[int, float]]:
        """Return the mean reward in equal parts of the run."""
        parts = np.array_split(self.rewards, min(points, len(self.rewards)))
        ends = np.cumsum([len(part) for part in parts])
        return [(int(end), float(part.mean())) for end, part in zip(ends, parts, strict=True)]


def simulate_context(
    table: ContextTable,
    epsilon: float | None,
    delta: float = 1e-6,
    rounds: int = 100_000,
    protects: Protects = "feedback",
    *,
    seed: int = 0,
    bernoulli: bool = False,
) -> ContextRun:
    """Play a contextual policy against a table; people are drawn from it with replacement.

    Parameters
    ----------
    table
        Features and rewards.
    epsilon, delta, rounds, protects
        As for ``PrivateContextual``. ``epsilon=None`` is without noise, for comparison.
    seed
        For people, draws and noise.
    bernoulli
        Draw rewards 0 or 1 with the table's rewards as chances.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> plan = rng.choice(["bronze", "gold"], 500)
    >>> rewards = np.stack([plan == "bronze", plan == "gold"], axis=1) * 0.5
    >>> features = {"plan": ["bronze", "gold"]}
    >>> table = ContextTable.from_rewards({"plan": plan}, features, rewards)
    >>> run = simulate_context(table, epsilon=1.0, rounds=5_000)
    >>> run.last_fifth > 0.4 > run.single
    True
    """
    rounds = checks.whole("rounds", rounds, 1, 10**8)
    streams = [new_stream([seed, part]) for part in range(2)]
    people_rng = np.random.default_rng([seed, 2])
    size = table.arms, table.encoder.size
    release: OfEpochs = NoRelease(*size)
    if epsilon is not None:
        release = EpochRelease(protects, epsilon, delta, *size).seeded(streams[1])
    linear = LinearLearner(table.arms, table.encoder).begin(release, rounds, streams[0])
    played = np.empty(rounds, dtype=np.int64)
    rewards, best = np.empty(rounds), np.empty(rounds)
    for start, end in pairwise((0, *linear.ends)):
        tally = linear.start(end - start)
        for low in range(start, end, CHUNK):
            high = min(low + CHUNK, end)
            people = people_rng.integers(0, len(table.phi), high - low)
            losses = table.losses[people]
            best[low:high] = 1.0 - losses.min(axis=1) / UNITS
            if bernoulli:
                lost = people_rng.random(losses.shape) * UNITS < losses
                losses = np.where(lost, UNITS, 0).astype(np.int64)
            steps = table.phi, people, losses, linear.scores, release.both, tally.counted()
            play(*steps, streams[0], played[low:high])
            rewards[low:high] = 1.0 - losses[np.arange(high - low), played[low:high]] / UNITS
        linear.learn(tally.publish())
    single = float(1.0 - table.losses.mean(axis=0).min() / UNITS)
    return ContextRun(played, rewards, best, single, linear.ends, table.about)


@dataclass(frozen=True)
class Replay:
    """What a log says of a policy that was not used to make it."""

    reward: float
    """Estimated mean reward."""
    error: float
    """Standard error over rounds; that of the policy's own randomness is not in it."""
    matched: int
    """Rounds of the log that the policy could learn from."""
    rows: int
    """Of so many."""

    @property
    def about(self) -> str:
        """How much of the log it used, and why."""
        return (
            f"replay: {self.matched:,} of the log's {self.rows:,} rounds count, those where the "
            f"policy played the same arm"
        )


@private_inputs
def replay(
    log: object,
    features: object,
    epsilon: float,
    delta: float = 1e-6,
    protects: Protects = "feedback",
    *,
    arm: str = "arm",
    reward: str = "reward",
    chance: str | None = None,
    seed: int = 0,
) -> Replay:
    """Run a policy through a log whose arms were drawn at random (Li and others 2011).

    Rounds in which the policy plays another arm than the log are skipped, so that about one in K
    counts. With arms that were drawn by unequal, recorded chances give their column as ``chance``:
    a round that matches is then kept with probability in proportion to one over its chance.
    """
    encoder = as_encoder(features)
    phi = encoder.encode_table(log)
    names = [arm, reward, *([chance] if chance else [])]
    columns = read_columns(log, names)
    arms, which = np.unique(np.asarray(columns[arm]), return_inverse=True)
    rewards = np.asarray(columns[reward], dtype=np.float64)
    rng = np.random.default_rng([seed, 2])
    keep = np.ones(len(phi), dtype=bool)
    if chance is not None:
        chances = np.asarray(columns[chance], dtype=np.float64)
        keep = rng.random(len(phi)) < chances.min() / chances
    rounds = max(1, int(keep.sum() / len(arms)))
    release = EpochRelease(protects, epsilon, delta, len(arms), encoder.size)
    streams = [new_stream([seed, part]) for part in range(2)]
    linear = LinearLearner(len(arms), encoder).begin(release.seeded(streams[1]), rounds, streams[0])
    left, tally = linear.open(0)
    got: list[float] = []
    for t in np.flatnonzero(keep):
        drawn, ticket = linear.choose(0, phi[t], None)
        if drawn != which[t]:
            continue
        tally.add(feedback_to_units(None, float(rewards[t]), (0.0, 1.0)), ticket)
        got.append(float(rewards[t]))
        left -= 1
        if not left:
            linear.learn(tally.publish())
            left, tally = linear.open(len(linear.past))
    if not got:
        raise InputError("no round of the log matches what the policy plays.")
    error = float(np.std(got)) / math.sqrt(len(got))
    return Replay(float(np.mean(got)), error, len(got), len(phi))


PUBLIC_IMAGES = 600
"""The first images count as public; people are drawn from the others."""


def digits_table(components: int | None = 20) -> ContextTable:
    """Return scikit-learn's digits as a table of contexts.

    Parameters
    ----------
    components
        Encode images by so many principal components of the public ones. None: by the means of 2 by
        2 pixels, with the range that pixels have, and all images.
    """
    need("digits", "the digits")
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    data = load_digits()
    if components is None:
        pixels = data.data.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16)
        columns = {f"pixel {i}": column for i, column in enumerate(pixels.T)}
        return ContextTable.from_labels(columns, dict.fromkeys(columns, (0, 16)), data.target)
    public, others = data.data[:PUBLIC_IMAGES], data.data[PUBLIC_IMAGES:]
    encoder = Fitted(PCA(components, random_state=0).fit(public), public)
    return ContextTable.from_labels(others, encoder, data.target[PUBLIC_IMAGES:])
