"""What is sent for an event: a loss or a reward, or the bit that a device released."""

from __future__ import annotations

from typing import NamedTuple

from bandanna._core.grid import feedback_to_units
from bandanna._core.types import Decision
from bandanna.policy.policy import Policy
from bandanna.policy.transitions import check_bit


class Given(NamedTuple):
    """Feedback as it was sent; one of the three is not None."""

    loss: float | None = None
    reward: float | None = None
    bit: int | None = None

    def check(self, policy: Policy) -> None:
        """Refuse what a policy does not take, before anything is changed."""
        policy.check_takes(bits=self.bit is not None)
        if self.bit is None:
            feedback_to_units(self.loss, self.reward, policy.loss_range, clip=policy.clip)
        else:
            check_bit(self.bit)

    def hand_to(self, policy: Policy, decision: Decision) -> None:
        """Hand it to the policy."""
        if self.bit is None:
            policy.observe(decision, loss=self.loss, reward=self.reward)
        else:
            policy.observe_bit(decision, self.bit)
