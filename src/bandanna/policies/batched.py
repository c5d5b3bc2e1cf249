"""The paper's Algorithm 1 around any learner, one decision at a time."""

from __future__ import annotations

from bandanna.policies.batches import Batch
from bandanna.policies.core import BatchedPolicy
from bandanna.policies.recipe import Recipe
from bandanna.privacy import SeededRelease
from bandanna.streams import Stream
from bandanna.theory.planner import Plan
from bandanna.theory.planner import plan as make_plan
from bandanna.types import JSON, Decision, InputError


class BatchedBandit(BatchedPolicy):
    """Plays one arm for a batch of rounds, releases the batch once, learns from the release alone.

    Used in order it is the paper's Algorithm 1.
    """

    recipe: Recipe

    def decide(self) -> Decision:
        """Choose an arm for the next round."""
        batch = self._next_batch()
        return self._decision(batch, batch.open_round(), batch.arm)

    @property
    def plan(self) -> Plan:
        """What this and other algorithms guarantee for this problem; needs ``rounds``."""
        if self.rounds is None or not self.guarantee.private:
            raise InputError("a plan needs rounds= and a private policy.")
        return make_plan(len(self.arms), self.rounds, self.guarantee.epsilon)

    def _start(self) -> None:
        self._player = self.recipe.learner.play(self._stream)

    def _open_batch(self, number: int) -> Batch:
        return Batch(number, *self._player.draw())

    def _arm_of(self, batch: Batch, position: int) -> int:
        return batch.arm

    def _learn(self, batch: Batch) -> None:
        total = batch.total()
        batch.erase()
        self._player.update(batch.arm, batch.importance, self._release.release(total))

    def _learned(self) -> JSON:
        return self._player.state_dict()

    def _load_learned(self, state: JSON) -> None:
        self._player.load_state(state)

    def _seed_release(self, stream: Stream) -> SeededRelease:
        return SeededRelease(self.recipe.release, stream)
