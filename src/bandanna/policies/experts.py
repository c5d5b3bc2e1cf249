"""The policies a person holds who has experts: private, and plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bandanna import checks
from bandanna.advice import MAX_EXPERTS, check_advice
from bandanna.learners import Learner
from bandanna.policies.bandit import (
    arm_names,
    check_rounds,
    checked_learner,
    required_learner,
)
from bandanna.policies.batches import Batch
from bandanna.policies.core import BatchedPolicy
from bandanna.policies.expert_play import ExpertBatch, start_play
from bandanna.policies.expert_recipe import (
    CONVERSIONS,
    ExpertRecipe,
    ExpertRequest,
    plain_expert_recipe,
    private_expert_recipe,
)
from bandanna.privacy import Release, SeededRelease, VectorRelease
from bandanna.privacy.release import PROTECTED_WITH_EXPERTS
from bandanna.privacy.vector import PUBLIC_ADVICE, SeededVectorRelease
from bandanna.streams import Stream
from bandanna.theory.planner import Plan
from bandanna.theory.planner import plan as make_plan
from bandanna.types import JSON, ArmName, Decision, Guarantee, InputError


class BatchedExperts(BatchedPolicy):
    """Chooses an arm each round by what experts advise."""

    recipe: ExpertRecipe
    experts: int
    delta: float = 0.0
    why: str = ""
    """Why this algorithm."""

    def decide(self, advice: Any) -> Decision:
        """Choose an arm for the next round.

        Parameters
        ----------
        advice
            The index or name of an arm for each expert, shape (N,); or a distribution over the
            arms for each, shape (N, K), whose rows add up to 1 within 1e-4.
        """
        checked = check_advice(advice, self.experts, len(self.arms), self.arms)
        batch = self._next_batch()
        assert isinstance(batch, ExpertBatch)
        arm = self._play.choose(batch, len(batch.losses), checked)
        return self._decision(batch, batch.open_round_of(arm), arm)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round's feedback, and why."""
        promise = super().guarantee
        if not promise.private or isinstance(self.recipe.release, VectorRelease):
            return promise
        if self.algorithm in CONVERSIONS and self.experts > 1:
            promise = replace(promise, protects=PROTECTED_WITH_EXPERTS)
        return promise.assuming(PUBLIC_ADVICE)

    @property
    def plan(self) -> Plan:
        """What this and other algorithms guarantee for this problem; needs ``rounds``."""
        if self.rounds is None or not self.guarantee.private or self.experts < 2:
            raise InputError("a plan needs rounds=, several experts and a private policy.")
        epsilon = self.guarantee.epsilon
        return make_plan(
            len(self.arms), self.rounds, epsilon, experts=self.experts, delta=self.delta
        )

    def _start(self) -> None:
        self._play = start_play(self.recipe, self._stream)

    def _open_batch(self, number: int) -> ExpertBatch:
        return self._play.open_batch(number)

    def _arm_of(self, batch: Batch, position: int) -> int:
        assert isinstance(batch, ExpertBatch)
        return batch.arms[position]

    def _credit(self, batch: Batch, position: int, units: int) -> None:
        assert isinstance(batch, ExpertBatch)
        self._play.credit(batch, position, units)

    def _learn(self, batch: Batch) -> None:
        assert isinstance(batch, ExpertBatch)
        self._play.learn(batch, self._release)

    def _learned(self) -> JSON:
        return self._play.state_dict()

    def _load_learned(self, state: JSON) -> None:
        self._play.load_state(state)

    def _seed_release(self, stream: Stream) -> SeededRelease | SeededVectorRelease:
        release = self.recipe.release
        if isinstance(release, VectorRelease):
            return SeededVectorRelease(release, stream)
        return SeededRelease(release, stream)


class PrivateExperts(BatchedExperts):
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
    loss_range, default_loss, seed
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
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        horizon = check_rounds(rounds)
        self.experts = check_experts(experts)
        self.delta = checks.delta(delta)
        problem = (self.experts, len(names), checks.epsilon(epsilon), self.delta, horizon)
        replaced = (learner, release, batch) != (None, None, None)
        self.why = f"{algorithm} was asked for."
        if algorithm == "auto":
            algorithm, self.why = choose_algorithm(*problem, replaced=replaced)
        over = checked_learner(learner, tuple(range(self.experts)))
        request = ExpertRequest(algorithm, *problem, over, release, batch)
        super().__init__(
            private_expert_recipe(request),
            names,
            algorithm=algorithm,
            loss_range=loss_range,
            default_loss=default_loss,
            rounds=horizon,
            seed=seed,
        )


class Experts(BatchedExperts):
    """The same without privacy, for comparison and for feedback that is not about people.

    Parameters
    ----------
    experts, arms, rounds
        As for ``PrivateExperts``.
    learner
        ``exp4`` (default; needs ``rounds``), ``uniform`` (any arm, no advice), ``random-expert``
        (a new expert each round); or a bandit learner over experts, by name or object.
    loss_range, default_loss, seed
        As for ``PrivateBandit``.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.Experts(experts=3, arms=2, rounds=1000).guarantee.private
    False
    """

    def __init__(
        self,
        experts: int,
        arms: int | Sequence[ArmName],
        rounds: int | None = None,
        learner: Learner | str = "exp4",
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        default_loss: float | None = None,
        seed: int | None = None,
    ) -> None:
        names = arm_names(arms)
        horizon = check_rounds(rounds)
        self.experts = check_experts(experts)
        chosen = required_learner(learner, tuple(range(self.experts)))
        super().__init__(
            plain_expert_recipe(
                experts=self.experts, arms=len(names), rounds=horizon, learner=chosen
            ),
            names,
            algorithm=chosen if isinstance(chosen, str) else chosen.name,
            loss_range=loss_range,
            default_loss=default_loss,
            rounds=horizon,
            seed=seed,
        )


def check_experts(experts: Any) -> int:
    """Require a number of experts."""
    return checks.whole("experts", experts, at_least=1, at_most=MAX_EXPERTS)


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
