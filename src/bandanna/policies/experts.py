"""The policies a person holds who has experts: private, and plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bandanna import checks
from bandanna.learners import Learner
from bandanna.policies.expert_recipe import (
    ExpertRequest,
    plain_expert_recipe,
    private_expert_recipe,
)
from bandanna.policies.inputs import (
    arm_names,
    check_experts,
    check_rounds,
    checked_learner,
    required_learner,
)
from bandanna.policies.policy import Policy
from bandanna.privacy import Release
from bandanna.theory.planner import plan as make_plan
from bandanna.types import ArmName


class PrivateExperts(Policy):
    """Choose among arms by experts' advice without revealing anyone's feedback.

    Parameters
    ----------
    experts
        Number of experts N.
    arms
        How many arms, or their names.
    epsilon, delta
        The privacy parameters. Only ``batched-exp4`` and ``calibrated-exp4`` use delta.
    rounds
        How many decisions are expected. Needed by all but ``one-bit-conversion`` and
        ``htinf-conversion``.
    algorithm
        ``auto`` (default) takes the smallest guaranteed regret; ``policy.why`` says which and
        why. Conversions treat each expert as an arm: ``one-bit-conversion``,
        ``one-bit-exp3-conversion``, ``htinf-conversion``, ``exp3-conversion``,
        ``ftpl-conversion``. EXP4 weighs them:
        ``one-bit-exp4``, ``calibrated-exp4``, and the paper's ``local-exp4`` and
        ``batched-exp4``.
    learner, release, batch
        Replace a part of a conversion, as for ``PrivateBandit``.
    loss_range, default_loss, clip, seed
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> policy = bd.PrivateExperts(experts=3, arms=2, epsilon=0.5, rounds=10_000)
    >>> decision = policy.decide([0, 0, 1])
    >>> policy.observe(decision, loss=0.3)
    >>> policy.algorithm
    'one-bit-exp4'
    """

    saved_as: ClassVar[str | None] = "PrivateExperts"

    def __init__(
        self,
        experts: int,
        arms: int | Sequence[ArmName],
        epsilon: float,
        delta: float = 0.0,
        rounds: int | None = None,
        algorithm: str = "auto",
        *,
        learner: Any = None,
        release: Release | str | None = None,
        batch: int | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        horizon = check_rounds(rounds)
        count = check_experts(experts)
        self.delta = checks.delta(delta)
        problem = (count, len(names), checks.epsilon(epsilon), self.delta, horizon)
        replaced = (learner, release, batch) != (None, None, None)
        self.why = f"{algorithm} was asked for."
        if algorithm == "auto":
            algorithm, self.why = choose_algorithm(*problem, replaced=replaced)
        over = checked_learner(learner, tuple(range(count)))
        request = ExpertRequest(algorithm, *problem, over, release, batch)
        super().__init__(
            private_expert_recipe(request),
            names,
            algorithm=algorithm,
            loss_range=loss_range,
            experts=count,
            default_loss=default_loss,
            clip=clip,
            rounds=horizon,
            seed=seed,
        )


class Experts(Policy):
    """The same without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    experts, arms, rounds
        As for ``PrivateExperts``.
    learner
        ``exp4`` (default; needs ``rounds``), ``uniform`` (any arm, no advice), ``random-expert``
        (a new expert each round); or a bandit learner over experts, by name or object.
    loss_range, default_loss, clip, seed
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Experts(experts=3, arms=2, rounds=1000).guarantee.private
    False
    """

    saved_as: ClassVar[str | None] = "Experts"

    def __init__(
        self,
        experts: int,
        arms: int | Sequence[ArmName],
        rounds: int | None = None,
        learner: Learner | str = "exp4",
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        horizon = check_rounds(rounds)
        count = check_experts(experts)
        chosen = required_learner(learner, tuple(range(count)))
        super().__init__(
            plain_expert_recipe(experts=count, arms=len(names), rounds=horizon, learner=chosen),
            names,
            algorithm=chosen if isinstance(chosen, str) else chosen.name,
            loss_range=loss_range,
            experts=count,
            default_loss=default_loss,
            clip=clip,
            rounds=horizon,
            seed=seed,
        )


def choose_algorithm(
    experts: int, arms: int, epsilon: float, delta: float, rounds: int | None, *, replaced: bool
) -> tuple[str, str]:
    """Return the algorithm with the smallest guarantee, and why it was chosen."""
    if experts == 1:
        return "one-bit-conversion", "There is one expert: it is followed, and nothing is learned."
    if replaced:
        return "one-bit-conversion", "Conversions are what takes a learner, release or batch."
    if rounds is None:
        return "one-bit-conversion", "Without rounds= there is no bound to compare others by."
    found = make_plan(arms, rounds, epsilon, experts=experts, delta=delta)
    return found.best.algorithm, found.why
