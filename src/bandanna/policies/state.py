"""Policies as files: versioned JSON, complete, readable, and refused when damaged."""

from __future__ import annotations

import json
import math
from array import array
from pathlib import Path

import numpy as np

from bandanna.documents import seal, to_text, write_whole
from bandanna.grid import UNITS
from bandanna.policies.bandit import Bandit, PrivateBandit, arm_names, check_rounds
from bandanna.policies.batched import BatchedBandit
from bandanna.policies.batches import WAITING, Batch
from bandanna.policies.recipe import recipe_from_dict
from bandanna.types import JSON, BandannaError, StateFileError
from bandanna.version import __version__

FORMAT = "bandanna policy"
VERSION = 1
KINDS: dict[str, type[BatchedBandit]] = {"PrivateBandit": PrivateBandit, "Bandit": Bandit}
PRIVATE = "open_batches holds raw feedback: keep this file as private as the feedback itself"


def save(policy: BatchedBandit, path: str | Path) -> None:
    """Write a policy to a file, whole or not at all."""
    if type(policy) is not KINDS.get(type(policy).__name__):
        raise StateFileError(
            f"only {' and '.join(KINDS)} can be saved; got {type(policy).__name__}."
        )
    data = to_dict(policy)
    data["checksum"] = seal(data)
    target = Path(path)
    try:
        write_whole(target, to_text(data))
    except OSError as error:
        raise StateFileError(f"cannot write {target}: {error.strerror or error}.") from None


def load(path: str | Path) -> BatchedBandit:
    """Read a policy that ``save`` wrote; it goes on bit for bit where it was.

    Examples
    --------
    >>> import bandanna as bd, tempfile, pathlib
    >>> bandit = bd.PrivateBandit(arms=2, epsilon=1.0, seed=1)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bandit.json"
    >>> bandit.save(path)
    >>> bd.load(path).decide() == bandit.decide()
    True
    """
    source = Path(path)
    try:
        data = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise StateFileError(f"cannot read {source}: {error.strerror or error}.") from None
    except ValueError as error:
        raise StateFileError(f"{source} is damaged: not valid JSON ({error}).") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise StateFileError(f"{source} is not a saved policy: its format is not {FORMAT!r}.")
    if data.get("version") != VERSION:
        raise StateFileError(
            f"{source} has version {data.get('version')!r} of the format, written by Bandanna "
            f"{data.get('software')!r}; this is Bandanna {__version__}, which reads version "
            f"{VERSION}."
        )
    if data.pop("checksum", None) != seal(data):
        raise StateFileError(f"{source} is damaged: its checksum does not match its content.")
    try:
        return from_dict(data)
    except (BandannaError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateFileError(f"{source} is damaged: {type(error).__name__}: {error}.") from None


def to_dict(policy: BatchedBandit) -> JSON:
    """Return everything a policy knows, as plain values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "software": __version__,
        "privacy": PRIVATE,
        "kind": type(policy).__name__,
        "identity": policy._identity,
        "algorithm": policy.algorithm,
        "arms": list(policy.arms),
        "loss_range": list(policy.loss_range),
        "default_loss": policy.default_loss,
        "rounds": policy.rounds,
        "learner": policy.recipe.learner.to_dict(),
        "release": policy._release.to_dict(),
        "learned": policy._player.state_dict(),
        "arm_stream": [int(word) for word in policy._stream],
        "batches": policy._batches,
        "current": None if policy._current is None else policy._current.number,
        "open_batches": [
            {
                "number": batch.number,
                "arm": batch.arm,
                "importance": batch.importance,
                "losses": [None if loss == WAITING else loss for loss in batch.losses],
            }
            for batch in policy._open.values()
        ],
    }


def from_dict(data: JSON) -> BatchedBandit:
    """Make a policy from what ``to_dict`` returned, checking every value anew."""
    recipe = recipe_from_dict(data["learner"], data["release"])
    names = arm_names(data["arms"])
    policy = object.__new__(KINDS[data["kind"]])
    low, high = data["loss_range"]
    BatchedBandit.__init__(
        policy,
        recipe,
        names,
        algorithm=str(data["algorithm"]),
        loss_range=(low, high),
        rounds=check_rounds(data["rounds"]),
        default_loss=data["default_loss"],
    )
    policy._identity = str(data["identity"])
    policy._stream[:] = np.array(data["arm_stream"], dtype=np.uint64)
    policy._player.load_state(data["learned"])
    policy._batches = int(data["batches"])
    for saved in data["open_batches"]:
        batch = _batch(saved, len(names), recipe.batch)
        policy._open[batch.number] = batch
    current = data["current"]
    policy._current = None if current is None else policy._open[current]
    return policy


def _batch(saved: JSON, arms: int, size: int) -> Batch:
    batch = Batch(int(saved["number"]), int(saved["arm"]), float(saved["importance"]))
    losses = [WAITING if loss is None else int(loss) for loss in saved["losses"]]
    in_range = all(loss == WAITING or 0 <= loss <= UNITS for loss in losses)
    if not (0 <= batch.arm < arms and math.isfinite(batch.importance) and in_range):
        raise ValueError(f"batch {batch.number} holds impossible values")
    if len(losses) > size:
        raise ValueError(f"batch {batch.number} has {len(losses)} rounds, more than {size}")
    batch.losses = array("i", losses)
    batch.observed = sum(loss != WAITING for loss in losses)
    return batch
