"""The contextual policy that a person holds: it decides by what is known of the person.

What waits, adds up and is released once is as for all policies: ``policy/transitions.py``. An
epoch is a batch whose tally adds up sums of features and outcomes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self, cast

import numpy as np

from bandanna._core import checks
from bandanna._core.checks import MAX_SLOTS
from bandanna._core.grid import check_range
from bandanna._core.html import paragraph
from bandanna._core.private_inputs import private_inputs
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import JSON, ArmName, Decision, InputError, StateFileError
from bandanna.contextual.answers import ContextAnswer, answer_of
from bandanna.contextual.features import Context, Encoder, as_encoder, encoder_from_dict
from bandanna.contextual.plays import ContextLearner, ContextPlay, LinearLearner, LinearPlay
from bandanna.contextual.schedule import planned_ends
from bandanna.contextual.steps import Floats
from bandanna.policy.base import BasePolicy
from bandanna.policy.codec import Limits, load_state, migrated
from bandanna.policy.parts import Recipe
from bandanna.policy.state import Batch, Drawn, EligibleArms, People, State
from bandanna.policy.transitions import Parts, open_batch
from bandanna.privacy import Release
from bandanna.privacy.epoch_sums import EpochRelease
from bandanna.privacy.epochs import MAX_FEATURES, Protects
from bandanna.privacy.release import Released, ReleasedEpoch
from bandanna.spec import Spec, arm_names, spec_from_dict

MAX_ROUNDS = 10**8


class PrivateContextual(BasePolicy):
    """Choose among arms by what is known of each person, without revealing their feedback.

    Parameters
    ----------
    arms
        How many arms, or their names.
    features
        What a context may say, declared beforehand and public: ranges and categories by name, such
        as ``{"age": (18, 90), "plan": ["bronze", "silver", "gold"]}``. Or an encoder that was
        fitted on public data, ``bandanna.contextual.Fitted``.
    epsilon, delta
        The privacy parameters; ``delta`` is 1e-6 by default, and 0 with trees. With ``delta=0`` the
        guarantee is pure, and the noise much larger.
    rounds
        How many decisions are expected. Epochs are laid out for it; going on costs no privacy.
    protects
        ``"feedback"``: contexts are public, and what one person's outcome was is protected.
        ``"context and feedback"``: neither one person's features nor their outcome can be told
        from what all others see (joint differential privacy).
    algorithm
        ``"linear"``: regression from released statistics, for rewards that depend on features
        nearly linearly. ``"trees"``: all pruned trees of the features, with a regret bound for
        losses of any kind; contexts are public, delta is 0, and every round is released as a bit.
    leaves, bins
        With trees: leaves of the tree that the learning rate is for (8), and the number of bins
        that ranges are cut into, a power of two (4).
    loss_range
        Smallest and largest possible loss, or reward, known beforehand.
    clip
        Count feedback outside the range as its nearer end.
    seed
        Makes the draws of arms repeatable. The noise that protects people never is.
    per_person
        Protect persons instead of rounds: in how many epochs each may be counted, once in each.
        Then ``epsilon`` and ``delta`` are for everything a person contributes, and ``decide`` asks
        who it is for. What they say beyond is not used.

    Examples
    --------
    >>> import bandanna as bd
    >>> policy = bd.PrivateContextual(
    ...     arms=["discount", "reminder"],
    ...     features={"age": (18, 90), "plan": ["bronze", "silver", "gold"]},
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     rounds=10_000,
    ... )
    >>> decision = policy.decide(context={"age": 41, "plan": "silver"})
    >>> policy.observe(decision, reward=1.0)
    >>> policy.guarantee.epsilon, policy.guarantee.delta
    (1.0, 1e-06)
    """

    saved_as = "PrivateContextual"
    plays: ClassVar[str] = "linear"
    """Its algorithm."""
    of_bits: ClassVar[bool] = False
    """Whether it releases bits, which are pure; a person's many may cost less with a delta."""
    _parts: Parts[ContextPlay]

    def __new__(cls, *args: object, algorithm: str = "linear", **kwargs: object) -> Self:
        """Make the kind that an algorithm needs."""
        if algorithm not in KINDS:
            choices = " or ".join(map(repr, KINDS))
            raise InputError(f"algorithm must be {choices}; got {algorithm!r}.")
        if cls is PrivateContextual:
            return object.__new__(KINDS[algorithm])  # type: ignore[return-value]
        return object.__new__(cls)

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        features: Mapping[str, object] | Encoder,
        epsilon: float,
        delta: float | None = None,
        rounds: int = 100_000,
        protects: Protects = "feedback",
        *,
        algorithm: str = "linear",
        leaves: int | None = None,
        bins: int | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        clip: bool = False,
        seed: int | None = None,
        per_person: int | None = None,
    ) -> None:
        known, usual = per_person is not None, 0.0 if self.of_bits else 1e-6
        spent = usual if delta is None else delta
        spec = Spec(
            PrivateContextual.__name__,
            arm_names(arms),
            checks.epsilon(epsilon),
            0.0 if self.of_bits and not known else spent,
            checks.whole("rounds", rounds, 1, MAX_ROUNDS),
            algorithm=self.plays,
            loss_range=check_range(loss_range),
            clip=clip,
            per_person=checks.whole("per_person", per_person, 1, MAX_SLOTS) if known else None,
            rounds_per_slot=1 if known else None,
        )
        recipe = self._recipe_with(spec, as_encoder(features), protects, leaves, bins)
        self._settle(spec, recipe, new_stream(seed))

    @classmethod
    def _recipe_with(
        cls, spec: Spec, encoder: Encoder, protects: Protects, leaves: int | None, bins: int | None
    ) -> Recipe:
        """Return the learner and what publishes its epochs."""
        if leaves is not None or bins is not None:
            raise InputError('leaves and bins go with algorithm="trees".')
        learner = LinearLearner(len(spec.arms), encoder)
        return Recipe(learner, epochs_of(spec, encoder, protects))

    def _settle(self, spec: Spec, recipe: Recipe, stream: Stream) -> None:
        self.spec, self.recipe = spec, recipe
        self._lock = threading.RLock()
        self._belong_here()
        self._begin(stream, recipe.release)

    def _begin(self, stream: Stream, release: Release) -> None:
        """Begin with a fresh state."""
        play, rule = self._learner.begin(release, self._rounds, stream), self.spec.rule
        self._state = State(stream, play, None if rule is None else People())
        self._parts = Parts(play, release, rule, default=None)

    @property
    def _learner(self) -> ContextLearner:
        assert isinstance(self.recipe.learner, ContextLearner)
        return self.recipe.learner

    @property
    def _rounds(self) -> int:
        assert self.spec.rounds is not None, "a contextual policy has rounds"
        return self.spec.rounds

    # --- what a user calls ----------------------------------------------------------------

    @private_inputs
    def decide(  # type: ignore[override]
        self,
        context: Context,
        *,
        person: str | int | None = None,
        eligible: Iterable[ArmName] | Mapping[ArmName, bool] | None = None,
    ) -> Decision:
        """Choose an arm for a person.

        With ``per_person`` say who it is, by anything that is the same whenever they come; only a
        keyed hash of it is kept. Features that ``context`` leaves out are missing; others than the
        declared ones are refused. ``eligible`` are the arms that may be played, all by default;
        which they are must be public. The decision depends on this context and on what was
        released. Where contexts are protected, show it to this person only.
        """
        return self._decide(self._learner.encode(context), person, eligible)

    # --- what it tells of itself: public, or follows from what was released ----------------

    @property
    def encoder(self) -> Encoder:
        """How contexts are encoded."""
        return self._learner.encoder

    @property
    def batch(self) -> int:
        """Rounds in the newest epoch."""
        return self._linear.length(max(0, self._state.batches - 1))

    @property
    def protects(self) -> Protects:
        """Which promise holds."""
        return "context and feedback" if getattr(self.recipe.release, "both", False) else "feedback"

    def answer(self) -> ContextAnswer:
        """Return what was learned: means by arm, and which features matter.

        It follows from released values, so it costs no privacy and may be shown to anyone.
        """
        with self._lock:
            return answer_of(self._linear.fitted, self.encoder, self.arms, self.loss_range)

    def summary(self) -> ContextAnswer:
        """Return the same as ``answer``."""
        return self.answer()

    @property
    def past(self) -> list[ReleasedEpoch]:
        """What epochs released."""
        return self._linear.past

    @property
    def coefficients(self) -> Floats:
        """How the score of each arm depends on the encoded features: follows from releases."""
        return self._linear.scores.coefficients.copy()

    def chances(self, context: Context) -> dict[ArmName, float]:
        """Return the probability of each arm for a context; nothing is decided."""
        encoded = self._learner.encode(context)
        with self._lock:
            drawn = self._parts.runner.chances(encoded)
        return dict(zip(self.arms, drawn.tolist(), strict=True))

    @property
    def _linear(self) -> LinearPlay:
        return cast(LinearPlay, self._state.learned)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.algorithm}: {len(self.arms)} arms, "
            f"{self.encoder.size} features, protects {self.protects}, {self.decided} decided, "
            f"{self.waiting} waiting, {self.released} epochs released>"
        )

    def _repr_html_(self) -> str:
        return paragraph(repr(self)) + self.guarantee._repr_html_()

    # --- files ----------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, data: JSON, encoder: object = None, *, latest: bool = False) -> Self:
        """Make a policy from what ``to_dict`` returned, checking every value anew.

        It gets a new identity, unless this is known to be the ``latest`` state. ``encoder`` is the
        fitted one it was made with, where features were not declared.
        """
        data = migrated(data)
        spec = spec_from_dict(data["spec"])
        if spec.kind != PrivateContextual.__name__ or spec.algorithm not in KINDS:
            raise StateFileError(f"it holds a {spec.kind}; use bandanna.load.")
        kind = KINDS[spec.algorithm]
        policy = object.__new__(kind)
        saved, protects = data["learner"], data["release"].get("protects", "feedback")
        shape = saved.get("leaves"), saved.get("bins")
        made = encoder_from_dict(saved["encoder"], encoder)
        recipe = kind._recipe_with(spec, made, protects, *shape)
        if recipe.release.to_dict() != data["release"]:
            raise ValueError("its release does not fit its parameters")
        policy._settle(spec, recipe, new_stream(0))
        load_state(policy.state, data, policy.limits(), latest=latest)
        return cast(Self, policy)

    def limits(self) -> Limits:
        """Return what its saved state must fit."""
        return super().limits()._replace(as_ticket=self._parts.runner.as_ticket)

    # --- how it works ---------------------------------------------------------------------

    def _open_batch(self, among: EligibleArms | None) -> Batch:
        size, tally = self._parts.runner.open(self._state.batches)
        drawn = Drawn(choice=0, importance=1.0, size=size, credited=0, chance=None)
        return open_batch(self._parts, self._state, drawn, tally=tally)

    def _teach(self, batch: Batch, released: Released | None) -> None:
        if released is not None:
            self._parts.runner.learn(released, batch.ticket)


KINDS: dict[str, type[PrivateContextual]] = {"linear": PrivateContextual}
"""The class of each algorithm; ``bandanna.contextual`` knows them all."""


def epochs_of(spec: Spec, encoder: Encoder, protects: Protects) -> EpochRelease:
    """Return what publishes the epochs of a policy."""
    size = len(spec.arms), checks.whole("features", encoder.size, 1, MAX_FEATURES)
    about = protects, spec.epsilon, spec.delta, *size
    if spec.per_person is not None:
        return EpochRelease(*about, spec.per_person, by_person=True)
    assert spec.rounds is not None, "a contextual policy has rounds"
    lengths = np.diff([0, *planned_ends(spec.rounds, EpochRelease(*about))])
    return EpochRelease(*about, shortest=int(lengths.min()))
