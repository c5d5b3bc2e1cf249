"""What a policy must know to go on after a restart; ``loading.py`` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandanna.policies.ledger_state import ledger_to_dict
from bandanna.types import JSON

if TYPE_CHECKING:
    from bandanna.policies.policy import Policy


def state_of(policy: Policy, kind: str, *, batches: bool) -> JSON:
    """Return everything a policy knows, as plain values."""
    return {
        "kind": kind,
        "algorithm": policy.algorithm,
        "arms": list(policy.arms),
        "retired": sorted(policy.retired),
        "changed": policy.changed,
        "experts": policy.experts,
        "delta": policy.delta,
        "delay": policy.delay,
        "changes": policy.changes,
        "memory": policy.memory,
        "loss_range": list(policy.loss_range),
        "default_loss": policy.default_loss,
        "clip": policy.clip,
        "rounds": policy.rounds,
        "resumed": policy.resumed,
        "people": None if policy.people is None else list(policy.people),
        "learner": policy.recipe.learner.to_dict(),
        "release": policy.ledger.release.to_dict(),
        "learned": policy._player.state_dict(),
        "arm_stream": [int(word) for word in policy._stream],
        "ledger": ledger_to_dict(policy.ledger, batches=batches),
    }
