"""Handwritten digits: classifiers that see different parts of the image as experts.

Each round an image arrives; the arms are the ten digits and the loss is 1 for a wrong one.
Experts are scikit-learn classifiers, each trained on the same first images but on its own
pixels. The images that arrive are drawn from those that no expert was trained on.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Advice
from bandanna._core.extras import need
from bandanna._core.grid import UNITS
from bandanna.environments.experts import ExpertEnvironment

DIGITS = 10
TRAINED_ON = 600
SIDE = 8
PARTS = {
    "all": (slice(0, SIDE), slice(0, SIDE)),
    "top": (slice(0, SIDE // 2), slice(0, SIDE)),
    "bottom": (slice(SIDE // 2, SIDE), slice(0, SIDE)),
    "left": (slice(0, SIDE), slice(0, SIDE // 2)),
    "right": (slice(0, SIDE), slice(SIDE // 2, SIDE)),
}


class DigitsExperts(ExpertEnvironment):
    """Recognise digits with twenty classifiers as experts.

    Parameters
    ----------
    rounds
        How many images arrive, drawn with replacement.
    spread
        Experts say how probable they find each digit, instead of naming one.
    seed
        For the order in which images arrive.
    """

    name = "digits"
    arms = DIGITS

    def __init__(self, rounds: int = 100_000, *, spread: bool = False, seed: int = 0) -> None:
        self.rounds = checks.rounds(rounds)
        self.seed = checks.whole("seed", seed, at_least=0)
        self.spread = bool(spread)
        self._answers = train_experts()
        self.expert_names = self._answers.names
        self.experts = len(self.expert_names)

    def make(self, number: int, start: int, stop: int) -> tuple[NDArray[np.int64], Advice]:
        """Draw images and look up what the experts say of them."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        images = rng.integers(0, self._answers.digits.size, stop - start)
        right = self._answers.digits[images, np.newaxis] == np.arange(DIGITS)
        table = self._answers.shares if self.spread else self._answers.votes
        return np.where(right, 0, UNITS).astype(np.int64), table[images]


class DigitVotes(NamedTuple):
    """What each expert says of each image that it was not trained on."""

    names: tuple[str, ...]
    digits: NDArray[np.int64]
    votes: NDArray[np.uint8]
    shares: NDArray[np.float64]


@lru_cache(maxsize=1)
def train_experts() -> DigitVotes:
    """Train the experts, once: it takes about a second."""
    need("digits", "the digits environment")
    from sklearn import datasets

    data = datasets.load_digits()
    images, digits = data.images / 16.0, data.target
    names, shares = [], []
    for part, (rows, columns) in PARTS.items():
        pixels = images[:, rows, columns].reshape(digits.size, -1)
        for kind, model in _models().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # pixels that are always white, in some parts
                model.fit(pixels[:TRAINED_ON], digits[:TRAINED_ON])
                shares.append(model.predict_proba(pixels[TRAINED_ON:]))
            names.append(f"{kind}, {part}")
    says = np.stack(shares, axis=2)  # (images, arms, experts)
    says = np.ascontiguousarray(says / says.sum(axis=1, keepdims=True))
    votes = says.argmax(axis=1).astype(np.uint8)
    return DigitVotes(tuple(names), digits[TRAINED_ON:].astype(np.int64), votes, says)


def _models() -> dict[str, Any]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "nearest neighbours": KNeighborsClassifier(5),
        "linear discriminant": LinearDiscriminantAnalysis(),
        "naive Bayes": GaussianNB(var_smoothing=1e-2),
        "decision tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    }
