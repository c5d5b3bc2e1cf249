"""Policies from files."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import ticket_from_dict
from bandanna._core.types import JSON, ArmName, BandannaError, StateFileError, without_frames
from bandanna.policies.bandit import Bandit, PrivateBandit
from bandanna.policies.experts import Experts, PrivateExperts
from bandanna.policies.foreign import ForeignLearner, adapt
from bandanna.policies.inputs import arm_names, check_experts, check_rounds
from bandanna.policies.ledger_state import load_ledger
from bandanna.policies.people import check_rule
from bandanna.policies.plays import FollowExpert, kind_of_play, weighs_all_arms
from bandanna.policies.policy import Policy
from bandanna.policies.recipe import Recipe, recipe_around, recipe_of
from bandanna.policies.state_file import claim, read_state, resumed_before
from bandanna.theory.tuning import Tuning

KINDS: dict[str, type[Policy]] = {
    kind.__name__: kind for kind in (PrivateBandit, Bandit, PrivateExperts, Experts)
}
PRIVATE_KINDS = ("PrivateBandit", "PrivateExperts")
DAMAGE = (
    *(BandannaError, ArithmeticError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)


def load(
    path: str | Path,
    *,
    epsilon: float | None = None,
    again: bool = False,
    learner: object = None,
) -> Policy:
    """Read a policy that ``save`` wrote; it goes on where it was, with a new identity.

    Feedback for decisions made before the file was saved is credited; for decisions made after it,
    which this policy does not know, it is refused.

    Parameters
    ----------
    path
        The file.
    epsilon
        Refuse a file whose policy promises less than this: its checksum shows damage, and anyone
        can make one.
    again
        Load a file that has been resumed before. Whatever was open in it may then be released
        twice, and the guarantee says so.
    learner
        For a policy around another library's learner, or yours: a fresh one with the same
        settings, or the function that made it. It is told again all that was released, and
        refused unless it draws the same arms as the saved one did.

    Examples
    --------
    >>> import bandanna as bd, tempfile, pathlib
    >>> bandit = bd.PrivateBandit(arms=2, epsilon=1.0, seed=1)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bandit.json"
    >>> bandit.save(path)
    >>> bd.load(path, epsilon=1.0).decide().arm == bandit.decide().arm
    True
    """
    least = math.inf if epsilon is None else checks.epsilon(epsilon)
    try:
        return _load(Path(path), least, learner, again=again)
    except BaseException as error:
        raise without_frames(error) from None


def _load(source: Path, epsilon: float, learner: object, *, again: bool) -> Policy:
    data = read_state(source)
    try:
        policy = policy_from_dict(data, learner=learner)
    except StateFileError as error:
        raise StateFileError(f"{source}: {error}") from None
    except DAMAGE as error:
        raise StateFileError(f"{source} is damaged: {_reason(error)}.") from None
    times, file, checksum = policy.resumed, source.resolve(), str(data["checksum"])
    policy.resumed = times + (resumed_before(file, checksum) if again else 0)
    if policy.guarantee.epsilon > epsilon:
        raise StateFileError(
            f"{source} holds a policy with epsilon {policy.guarantee.epsilon:g}, which promises "
            f"less than the {epsilon:g} asked for."
        )
    policy.resumed = times + claim(file, checksum, again=again)
    return policy


def _reason(error: Exception) -> str:
    """Say what is wrong with a file, without repeating what is in it."""
    kind = type(error).__name__
    if isinstance(error, BandannaError):
        return f"{kind}: {error}"
    said = str(error).partition(":")[0] if isinstance(error, ValueError) else "impossible values"
    return f"{kind}: {said}"


def policy_from_dict(data: JSON, *, latest: bool = False, learner: object = None) -> Policy:
    """Make a policy from what ``Policy.to_dict`` returned, checking every value anew.

    ``latest`` promises that nothing was decided after ``data``: it then keeps its identity.
    ``learner`` is a fresh one where it is another library's.
    """
    kind = KINDS[data["kind"]]
    names = arm_names(data["arms"])
    experts = None if data["experts"] is None else check_experts(data["experts"])
    choices = names if experts is None else tuple(range(experts))
    recipe = _recipe(data, choices, learner)
    if (experts is None) != issubclass(kind, PrivateBandit | Bandit):
        raise ValueError(f"a {data['kind']} does not go with experts {experts!r}")
    if (data["kind"] in PRIVATE_KINDS) != recipe.release.guarantee().private:
        raise ValueError(f"a {data['kind']} does not go with a {recipe.release.name} release")
    follows = kind_of_play(recipe, experts) is FollowExpert
    if "-conversion" in str(data["algorithm"]) and not follows:
        raise ValueError(f"its parts do not make {data['algorithm']!r}")
    low, high = data["loss_range"]
    policy = object.__new__(kind)
    Policy.__init__(
        policy,
        recipe,
        names,
        algorithm=str(data["algorithm"]),
        experts=experts,
        loss_range=(low, high),
        rounds=check_rounds(data["rounds"]),
        default_loss=data["default_loss"],
        clip=data["clip"] is True,
        people=None if data["people"] is None else check_rule(*data["people"]),
        retired=[checks.whole("retired", arm, 0, len(names) - 1) for arm in data["retired"]],
    )
    policy.changed = data["changed"] is True or bool(policy.retired)
    policy.delta = checks.delta(data["delta"])
    policy.delay = checks.whole("delay", data["delay"], 0, checks.MAX_ROUNDS)
    policy.changes = _whole_or_none("changes", data["changes"])
    policy.memory = _whole_or_none("memory", data["memory"])
    policy.rewarded = data.get("rewarded") is True
    policy.why = "It was loaded from a file."
    policy.resumed = checks.whole("resumed", data["resumed"], at_least=0)
    words = np.array(data["arm_stream"], dtype=np.uint64)
    if words.shape != policy._stream.shape or not words.any():
        raise ValueError("its stream is impossible")
    policy._stream[:] = words
    policy._player.load_state(data["learned"])
    policy.around = getattr(recipe.learner, "label", "")
    whole = weighs_all_arms(recipe)
    as_ticket = partial(ticket_from_dict, arms=len(names), experts=experts or 0, whole=whole)
    load_ledger(policy.ledger, data["ledger"], len(choices), len(names), as_ticket, latest=latest)
    for batch in policy.ledger.open.values():
        if batch.among is None:
            batch.chance = policy._player.told(batch.importance)
    return policy


def _recipe(data: JSON, choices: tuple[ArmName, ...], learner: object) -> Recipe:
    """Make learner and release of a saved policy, whose learner may have to be given."""
    saved = data["learner"]
    if saved["name"] != ForeignLearner.name:
        if learner is not None:
            raise StateFileError(
                f"its learner is Bandanna's own {saved['name']} and is in the file; leave out "
                f"learner=."
            )
        return recipe_of(Tuning(saved, data["release"]))
    if learner is None:
        raise StateFileError(
            f"its learner is a {saved['label']}, which is not in the file: pass a fresh one with "
            f"the same settings, or the function that made it, as learner=."
        )
    return recipe_around(adapt(learner, choices), data["release"])


def _whole_or_none(name: str, value: object) -> int | None:
    return None if value is None else checks.whole(name, value, 1)
