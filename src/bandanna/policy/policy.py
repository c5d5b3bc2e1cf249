"""A policy: decides round by round, releases each batch once, learns from the releases alone.

It is a lock around ``transitions.py``, and the verbs that users call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from typing import Never, NoReturn, Self

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import check_advice
from bandanna._core.grid import to_units
from bandanna._core.private_inputs import private_feedback
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import ArmName, Decision, InputError
from bandanna.learners.steps import CHOSEN
from bandanna.policy.base import arm_index, eligible_arms
from bandanna.policy.diagnostics import Diagnostics
from bandanna.policy.first_phase import FirstPhase
from bandanna.policy.outcomes import breaches, guardrail_error, metric_known
from bandanna.policy.parts import Recipe, check_parts, columns_of
from bandanna.policy.runner import Runner, draw_phase, start_learner
from bandanna.policy.state import NOT_LEARNED, Batch, Drawn, EligibleArms, People, State
from bandanna.policy.transitions import (
    Parts,
    as_decision,
    check_bit,
    count_phase,
    observe,
    open_batch,
    within_reach,
)
from bandanna.privacy import Release
from bandanna.privacy.columns import LOSS
from bandanna.privacy.release import Released, ReleasedEpoch
from bandanna.privacy.sums import Column
from bandanna.spec import Spec, arm_names


class Policy(Diagnostics):
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

    def _begin(
        self, stream: Stream, release: Release, retired: frozenset[int] = frozenset()
    ) -> None:
        """Begin with a fresh state."""
        spec, learned = self.spec, start_learner(self.recipe, stream)
        people = None if spec.rule is None else People()
        self._state = State(stream, learned, people, retired=retired)
        self._state.rewarded = None if spec.start is None else spec.start.reward
        self._state.scale = spec.scale
        self._state.first_arms = 0 if spec.start is None else len(spec.arms)
        runner = Runner(self.recipe, spec.num_experts, self._state, len(spec.arms))
        default = to_units("default_loss", spec.default_loss, spec.loss_range)
        columns = columns_of(spec, release)
        first = FirstPhase.of(spec)
        self._parts = Parts(runner, release, spec.rule, default, columns, spec.loss_range, first)

    def copy_with(self, release: Release, arm_stream: Stream) -> Self:
        """Return a fresh copy with another release, of the arms there are now."""
        copy = super().copy_with(release, arm_stream)
        copy._begin(arm_stream, release, self._state.retired)
        copy._state.changed = self._state.changed
        return copy

    # --- what a user calls ----------------------------------------------------------------

    @private_feedback
    def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        eligible: Iterable[ArmName] | Mapping[ArmName, bool] | None = None,
        before: float | None = None,
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
        before
            With ``adjust``: what was known of the person before this decision, a number in the
            outcome's units. It is kept until the batch is released, and cannot be changed.
        """
        if unknown:
            refuse_keywords(unknown)
        spec, said = self.spec, None
        if spec.experts is not None:
            size = len(spec.experts), len(spec.arms)
            said = check_advice(advice, *size, spec.arms, spec.experts)
        elif advice is not None:
            raise InputError("there are no experts here; call decide() without advice.")
        return self._decide(said, person, eligible, self.known_before(before))

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
        allowed = eligible_arms(eligible, self.arms)
        if allowed is None:
            return None
        self._parts.runner.check_among(self.around or self.algorithm)
        if self.retired.issuperset(allowed):
            raise InputError("no arm is eligible: those that were given have been retired.")
        return allowed

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
            grid units, and each of the ``columns``.
        """
        with self._lock:
            batch = count_phase(self._state, number, sums, len(self.columns))
            had = sum(count for count, *_ in sums.values())
            self._learn(batch)
            self._parts.runner.adjust_phase(batch.size, had)

    # --- how it works ---------------------------------------------------------------------

    @property
    def plays_phases(self) -> bool:
        """Whether arms take turns in a phase, and each is released once when it is over."""
        return self._parts.runner.phases

    def _open_batch(self, among: EligibleArms | None) -> Batch:
        least, control = self.spec.least_share, self._control
        least = 1.0 if self._only_control else least
        if self._parts.first is not None and not self._state.batches:
            return self._open_first(self._parts.first)
        if self._parts.runner.phases:
            behind = least * self._state.rounds - self._state.control_rounds
            kept = control if least > 0.0 else None
            drawn, phase = self._parts.runner.open_phase(kept, least, behind)
            if control is not None:
                self._state.control_rounds += int(phase.planned[control])
            return open_batch(self._parts, self._state, drawn, phase=phase)
        due = least * (self._state.rounds + 1) - self._state.control_rounds
        if control is not None and due > 0.0 and (among is None or control in among):
            return self._open_for_control(control, due, among)
        drawn, people = self._parts.runner.open(among), self._state.people
        if people is not None and drawn.size and self.spec.per_person is not None:
            left = people.with_slots_left(self.spec.per_person)
            drawn = within_reach(drawn, left, self.batch)
        drawn = drawn._replace(size=drawn.size or self.batch)
        return open_batch(self._parts, self._state, drawn, among)

    def _open_first(self, first: FirstPhase) -> Batch:
        """Open the phase that finds how outcomes are counted; its learner learns nothing of it."""
        planned = np.zeros(len(self.arms))
        planned[list(self.active)] = first.rounds // len(self.active)
        planned[list(self.active[: first.rounds % len(self.active)])] += 1
        if self._control is not None:
            self._state.control_rounds += int(planned[self._control])
        phase = draw_phase(planned, self._state.stream)
        drawn = Drawn(self.active[0], NOT_LEARNED, first.rounds, self.active[0], None)
        return open_batch(self._parts, self._state, drawn, phase=phase)

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
        return open_batch(self._parts, self._state, drawn, among)

    def _guard(self, batch: Batch) -> None:
        """Retire arms that are further from the control than a guardrail allows."""
        spec, state, control = self.spec, self._state, self._control
        if not spec.guardrails or control is None or spec.metrics is None:
            return
        played = batch.phase.counts if batch.phase is not None else {batch.choice: batch.used}
        arms = [arm for arm in self.active if arm != control and arm not in self.retired]
        if control not in played:
            arms = [arm for arm in arms if arm in played]
        alpha, columns = 1.0 - spec.confidence, self._parts.columns
        assert columns is not None
        known = {
            name: metric_known(self.arms, columns, state, name, proved=self._proved)
            for name in (spec.guardrails if arms else ())
        }
        size = len(spec.guardrails), len(self.arms), state.first_arms or len(self.arms)
        errors = {arm: guardrail_error(alpha, *size, arm) for arm in arms}
        about = spec.guardrails, spec.metrics, control, errors, state.rounds, self._assumption
        for breach in breaches(known, *about):
            if len(self.active) > 2:
                left = tuple(arm for arm in self.active if arm != breach.arm)
                self._change_arms(left, self.arms)
            state.retirements.append(breach)
            state.changed = True
            state.changes += 1

    def _teach(self, batch: Batch, released: Released | None) -> None:
        """Let the learner learn from a release, and guardrails look at it."""
        self._teach_learner(self._parts.runner, batch, released)
        if released is not None:
            self._guard(batch)

    def _teach_learner(self, runner: Runner, batch: Batch, released: Released | None) -> None:
        """Let the learner learn; those that estimate means, from what came alone."""
        if batch.importance == NOT_LEARNED:
            return
        assert not isinstance(released, ReleasedEpoch), "a policy without context has no epochs"
        told = batch.told
        estimates = batch.phase is not None or batch.importance == CHOSEN
        if released is None or (estimates and not told):
            runner.take_back(batch.credited, batch.importance)
        elif batch.phase is not None:
            runner.learn_phase(batch.importance, told, self._squares_of(batch))
        else:
            value, rounds = released, batch.size
            if estimates:
                value, rounds = told[0].mean, told[0].losses
            square = self._squares_of(batch).get(batch.choice)
            runner.learn(batch.credited, batch.importance, batch.ticket, value, rounds, square)

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is released of each arm beside its losses."""
        columns = self._parts.columns
        return () if columns is None else columns.columns

    def _squares_of(self, batch: Batch) -> dict[int, float]:
        """Return the mean square of each arm that a batch released, where it released any."""
        columns = self._parts.columns
        column = None if columns is None else columns.index(LOSS, square=True)
        if column is None:
            return {}
        return {one.arm: one.means[column] for one in batch.beside}


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
