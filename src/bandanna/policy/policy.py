"""A policy: decides round by round, releases each batch once, learns from the releases alone.

It is a lock around ``transitions.py``, and the verbs that users call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Never, NoReturn, Self

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import check_advice
from bandanna._core.grid import UNNAMED_FEEDBACK, feedback_to_units, to_units
from bandanna._core.private_inputs import private_feedback
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import (
    JSON,
    ArmName,
    Decision,
    InputError,
    without_frames,
)
from bandanna.learners.steps import CHOSEN
from bandanna.policy.codec import VERSION, state_to_dict
from bandanna.policy.diagnostics import Diagnostics
from bandanna.policy.files import OneProcess, write_state
from bandanna.policy.outcomes import breaches, guardrail_error, metric_known, metrics_to_units
from bandanna.policy.parts import Recipe, check_parts, metrics_of
from bandanna.policy.runner import Runner, start_learner
from bandanna.policy.state import NOT_LEARNED, Batch, Drawn, EligibleArms, People, State
from bandanna.policy.transitions import (
    Parts,
    as_decision,
    batch_for,
    batch_with_room,
    check_bit,
    close,
    count_phase,
    decide,
    finish,
    give_up,
    known_as,
    observe,
    open_batch,
    open_phase,
    owner_of,
    phase_for,
    sealed_batch,
    within_reach,
)
from bandanna.privacy import Release
from bandanna.privacy.release import Released
from bandanna.spec import Spec, arm_names


class Policy(OneProcess, Diagnostics):
    """Decides round by round, releases each batch once, and learns from the releases alone.

    Batches open while earlier ones still wait for feedback. With feedback in order it
    is the paper's Algorithm 1, or with experts 6 or 2. Threads may share it: one lock lets them in
    one after the other.

    Examples
    --------
    >>> import bandanna as bd
    >>> policies = [bd.PrivateBandit(2, epsilon=1.0), bd.Bandit(2)]
    >>> [isinstance(policy, bd.Policy) for policy in policies]
    [True, True]
    """

    saved_as: ClassVar[str | None] = None
    """Name of the kind in saved files; None where it cannot be saved."""

    def __init__(
        self,
        spec: Spec,
        recipe: Recipe,
        *,
        why: str = "",
        seed: int | None = None,
        retired: Iterable[int] = (),
    ) -> None:
        self.spec = spec
        self.recipe = recipe
        self.why = why
        self._lock = threading.RLock()
        self._belong_here()
        stream = new_stream(None if seed is None else checks.whole("seed", seed, 0))
        self._begin(stream, recipe.release, frozenset(retired))
        check_parts(recipe, len(self.active), spec.num_experts, spec.rounds)
        self.on_release: Callable[[Batch, Released | None], None] | None = None
        """Called with each batch that closes, which has forgotten its losses, and what left it;
        None if nothing in it counted."""

    def _begin(self, stream: Stream, release: Release, retired: frozenset[int]) -> None:
        """Begin with a fresh state."""
        spec, learned = self.spec, start_learner(self.recipe, stream)
        people = None if spec.rule is None else People()
        self._state = State(stream, learned, people, retired=retired)
        self._state.rewarded = spec.start is not None and spec.start.reward
        self._state.first_arms = 0 if spec.start is None else len(spec.arms)
        runner = Runner(self.recipe, spec.num_experts, self._state, len(spec.arms))
        default = to_units("default_loss", spec.default_loss, spec.loss_range)
        self._parts = Parts(runner, release, spec.rule, default, metrics_of(spec))

    # --- what a user calls ----------------------------------------------------------------

    def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        eligible: Iterable[ArmName] | Mapping[ArmName, bool] | None = None,
        **unknown: Never,
    ) -> Decision:
        """Choose an arm for the next round.

        Parameters
        ----------
        advice
            With experts: the index or name of an arm for each, shape (N,); or a distribution over
            the arms for each, shape (N, K), whose rows add up to 1 within 1e-4. In the order of the
            experts, or by their names: ``{"lr": 0, "rf": 1}``.
        person
            With ``per_person``: whose round it is. Anything that is the same whenever they come;
            only a keyed hash of it is kept.
        eligible
            The arms that may be played in this round, by name or index, or whether each may be:
            ``["A"]`` or ``{"A": True, "B": False}``. All of them by default. Which they are must be
            public. Rounds with the same eligible arms fill batches of their
            own. ``docs/arms.md`` explains.
        """
        if unknown:
            refuse_keywords(unknown)
        spec, said = self.spec, None
        if spec.experts is not None:
            size = len(spec.experts), len(spec.arms)
            said = check_advice(advice, *size, spec.arms, spec.experts)
        elif advice is not None:
            raise InputError("there are no experts here; call decide() without advice.")
        state = self._state
        who = None
        if person is not None or state.people is not None:
            who = known_as(state, person)
        self._check_process()
        with self._lock:
            among = None if eligible is None else self.among(eligible)
            phases = self._parts.runner.phases
            if who is not None:
                self._learn(sealed_batch(state, None if phases else among))
            if phases:
                batch = phase_for(state, who, among)
            else:
                batch = (
                    batch_with_room(state, among) if who is None else batch_for(state, who, among)
                )
            if batch is None:
                batch = self._open_batch(among)
            return decide(self._parts, state, batch, self.spec.arms, said, who, among)

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
        self._check_process()
        with self._lock:
            batch = observe(self._parts, self._state, made, units, also)
            self._state.rewarded = reward is not None
            # What fails below must not carry them in its traceback.
            del loss, reward, metrics, units, also
            self._learn(batch)

    @private_feedback
    def observe_bit(self, decision: Decision | Mapping[str, object], bit: int) -> None:
        """Take the bit that a person's device released for a decision: once, as ``observe`` does.

        For policies with ``release="device"``, which take nothing else.
        """
        made = as_decision(decision)
        self.check_takes(bits=True)
        self._check_process()
        with self._lock:
            self._learn(observe(self._parts, self._state, made, check_bit(bit)))

    def give_up(self, decision: Decision | Mapping[str, object]) -> None:
        """Count ``default_loss`` for feedback that has not come, so that its batch can close.

        Give up by a rule that is public and looks at nobody's feedback, such as a fixed time
        after the decision. If feedback has come, nothing happens. Later feedback is refused.
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
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._lock = threading.RLock()
        copy._belong_here()
        copy._begin(arm_stream, self.recipe.release.seeded(release_stream), self._state.retired)
        copy._state.changed = self._state.changed
        if copy._parts.metrics is not None:
            copy._parts.metrics = copy._parts.metrics.seeded(release_stream)
        copy.on_release = None
        return copy

    # --- arms that come and go ------------------------------------------------------------

    def add_arm(self, name: ArmName) -> int:
        """Add an arm; the next batch may play it. Returns its index.

        It starts level with the best one, or as unknown where arms are ranked. Decide on it by
        what is public: neither privacy nor estimates suffer. ``docs/theory/arms.md`` says what is
        left of the regret bound. Indices of arms never change: an added arm takes the next.

        Parameters
        ----------
        name
            Its name, another than those of all arms so far.

        Examples
        --------
        >>> import bandanna as bd
        >>> bandit = bd.PrivateBandit(["red", "green"], epsilon=1.0)
        >>> bandit.add_arm("blue"), bandit.arms
        (2, ('red', 'green', 'blue'))
        >>> bandit.retire_arm("red")
        >>> bandit.decide().arm == "red"
        False
        """
        with self._lock:
            arms = arm_names((*self.arms, name))
            running = [arm for arm in self.active if arm not in self.retired]
            self._change_arms((*running, len(self.arms)), arms)
            return len(arms) - 1

    def retire_arm(self, arm: ArmName) -> None:
        """Retire an arm, by name or index, for good: no batch that begins from now on plays it.

        A batch that plays it and has begun goes on until it is full; to play the arm no more at
        once, decide among the others: ``decide(eligible=...)``. A retired arm keeps its index.
        """
        with self._lock:
            index = arm_index(arm, self.arms)
            if index in self.retired:
                raise InputError(f"arm {arm!r} has been retired before.")
            if index == self._control:
                raise InputError(f"arm {arm!r} is the control, and stays.")
            if len(self.active) == 2:
                raise InputError(
                    f"arm {arm!r} is one of the last two; a bandit needs at least 2 arms. Add "
                    f"another one first."
                )
            self._change_arms(tuple(other for other in self.active if other != index), self.arms)

    def _change_arms(self, active: tuple[int, ...], arms: tuple[ArmName, ...]) -> None:
        """Go on with other arms; nothing is changed where that is refused."""
        name = self.around or self.algorithm
        learner = self._parts.runner.with_arms(active, len(arms), name)
        self.recipe = self.recipe._replace(learner=learner)
        self._state.retired = frozenset(range(len(arms))) - frozenset(active)
        self.spec = self.spec.but(arms=arms)
        self._state.changed = True
        self._state.changes += 1

    def among(self, eligible: Iterable[ArmName] | Mapping[ArmName, bool]) -> EligibleArms | None:
        """Return the indices of eligible arms, in order; None if these are all."""
        found = eligible_arms(eligible, self.arms)
        if found is None:
            return None
        self._parts.runner.check_among(self.around or self.algorithm)
        if self.retired.issuperset(found):
            raise InputError("no arm is eligible: those that were given have been retired.")
        return found

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
        kind = vars(type(self)).get("saved_as")
        if kind is None:
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

    # --- phases that are counted elsewhere --------------------------------------------------

    def plan_phase(self) -> Batch:
        """Plan the next phase, for those who decide and count elsewhere."""
        with self._lock:
            return self._open_batch(None)

    def observe_phase(self, number: int, sums: Mapping[int, tuple[int, ...]]) -> None:
        """Take what a phase came to, release it, once, and learn from the release.

        Parameters
        ----------
        number
            Which phase.
        sums
            By the index of each arm that was met: how many met it, then their losses added up in
            grid units, and each metric.
        """
        with self._lock:
            batch = count_phase(self._state, number, sums)
            had = sum(count for count, *_ in sums.values())
            self._learn(batch)
            self._parts.runner.adjust_phase(batch.size, had)

    # --- how it works ---------------------------------------------------------------------

    @property
    def plays_phases(self) -> bool:
        """Whether arms take turns in a phase, and each is released once when it is over."""
        return self._parts.runner.phases

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

    def _finish(self, who: int) -> None:
        self._check_process()
        with self._lock:
            for batch in finish(self._parts, self._state, who):
                self._learn(batch)

    def _open_batch(self, among: EligibleArms | None) -> Batch:
        least, control = self.spec.least_share, self._control
        least = 1.0 if self._only_control else least
        if self._parts.runner.phases:
            behind = least * self._state.rounds - self._state.control_rounds
            planned = self._parts.runner.open_phase(control if least > 0.0 else None, least, behind)
            if control is not None:
                self._state.control_rounds += int(planned[2].planned[control])
            return open_phase(self._parts, self._state, *planned)
        due = least * (self._state.rounds + 1) - self._state.control_rounds
        if control is not None and due > 0.0 and (among is None or control in among):
            return self._open_for_control(control, due, among)
        drawn, people = self._parts.runner.open(among), self._state.people
        if people is not None and drawn.size and self.spec.per_person is not None:
            left = people.with_slots_left(self.spec.per_person)
            drawn = within_reach(drawn, left, self.batch)
        size = drawn.size or self.batch
        return open_batch(self._parts, self._state, drawn, size, among)

    @property
    def _control(self) -> int | None:
        """The index of the control, if there is one."""
        control = self.spec.control
        return None if control is None else self.arms.index(control)

    @property
    def _only_control(self) -> bool:
        """Whether guardrails left nothing but the control."""
        return bool(self._state.retirements) and self.retired.issuperset(
            arm for arm in self.active if arm != self._control
        )

    def _open_for_control(self, control: int, due: float, among: EligibleArms | None) -> Batch:
        """Open a batch that the control is given to keep its share; nothing is learned from it."""
        size, longest = self.batch, getattr(self._parts.release, "longest", None)
        if longest is not None and not self._only_control:
            size = min(longest, max(size, math.ceil(due)))
        self._state.control_rounds += size
        drawn = Drawn(control, NOT_LEARNED, size, control, None)
        return open_batch(self._parts, self._state, drawn, size, among)

    def _guard(self, batch: Batch) -> None:
        """Retire arms that are further from the control than a guardrail allows."""
        spec, state, control = self.spec, self._state, self._control
        if not spec.guardrails or control is None or spec.metrics is None:
            return
        played = batch.phase.counts if batch.phase is not None else {batch.choice: batch.used}
        arms = [arm for arm in self.active if arm != control and arm not in self.retired]
        if control not in played:
            arms = [arm for arm in arms if arm in played]
        alpha, metrics = 1.0 - spec.confidence, self._parts.metrics
        assert metrics is not None
        known = {
            name: metric_known(self.arms, metrics, state, name)
            for name in (spec.guardrails if arms else ())
        }
        size = len(spec.guardrails), len(self.arms), state.first_arms or len(self.arms)
        errors = {arm: guardrail_error(alpha, *size, arm) for arm in arms}
        about = spec.guardrails, spec.metrics, control, errors, state.rounds, self._assumption
        for found in breaches(known, *about):
            if len(self.active) > 2:
                left = tuple(arm for arm in self.active if arm != found.arm)
                self._change_arms(left, self.arms)
            state.retirements.append(found)
            state.changed = True
            state.changes += 1

    def _learn(self, batch: Batch | None) -> None:
        """Release a complete batch, once, and learn from what came out."""
        if batch is not None:
            self._state.first_arms = self._state.first_arms or len(self._choices)
            released, runner = close(self._parts, self._state, batch), self._parts.runner
            self._teach(runner, batch, released)
            if released is not None:
                self._guard(batch)
            if self.on_release is not None:
                self.on_release(batch, released)

    def _teach(self, runner: Runner, batch: Batch, released: Released | None) -> None:
        """Let the learner learn from a release; those that estimate means, from what came alone."""
        if batch.importance == NOT_LEARNED:
            return
        told = batch.told
        estimates = batch.phase is not None or batch.importance == CHOSEN
        if released is None or (estimates and not told):
            runner.take_back(batch.credited, batch.importance)
        elif batch.phase is not None:
            means = np.array([one.mean for one in told])
            runner.learn_phase(batch.importance, {one.arm: one.losses for one in told}, means)
        else:
            value, rounds = released, batch.size
            if estimates:
                value, rounds = told[0].mean, told[0].losses
            runner.learn(batch.credited, batch.importance, batch.ticket, value, rounds)


INSTEAD = {
    "context": "a bandit decides without context: use bd.PrivateContextual with the features as "
    "declared, or bd.Segments for a few public groups",
    "segment": "this is one policy: use bd.Segments for one in each segment",
    "user": "say whose round it is with person=",
    "user_id": "say whose round it is with person=",
}
"""What to use for keywords that people try."""


def refuse_keywords(unknown: Mapping[str, object]) -> NoReturn:
    """Refuse keywords that ``decide`` does not have; say what to use where that is known."""
    name = next(iter(unknown))
    if name in INSTEAD:
        raise InputError(f"decide() has no {name}=; {INSTEAD[name]}.")
    raise TypeError(f"decide() got an unexpected keyword argument {name!r}")


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
    found = {arm_index(arm, names) for arm in eligible}
    if not found:
        raise InputError("no arm is eligible; give at least one, or leave eligible out.")
    return None if len(found) == len(names) else tuple(sorted(found))


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
