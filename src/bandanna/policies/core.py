"""What all policies share: decisions, batches that wait for feedback, one release for each."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from bandanna import checks
from bandanna.grid import UNITS, check_range, to_units
from bandanna.policies.batches import WAITING, Batch, ClosedBatches
from bandanna.privacy.certificate import make_certificate
from bandanna.streams import Stream, new_stream
from bandanna.theory.planner import Plan
from bandanna.types import JSON, ArmName, Decision, DecisionError, Guarantee, InputError, plain

REMEMBERED = 10_000
"""How many of the latest decisions that were given up are known as such."""


class BatchedPolicy(ABC):
    """Decides round by round, releases each batch once, and learns from the releases alone.

    Batches open while earlier ones still wait for feedback. Not safe for use from several threads
    at once. Subclasses say how arms are chosen and what a batch's release teaches.
    """

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """What this and other algorithms guarantee for this problem; needs ``rounds``."""

    def __init__(
        self,
        recipe: Any,
        names: Sequence[ArmName],
        *,
        algorithm: str,
        loss_range: tuple[float, float],
        rounds: int | None,
        default_loss: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.recipe = recipe
        self.arms = tuple(names)
        self.algorithm = algorithm
        self.loss_range = check_range(loss_range)
        self.default_loss = sum(self.loss_range) / 2 if default_loss is None else default_loss
        checks.within("default_loss", self.default_loss, *self.loss_range)
        self.rounds = rounds
        self._identity = secrets.token_hex(8)
        self._process = os.getpid()
        self._stream = new_stream(None if seed is None else checks.whole("seed", seed, 0))
        self._release = recipe.release
        self._start()
        self._current: Batch | None = None
        self._open: dict[int, Batch] = {}
        self._closed = ClosedBatches()
        self._given_up: dict[int, None] = {}
        self._batches = 0

    # --- what subclasses say --------------------------------------------------------------

    @abstractmethod
    def _start(self) -> None:
        """Begin to learn from nothing, drawing from ``_stream``."""

    @abstractmethod
    def _open_batch(self, number: int) -> Batch:
        """Return a new batch."""

    @abstractmethod
    def _arm_of(self, batch: Batch, position: int) -> int:
        """Return the arm chosen in a round of an open batch."""

    def _credit(self, batch: Batch, position: int, units: int) -> None:  # noqa: B027
        """Take a round's loss into account as soon as it is known; nothing need be done."""

    @abstractmethod
    def _learn(self, batch: Batch) -> None:
        """Release a full batch, once, erase its losses, and learn from what was released."""

    @abstractmethod
    def _learned(self) -> JSON:
        """Return all that has been learned, as plain lists."""

    @abstractmethod
    def _load_learned(self, state: JSON) -> None:
        """Go on from what ``_learned`` gave."""

    @abstractmethod
    def _seed_release(self, stream: Stream) -> Any:
        """Return the release with seeded noise, for rehearsals."""

    # --- what a user calls ----------------------------------------------------------------

    def observe(
        self, decision: Decision, loss: float | None = None, *, reward: float | None = None
    ) -> None:
        """Take the feedback of a decision: once, in any order, late if need be.

        Give either a loss or a reward, inside the range fixed at the start; a reward ``r`` is the
        loss ``low + high - r``. The same value sent again is ignored; another one is refused.
        """
        self._check_process()
        units = self._units(loss, reward)
        batch = self._batch_of(decision)
        if decision.round in self._given_up:  # said whatever the value: it is private
            raise DecisionError(
                f"decision {decision.round} was given up; its default loss stands, and feedback "
                f"that came too late is not used."
            )
        self._take(decision, batch, units)

    def _take(self, decision: Decision, batch: Batch | None, units: int) -> None:
        if batch is None:
            self._check_repeat(decision, units)
            return
        stored = batch.losses[decision.position]
        if stored == WAITING:
            # First noted, then credited: interrupted between the two, it is not counted twice.
            batch.losses[decision.position] = units
            batch.observed += 1
            self._credit(batch, decision.position, units)
        elif stored != units:
            raise DecisionError(_observed_otherwise(decision))
        if batch.observed == self.batch:
            self._close(batch)

    def give_up(self, decision: Decision) -> None:
        """Count ``default_loss`` for feedback that will not come, so that its batch can close.

        Give up by a rule that is public and looks at nobody's feedback, such as a fixed time
        after the decision. Feedback that comes later is refused, whatever it is.
        """
        self._check_process()
        batch = self._batch_of(decision)
        if decision.round in self._given_up:
            return
        self._take(decision, batch, self._units(self.default_loss, None))
        self._given_up[decision.round] = None
        while len(self._given_up) > REMEMBERED:
            del self._given_up[next(iter(self._given_up))]

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round's feedback, and why."""
        low, high = self.loss_range
        promise: Guarantee = self._release.guarantee()
        if not promise.private:
            return promise
        return promise.assuming(
            f"losses are from {plain(low)} to {plain(high)}, a range fixed without looking at them",
            "each person's feedback is one round's; k rounds of one person cost k times epsilon",
            "whether and when feedback arrives does not depend on what it says",
            "only those who may see feedback call observe: it tells whether a repeated value is "
            "the same",
            "between saving a file and resuming from it no feedback is observed, and it is resumed "
            "once; otherwise open batches are released twice",
            "how long things take, and the memory of this process, are not watched",
            *self.recipe.learner.assumptions,
        )

    @property
    def batch(self) -> int:
        """Rounds in a batch."""
        return int(self.recipe.batch)

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        return sum(len(batch.losses) - batch.observed for batch in self._open.values())

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        unfilled = self.batch - len(self._current.losses) if self._current else 0
        return self._batches * self.batch - unfilled

    @property
    def released(self) -> int:
        """Batches released so far."""
        return self._batches - len(self._open)

    def save(self, path: str | Path) -> None:
        """Write everything needed to go on to a JSON file, readable by its owner only.

        The file holds the raw feedback of batches that are still open: keep it as private as
        the feedback itself. Release randomness is not in it.
        """
        from bandanna.policies.state import save

        self._check_process()
        save(self, path)

    def certificate(self) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        It holds nothing private. Write it with ``json.dump``; ``docs/certificate.md`` explains
        every entry.
        """
        low, high = self.loss_range
        return make_certificate(self.guarantee, {"loss_low": low, "loss_high": high})

    def rehearse(self, arm_stream: Stream, release_stream: Stream) -> Self:
        """Return a fresh copy with seeded streams, release included: for tests and simulation.

        Its guarantee says that epsilon is infinite.
        """
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        BatchedPolicy.__init__(
            copy,
            self.recipe,
            self.arms,
            algorithm=self.algorithm,
            loss_range=self.loss_range,
            rounds=self.rounds,
            default_loss=self.default_loss,
        )
        copy._stream = arm_stream
        copy._release = self._seed_release(release_stream)
        copy._start()
        return copy

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.algorithm}: {len(self.arms)} arms, batch {self.batch}, "
            f"{self.decided} decided, {self.waiting} waiting, {self.released} batches released>"
        )

    # --- how it works ---------------------------------------------------------------------

    def _next_batch(self) -> Batch:
        """Return the batch of the next round, opened if need be."""
        self._check_process()
        batch = self._current
        if batch is None or len(batch.losses) >= self.batch:
            batch = self._open_batch(self._batches)
            self._open[batch.number] = self._current = batch
            self._batches += 1
        return batch

    def _decision(self, batch: Batch, position: int, arm: int) -> Decision:
        return Decision(
            arm=self.arms[arm],
            index=arm,
            round=batch.number * self.batch + position,
            batch=batch.number,
            position=position,
            policy=self._identity,
        )

    def _units(self, loss: float | None, reward: float | None) -> int:
        if (loss is None) == (reward is None):
            raise InputError(
                "give either loss= or reward=, not both."
                if loss is not None
                else "give the feedback as loss= or reward=."
            )
        if loss is not None:
            return to_units("loss", loss, self.loss_range)
        return UNITS - to_units("reward", reward, self.loss_range)

    def _batch_of(self, decision: Decision) -> Batch | None:
        """Return the open batch of a decision, or None if it has closed."""
        if not isinstance(decision, Decision):
            raise DecisionError(
                f"observe takes the Decision that decide() returned; got {type(decision).__name__}."
            )
        if decision.policy != self._identity:
            raise DecisionError(
                f"decision {decision.round} was made by another policy ({decision.policy}); "
                f"this one is {self._identity}."
            )
        batch = self._open.get(decision.batch)
        size = self.batch if batch is None else len(batch.losses)
        if (
            not 0 <= decision.batch < self._batches
            or not 0 <= decision.position < size
            or (batch is not None and self._arm_of(batch, decision.position) != decision.index)
        ):
            raise DecisionError(f"decision {decision.round} was never made by this policy.")
        return batch

    def _check_repeat(self, decision: Decision, units: int) -> None:
        same = self._closed.matches(decision.batch, decision.position, units)
        if same is None:
            raise DecisionError(
                f"decision {decision.round} has been observed and its batch released; whether the "
                f"value is the same can no longer be told. The first one stands."
            )
        if not same:
            raise DecisionError(_observed_otherwise(decision))

    def _close(self, batch: Batch) -> None:
        """Take a full batch out of reach and only then release it.

        The batch is gone before it is released: whatever fails, here or later, cannot bring the
        same losses to a second release. If the release itself fails, nothing is learned from it.
        """
        del self._open[batch.number]
        if self._current is batch:
            self._current = None
        self._closed.add(batch)
        self._learn(batch)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise DecisionError(
                "this policy belongs to the process that made or loaded it; in a forked copy its "
                "open batches would be released twice. Keep one process, or save and load."
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a policy cannot be copied or pickled: its open batches would be released twice. "
            "Use save and load to move it, rehearse for a fresh one."
        )


def _observed_otherwise(decision: Decision) -> str:
    return (
        f"decision {decision.round} has already been observed with another value; the first one "
        f"stands. Neither is repeated here because feedback is private."
    )
