"""What a policy must know to go on after a restart; ``loading.py`` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from bandanna._core.streams import Stream
from bandanna._core.types import JSON, InputError, without_frames
from bandanna.policies.changing import Changing
from bandanna.policies.ledger_state import ledger_to_dict
from bandanna.policies.one_process import OneProcess
from bandanna.policies.state_file import write_state


class Saved(OneProcess, Changing):
    """The part of a policy that writes it down."""

    saved_as: ClassVar[str | None] = None
    """Name of the kind in saved files; None where it cannot be saved."""
    default_loss: float
    _stream: Stream

    def save(self, path: str | Path) -> None:
        """Write everything needed to go on to a JSON file, readable by its owner only.

        The file holds the raw feedback of batches that are still open: keep it as private as
        the feedback itself. Release randomness is not in it.
        """
        self._check_process()
        try:
            with self._lock:
                write_state(Path(path), self.to_dict())
        except BaseException as error:
            raise without_frames(error) from None

    def to_dict(self, *, batches: bool = True) -> JSON:
        """Return everything a policy knows, as plain values: as private as the feedback.

        Without its open ``batches`` nothing private is left: no feedback, and of persons neither
        their hashes nor the key of these.
        """
        kind = vars(type(self)).get("saved_as")
        if kind is None:
            raise InputError(f"a {type(self).__name__} cannot be saved; only Bandanna's own can.")
        self._check_process()
        with self._lock:
            return {
                "kind": kind,
                "algorithm": self.algorithm,
                "arms": list(self.arms),
                "retired": sorted(self.retired),
                "changed": self.changed,
                "experts": self.experts,
                "delta": self.delta,
                "delay": self.delay,
                "changes": self.changes,
                "memory": self.memory,
                "loss_range": list(self.loss_range),
                "default_loss": self.default_loss,
                "clip": self.clip,
                "rewarded": self.rewarded,
                "rounds": self.rounds,
                "resumed": self.resumed,
                "people": None if self.people is None else list(self.people),
                "learner": self.recipe.learner.to_dict(),
                "release": self.ledger.release.to_dict(),
                "learned": self._player.state_dict(),
                "arm_stream": [int(word) for word in self._stream],
                "ledger": ledger_to_dict(self.ledger, batches=batches),
            }
