"""Another library's bandit at play, and how it goes on from a file.

What such a bandit keeps inside is not ours to write down. What it was told is: the released losses,
which are public, in order with the arms it drew. A fresh one with the same seed that draws the same
arms and is told the same losses is where the old one was.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Protocol

from bandanna._core.types import JSON, InputError, StateFileError
from bandanna.learners.steps import register


class Drawer(Protocol):
    """A bandit with two methods."""

    def draw(self) -> int:
        """Choose an arm, by index."""

    def update(self, arm: int, loss: float) -> None:
        """Learn from a loss of an arm."""


class ForeignPlayer:
    """Plays a foreign bandit; importance is its own business."""

    def __init__(self, make: Callable[[int], Drawer], seed: int, arms: int, label: str) -> None:
        self._make = make
        self._seed = seed
        self._arms = arms
        self._label = label
        self.bandit = make(seed)
        self._history: list[int | tuple[int, float]] = []
        """Arms drawn, and losses released of an arm, in order."""

    def draw(self) -> tuple[int, float]:
        """Choose an arm."""
        arm = self.bandit.draw()
        if not isinstance(arm, Integral) or not 0 <= arm < self._arms:
            raise InputError(
                f"{self._label} drew arm {arm!r}; draw() must return an index from 0 to "
                f"{self._arms - 1}."
            )
        self._history.append(int(arm))
        return int(arm), 1.0

    def update(self, arm: int, importance: float, loss: float, rounds: int = 1) -> None:
        """Learn from one released loss."""
        self._history.append((int(arm), float(loss)))
        self.bandit.update(arm, loss)

    def state_dict(self) -> JSON:
        """Return the seed, and what was drawn and released so far."""
        return {"seed": self._seed, "history": [*self._history]}

    def load_state(self, state: JSON) -> None:
        """Tell a fresh bandit all that was released, and check that it draws the same arms."""
        self._seed, told = int(state["seed"]), list(state["history"])
        self._history = []
        try:
            self.bandit = self._make(self._seed)
            for place, event in enumerate(told):
                if not isinstance(event, int):
                    self.update(int(event[0]), 1.0, float(event[1]), 1)
                elif self.draw()[0] != event:
                    raise StateFileError(self._differs(place))
        except StateFileError:
            raise
        except Exception as error:
            raise StateFileError(
                f"the {self._label} given cannot be told again what was released: "
                f"{type(error).__name__}: {error}"
            ) from None

    def _differs(self, place: int) -> str:
        return (
            f"the {self._label} given does not draw the arms that the saved one drew, from event "
            f"{place + 1:,} of its history on. Give a fresh one with the same settings. If it is, "
            f"its randomness is not its own: it must come from a generator that it holds, or from "
            f"the seed that a function making it takes."
        )


register(
    ForeignPlayer,
    lambda player, state, stream: player.draw(),
    lambda player, state, *learned: player.update(*learned),
)
