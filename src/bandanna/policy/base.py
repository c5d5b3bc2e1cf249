"""What every policy is: a lock around ``transitions.py``, what it promises, and its file.

Policies differ in what a round comes with, in how a batch is opened, and in what its release
teaches: ``decide``, ``_open_batch`` and ``_teach``.
"""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Never, Self

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import Advice, ticket_from_dict
from bandanna._core.grid import UNITS, UNNAMED_FEEDBACK, feedback_to_units
from bandanna._core.private_inputs import private_feedback
from bandanna._core.streams import Stream
from bandanna._core.types import (
    JSON,
    ArmName,
    Decision,
    Guarantee,
    InputError,
    without_frames,
)
from bandanna.policy.closing import close
from bandanna.policy.codec import VERSION, Limits, state_to_dict
from bandanna.policy.files import OneProcess, write_state
from bandanna.policy.outcomes import metrics_to_units
from bandanna.policy.parts import Recipe, algorithm_of
from bandanna.policy.promises import Exposed, certificate_of, promise_of
from bandanna.policy.state import Batch, EligibleArms, State
from bandanna.policy.transitions import (
    Chooser,
    Parts,
    as_decision,
    batch_for,
    batch_with_room,
    decide,
    finish,
    give_up,
    known_as,
    observe,
    owner_of,
    phase_for,
    sealed_batch,
)
from bandanna.privacy import Release
from bandanna.privacy.release import Released
from bandanna.spec import PeopleRule, Spec

if TYPE_CHECKING:
    from bandanna.privacy.range import PrivateRange


BOTH_WAYS = (
    "feedback of this policy came the other way before: as reward= or as loss=. Where something is "
    "subtracted from outcomes, or their range is found, all of it must come the same way."
)
NOT_BINARY = (
    "this policy was made with binary=True: its feedback is one of the two ends of the range. "
    "Leave binary out for outcomes in between."
)


class BasePolicy(OneProcess):
    """Decides round by round, releases each batch once, and learns from the releases alone."""

    saved_as: ClassVar[str | None] = None
    """Name of the kind in saved files; None where it cannot be saved."""
    spec: Spec
    recipe: Recipe
    _lock: threading.RLock
    _state: State
    _parts: Parts[Chooser]
    exposed: Exposed | None = None
    """Whose losses they are, where others decide and phases are counted elsewhere."""
    on_release: Callable[[Batch, Released | None], None] | None = None
    """Called with each batch that closes, which has forgotten its losses, and what left it;
    None if nothing in it counted."""

    @abstractmethod
    def _begin(self, stream: Stream, release: Release) -> None:
        """Begin with a fresh state."""

    @abstractmethod
    def decide(
        self,
        side: object,
        /,
        *,
        person: str | int | None = None,
        eligible: Iterable[ArmName] | Mapping[ArmName, bool] | None = None,
    ) -> Decision:
        """Choose an arm for a round, which comes with advice, a context or nothing."""

    @abstractmethod
    def _open_batch(self, among: EligibleArms | None) -> Batch:
        """Open a batch."""

    @abstractmethod
    def _teach(self, batch: Batch, released: Released | None) -> None:
        """Learn from what a batch released; None if nothing in it counted."""

    # --- what a user calls ----------------------------------------------------------------

    @private_feedback
    def observe(
        self,
        decision: Decision | Mapping[str, object],
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Take the feedback of a decision: once, in any order, late if need be.

        Give either ``loss=`` or ``reward=``, inside the range fixed at the start; a reward ``r`` is
        the loss ``low + high - r``. Where the policy has ``metrics``, give a value of each with it.
        The same values sent again are ignored; others are refused.
        """
        if unnamed:
            raise InputError(UNNAMED_FEEDBACK)
        made = as_decision(decision)
        self.check_takes(bits=False)
        spec = self.spec
        units = feedback_to_units(loss, reward, spec.loss_range, clip=spec.clip)
        also = metrics_to_units(metrics, spec.metrics, clip=spec.clip)
        if spec.binary and units not in (0, UNITS):
            raise InputError(NOT_BINARY)
        self._check_process()
        with self._lock:
            rewarded = reward is not None
            if (spec.adjust or spec.finds) and self._state.rewarded is (not rewarded):
                raise InputError(BOTH_WAYS)
            batch = observe(self._parts, self._state, made, units, also, reward=rewarded)
            # What fails below must not carry them in its traceback.
            del loss, reward, metrics, units, also
            self._learn(batch)

    def give_up(self, decision: Decision | Mapping[str, object]) -> None:
        """Stop waiting for feedback that has not come, so that its batch can close.

        ``default_loss`` is counted for it; where decisions depend on context, nothing. Give up by
        a rule that is public and looks at nobody's feedback, such as a fixed time after the
        decision. If feedback has come, nothing happens. Later feedback is refused.
        """
        made = as_decision(decision)
        self._check_process()
        with self._lock:
            self._learn(give_up(self._parts, self._state, made))

    def finish(self, person: str | int) -> None:
        """Close a person's slot with the feedback that has come, so that its batch can close.

        Do so by a rule that is public and looks at nobody's feedback, such as a fixed time after
        their first round. Later feedback of theirs is refused. When they
        come back, they take another slot.
        """
        self._finish(known_as(self._state, person))

    def finish_slot(self, decision: Decision | Mapping[str, object]) -> None:
        """Close the slot that a decision belongs to, as ``finish`` does for its person."""
        with self._lock:
            self._finish(owner_of(self._state, as_decision(decision)))

    def rehearse(self, arm_stream: Stream, release_stream: Stream) -> Self:
        """Return a fresh copy with seeded streams, release included: for tests and simulation.

        Its guarantee says that epsilon is infinite.
        """
        return self.copy_with(self.recipe.release.seeded(release_stream), arm_stream)

    def copy_with(self, release: Release, arm_stream: Stream) -> Self:
        """Return a fresh copy with another release: for tests, simulation and audits."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._lock = threading.RLock()
        copy._belong_here()
        copy._begin(arm_stream, release)
        copy.on_release = None
        return copy

    # --- what it is and promises ----------------------------------------------------------

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """Names of all arms, retired ones included."""
        return self.spec.arms

    @property
    def choices(self) -> tuple[ArmName, ...]:
        """What is chosen between: the arms, or the experts."""
        return self.arms if self.spec.experts is None else self.spec.experts

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""
        return algorithm_of(self.spec)

    @property
    def rounds(self) -> int | None:
        """How many decisions are expected."""
        return self.spec.rounds

    @property
    def loss_range(self) -> tuple[float, float]:
        """Smallest and largest possible loss."""
        return self.spec.loss_range

    @property
    def counted_range(self) -> tuple[float, float]:
        """The range of what is counted of an outcome, with what was known before subtracted."""
        scale = self._state.scale
        return self.loss_range if scale is None else scale.ends

    @property
    def clip(self) -> bool:
        """Whether feedback outside the range counts as its nearer end."""
        return self.spec.clip

    @property
    def people(self) -> PeopleRule | None:
        """The rule for people who come back; None where rounds are protected."""
        return self.spec.rule

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round's feedback, or one person's, and why."""
        return self._promise()

    def certificate(self, bought: PrivateRange | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        If the range of losses was ``bought`` with ``bd.private_range``, give it: the document then
        says what that cost, and what range and policy cost someone who is in both.

        It holds nothing private. Write it with ``json.dump``; ``docs/certificate.md`` explains
        every entry.
        """
        return certificate_of(self.spec, self._state, self._promise(once=True), bought)

    def _promise(self, *, once: bool = False) -> Guarantee:
        """Return what is promised; ``once`` is what a single release promises."""
        parts = self._parts
        told = self.spec, self.recipe, parts.release, self._state, parts.columns
        return promise_of(*told, once=once, exposed=self.exposed)

    @abstractmethod
    def answer(self) -> object:
        """Return what was learned, in an answer."""

    def summary(self) -> object:
        """Return what was learned; as a rule the same as ``answer``."""
        return self.answer()

    # --- how far it is --------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Everything that changes while it runs, for stores: as private as the feedback."""
        return self._state

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        return self._state.waiting

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return self._state.rounds

    @property
    def released(self) -> int:
        """Batches released so far."""
        return self._state.released

    @property
    def resumed(self) -> int:
        """How often its file was resumed more than once."""
        return self._state.resumed

    def made(self, identity: str) -> bool:
        """Whether decisions with this identity are its own, from before it was loaded too."""
        return self._state.issued_by(identity)

    # --- files ----------------------------------------------------------------------------

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

    def to_dict(self, *, private: bool = True) -> JSON:
        """Return everything a policy knows, as plain values: as private as the feedback.

        With ``private=False`` feedback, hashes of persons and their key are left out.
        """
        if vars(type(self)).get("saved_as") is None:
            raise InputError(f"a {type(self).__name__} cannot be saved; only Bandanna's own can.")
        self._check_process()
        with self._lock:
            return {
                "version": VERSION,
                "spec": self.spec.to_dict(),
                "learner": self.recipe.learner.to_dict(),
                "release": self._parts.release.to_dict(),
                **state_to_dict(self._state, private=private),
            }

    def limits(self) -> Limits:
        """Return what its saved state must fit."""
        parts, arms, choices = self._parts, len(self.arms), len(self.choices)
        as_ticket = partial(ticket_from_dict, arms=arms, experts=choices)
        return Limits(arms, choices, self.spec.rule, parts.release, as_ticket, parts.columns)

    # --- arms -----------------------------------------------------------------------------

    def among(self, eligible: Iterable[ArmName] | Mapping[ArmName, bool]) -> EligibleArms | None:
        """Return the indices of eligible arms, in order; None if these are all."""
        return eligible_arms(eligible, self.arms)

    # --- how it works ---------------------------------------------------------------------

    def check_takes(self, *, bits: bool) -> None:
        """Refuse losses where devices send bits, and bits where losses are sent."""
        if self._parts.release.takes_bits and not bits:
            raise InputError(
                "this policy takes bits that people's devices released, and no losses: feedback "
                "must not come here. Send the bit of bandanna.device, by observe_bit."
            )
        if bits and not self._parts.release.takes_bits:
            raise InputError(
                "this policy takes losses and releases them itself; a bit would be released twice. "
                'For bits make it with release="device".'
            )

    def known_before(self, before: object) -> float | None:
        """Require what was known before, where it is subtracted; and nothing elsewhere."""
        name = self.spec.adjust
        if name is None:
            if before is not None:
                raise InputError(
                    "this policy subtracts nothing that was known before; make it with adjust=, or "
                    "leave before= out."
                )
            return None
        number = checks.as_float(before)
        if not math.isfinite(number):
            raise InputError(
                f"give before=, what was known of the person before this decision, {name!r}: a "
                f"finite number, for those of whom nothing is known always the same one. What was "
                f"given is not repeated here because it is private."
            )
        return number

    def _decide(
        self,
        side: Advice | None,
        person: object,
        eligible: Iterable[ArmName] | None,
        before: float | None = None,
    ) -> Decision:
        """Choose an arm for a round, whatever it comes with."""
        state, who = self._state, None
        if person is not None or state.people is not None:
            who = known_as(state, person)
        self._check_process()
        with self._lock:
            among = None if eligible is None else self.among(eligible)
            shared = self._parts.runner.shares
            if who is not None:
                self._learn(sealed_batch(state, None if shared else among))
            if shared:
                batch = phase_for(state, who, among)
            elif who is None:
                batch = batch_with_room(state, among)
            else:
                batch = batch_for(state, who, among)
            if batch is None:
                batch = self._open_batch(None if shared else among)
            return decide(self._parts, state, batch, self.spec.arms, side, who, among, before)

    def _finish(self, who: int) -> None:
        self._check_process()
        with self._lock:
            for batch in finish(self._parts, self._state, who):
                self._learn(batch)

    def _learn(self, batch: Batch | None) -> None:
        """Release a complete batch, once, and learn from what came out."""
        if batch is not None:
            self._state.first_arms = self._state.first_arms or len(self.choices)
            released = close(self._parts, self._state, batch)
            self._teach(batch, released)
            if self.on_release is not None:
                self.on_release(batch, released)


def eligible_arms(eligible: object, names: tuple[ArmName, ...]) -> EligibleArms | None:
    """Turn arms, by name or index, into indices in their order; None if these are all arms.

    Where names are whole numbers, a number is a name.
    """
    if isinstance(eligible, str | bytes) or not isinstance(eligible, Iterable):
        raise InputError(f"eligible must be a list of arms, by name or index; got {eligible!r}.")
    if isinstance(eligible, Mapping):
        wrong = [arm for arm, may in eligible.items() if not isinstance(may, bool | np.bool_)]
        if wrong:
            raise InputError(
                f"eligible as a mapping says True or False for each arm; for {wrong[0]!r} it says "
                f"{eligible[wrong[0]]!r}."
            )
        for arm in eligible:
            arm_index(arm, names)
        eligible = [arm for arm, may in eligible.items() if may]
    indices = {arm_index(arm, names) for arm in eligible}
    if not indices:
        raise InputError("no arm is eligible; give at least one, or leave eligible out.")
    return None if len(indices) == len(names) else tuple(sorted(indices))


def arm_index(arm: object, names: tuple[ArmName, ...]) -> int:
    """Return the index of an arm given by its name, or by its index where names are texts."""
    plain = arm.item() if isinstance(arm, np.generic) else arm
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        if plain in names:
            return names.index(plain)
        by_index = not any(isinstance(name, int) for name in names)
        if isinstance(plain, int) and by_index and 0 <= plain < len(names):
            return plain
    raise InputError(f"unknown arm {arm!r}; there are {', '.join(map(repr, names))}.")
