"""Policies as files: versioned JSON, complete, readable, and refused when damaged."""

from __future__ import annotations

import json
import math
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from bandanna import checks
from bandanna.documents import seal, to_text, write_whole
from bandanna.grid import UNITS
from bandanna.learners import Exp4
from bandanna.policies.bandit import Bandit, PrivateBandit, arm_names, check_rounds
from bandanna.policies.batches import WAITING, Batch
from bandanna.policies.core import BatchedPolicy
from bandanna.policies.expert_play import ExpertBatch, ticket_from_dict, ticket_to_dict
from bandanna.policies.expert_recipe import ExpertRecipe, check_expert_recipe
from bandanna.policies.experts import BatchedExperts, Experts, PrivateExperts, check_experts
from bandanna.policies.recipe import Recipe, recipe_parts
from bandanna.privacy import VectorRelease
from bandanna.privacy.calibration import GRID
from bandanna.types import JSON, BandannaError, StateFileError
from bandanna.version import __version__

FORMAT = "bandanna policy"
VERSION = 1
DAMAGE = (BandannaError, AttributeError, LookupError, TypeError, ValueError, OverflowError)
KINDS: dict[str, type[BatchedPolicy]] = {
    kind.__name__: kind for kind in (PrivateBandit, Bandit, PrivateExperts, Experts)
}
PRIVATE = "open_batches holds raw feedback: keep this file as private as the feedback itself"


def save(policy: BatchedPolicy, path: str | Path) -> None:
    """Write a policy to a file, whole or not at all."""
    if type(policy) is not KINDS.get(type(policy).__name__):
        raise StateFileError(f"only {', '.join(KINDS)} can be saved; got {type(policy).__name__}.")
    data = to_dict(policy)
    data["checksum"] = seal(data)
    target = Path(path)
    try:
        write_whole(target, to_text(data), private=True)
    except OSError as error:
        raise StateFileError(f"cannot write {target}: {error.strerror or error}.") from None


def load(path: str | Path) -> Any:
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
    except (
        BandannaError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise StateFileError(f"{source} is damaged: {type(error).__name__}: {error}.") from None


def to_dict(policy: BatchedPolicy) -> JSON:
    """Return everything a policy knows, as plain values."""
    extra: JSON = {}
    if isinstance(policy, BatchedExperts):
        extra = {"experts": policy.experts, "delta": policy.delta}
    return {
        "format": FORMAT,
        "version": VERSION,
        "software": __version__,
        "privacy": PRIVATE,
        "kind": type(policy).__name__,
        "identity": policy._identity,
        "algorithm": policy.algorithm,
        "arms": list(policy.arms),
        **extra,
        "loss_range": list(policy.loss_range),
        "default_loss": policy.default_loss,
        "rounds": policy.rounds,
        "learner": policy.recipe.learner.to_dict(),
        "release": policy._release.to_dict(),
        "learned": policy._learned(),
        "arm_stream": [int(word) for word in policy._stream],
        "batches": policy._batches,
        "given_up": list(policy._given_up),
        "current": None if policy._current is None else policy._current.number,
        "open_batches": [_batch_to_dict(batch) for batch in policy._open.values()],
    }


def _batch_to_dict(batch: Batch) -> JSON:
    saved: JSON = {
        "number": batch.number,
        "arm": batch.arm,
        "importance": batch.importance,
        "losses": [None if loss == WAITING else loss for loss in batch.losses],
    }
    if isinstance(batch, ExpertBatch):
        tickets = {str(place): ticket_to_dict(ticket) for place, ticket in batch.tickets.items()}
        sums = [int(total) for total in batch.sums]
        saved |= {"arms": list(batch.arms), "tickets": tickets, "sums": sums, "scale": batch.scale}
    return saved


def from_dict(data: JSON) -> BatchedPolicy:
    """Make a policy from what ``to_dict`` returned, checking every value anew."""
    kind = KINDS[data["kind"]]
    parts = recipe_parts(data["learner"], data["release"])
    names = arm_names(data["arms"])
    policy = object.__new__(kind)
    recipe: Recipe | ExpertRecipe = Recipe(*parts)
    if isinstance(policy, BatchedExperts):
        recipe = ExpertRecipe(*parts)
        policy.experts = check_experts(data["experts"])
        check_expert_recipe(recipe, str(data["algorithm"]), policy.experts, len(names))
        policy.delta = checks.delta(data["delta"])
        policy.why = "It was loaded from a file."
    low, high = data["loss_range"]
    BatchedPolicy.__init__(
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
    policy._load_learned(data["learned"])
    policy._batches = int(data["batches"])
    policy._given_up = {int(number): None for number in data["given_up"]}
    for saved in data["open_batches"]:
        batch = _batch(saved, policy)
        if not 0 <= batch.number < policy._batches or batch.number in policy._open:
            raise ValueError(f"batch {batch.number} is one too many")
        policy._open[batch.number] = batch
    current = data["current"]
    policy._current = None if current is None else policy._open[current]
    return policy


def _batch(saved: JSON, policy: BatchedPolicy) -> Batch:
    number, first, importance = int(saved["number"]), int(saved["arm"]), float(saved["importance"])
    losses = [WAITING if loss is None else int(loss) for loss in saved["losses"]]
    arms, size = len(policy.arms), policy.batch
    choices = arms
    batch: Batch
    if isinstance(policy, BatchedExperts):
        batch = _expert_batch(ExpertBatch(number, first, importance), saved, policy)
        choices = policy.experts
    else:
        batch = Batch(number, first, importance)
    in_range = all(loss == WAITING or 0 <= loss <= UNITS for loss in losses)
    if not (0 <= batch.arm < choices and math.isfinite(batch.importance) and in_range):
        raise ValueError(f"batch {batch.number} holds impossible values")
    if len(losses) > size:
        raise ValueError(f"batch {batch.number} has {len(losses)} rounds, more than {size}")
    batch.losses = array("i", losses)
    batch.observed = sum(loss != WAITING for loss in losses)
    return batch


def _expert_batch(batch: ExpertBatch, saved: JSON, policy: BatchedExperts) -> ExpertBatch:
    arms, experts = len(policy.arms), policy.experts
    batch.arms = array("l", (int(arm) for arm in saved["arms"]))
    batch.tickets = {
        int(place): ticket_from_dict(ticket, arms, experts)
        for place, ticket in saved["tickets"].items()
    }
    batch.sums = np.array(saved["sums"], dtype=np.int64)
    batch.scale = float(saved["scale"])
    losses = saved["losses"]
    waiting = {place for place, loss in enumerate(losses) if loss is None}
    vector = isinstance(policy.recipe.release, VectorRelease)
    counted = len(losses) - len(waiting)
    weighed = isinstance(policy.recipe.learner, Exp4)
    good = (
        len(batch.arms) == len(losses)
        and all(0 <= arm < arms for arm in batch.arms)
        and set(batch.tickets) == (waiting if weighed else set())
        and batch.sums.size == (experts if vector else 0)
        and all(0 <= total <= counted * GRID for total in batch.sums)
        and 0.0 <= batch.scale < math.inf
        and (batch.scale > 0.0 or not batch.sums.any())
    )
    if not good:
        raise ValueError(f"batch {batch.number} holds impossible values")
    return batch
