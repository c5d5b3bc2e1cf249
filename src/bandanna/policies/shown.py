"""What a policy tells of itself: all of it is public, or follows from what was released."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bandanna._core.html import paragraph
from bandanna._core.types import JSON, ArmName, Guarantee, InputError
from bandanna.learners.stationarity import GuardReport
from bandanna.planner.plan import Happened, Plan
from bandanna.policies.afterwards import stationarity_words
from bandanna.policies.among import Among
from bandanna.policies.choosing import plan_of
from bandanna.policies.hints import hint
from bandanna.policies.inputs import eligible_arms
from bandanna.policies.ledger import Ledger
from bandanna.policies.people import PeopleRule
from bandanna.policies.player import Player
from bandanna.policies.promise import certificate_of, promise_of
from bandanna.policies.reading import (
    CONFIDENCE,
    Summary,
    answer_of,
    chances_of,
    compare_of,
    leader_of,
    likeliest_of,
    summary_of,
)
from bandanna.policies.recipe import Recipe
from bandanna.problem import Problem

if TYPE_CHECKING:
    from bandanna.policies.answers import Answer, Comparison
    from bandanna.privacy.range import PrivateRange


class Shown:
    """The half of a policy that is read; ``Policy`` is the half that acts."""

    recipe: Recipe
    arms: tuple[ArmName, ...]
    experts: int | None
    algorithm: str
    loss_range: tuple[float, float]
    clip: bool
    rounds: int | None
    people: PeopleRule | None
    resumed: int
    retired: frozenset[int] = frozenset()
    """Indices of arms that no further batch plays."""
    changed: bool = False
    """Whether arms were added or retired."""
    delta: float = 0.0
    delay: int = 0
    """How late feedback may come, in rounds: what its rate and bound are for."""
    changes: int | None = None
    memory: int | None = None
    """What was said about changes: what its memory and bound are for."""
    around: str = ""
    """The learner that was put in, by name."""
    why: str = ""
    """Why this algorithm."""
    rewarded: bool = False
    """Whether feedback comes as rewards: in which direction answers are given."""
    _lock: threading.RLock
    _ledger: Ledger
    _player: Player

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round's feedback, or one person's, and why."""
        return promise_of(self)

    @property
    def plan(self) -> Plan:
        """What this policy and all algorithms guarantee for this problem; needs ``rounds``."""
        if self.rounds is None or not self.guarantee.private or self.experts == 1:
            raise InputError("a plan needs rounds=, a private policy and no single expert.")
        size = len(self.active), self.rounds, self.recipe.release.guarantee().epsilon
        problem = Problem(*size, self.experts, self.delta, self.delay, self.changes, self.memory)
        found = plan_of(self.algorithm, self.recipe, problem, self.people)
        return found.after(self.happened)

    @property
    def happened(self) -> Happened:
        """What has happened that a bound on regret must say: all of it is public."""
        ledger, rule = self._ledger, self.people
        in_turn = rule is not None or ledger.restricted
        return Happened(
            changed=self.changed,
            restricted=ledger.restricted,
            mixed=ledger.mixed,
            overlapped=ledger.overlapped and in_turn,
            several=rule is not None and rule.rounds_per_place != 1,
            missed=ledger.missed,
        )

    @property
    def active(self) -> tuple[int, ...]:
        """Indices of the arms that are not retired."""
        return tuple(arm for arm in range(len(self.arms)) if arm not in self.retired)

    @property
    def batch(self) -> int:
        """Rounds in a batch."""
        return self.recipe.batch

    def check_takes(self, *, bits: bool) -> None:
        """Refuse losses where devices send bits, and bits where losses are sent."""
        if self._ledger.release.takes_bits and not bits:
            raise InputError(
                "this policy takes bits that people's devices released, and no losses: feedback "
                "must not come here. Send the bit of bandanna.device, by observe_bit."
            )
        if bits and not self._ledger.release.takes_bits:
            raise InputError(
                "this policy takes losses and releases them itself; a bit would be released twice. "
                'For bits make it with release="device".'
            )

    @property
    def ledger(self) -> Ledger:
        """Its batches, for whoever stores them: as private as the feedback."""
        return self._ledger

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        return self._ledger.waiting

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return self._ledger.rounds

    @property
    def released(self) -> int:
        """Batches released so far."""
        return self._ledger.released

    def made(self, identity: str) -> bool:
        """Whether decisions with this identity are its own, from before it was loaded too."""
        return self._ledger.issued_by(identity)

    def among(self, eligible: Iterable[ArmName]) -> Among | None:
        """Return the indices of arms given by name or index, in order; None if these are all."""
        found = eligible_arms(eligible, self.arms)
        if found is None:
            return None
        self._player.check_among(self.around or self.algorithm)
        if self.retired.issuperset(found):
            raise InputError("no arm is eligible: those that were given have been retired.")
        return found

    @property
    def chances(self) -> dict[ArmName, float]:
        """Probabilities with which each arm, or expert, would be drawn for the next batch."""
        with self._lock:
            return chances_of(self)

    @property
    def leader(self) -> ArmName | None:
        """The arm, or expert, with the best released mean; None while nothing is known.

        It may well be ahead by chance: ``answer`` says how sure that is.
        """
        with self._lock:
            return leader_of(self)

    @property
    def likeliest(self) -> ArmName | None:
        """The arm, or expert, that is likeliest to be drawn next; None where that is unknown."""
        with self._lock:
            return likeliest_of(self)

    def answer(self, confidence: float = CONFIDENCE, *, outcome: str = "") -> Answer:
        """Say which arm is best, if that can be said, and what is known of each.

        It follows from released values, so it costs no privacy and may be shown to anyone.
        Intervals cover sampling and noise, at whatever time and however often you look, provided
        each arm's outcomes do not change over time. ``docs/answers.md`` explains.

        Parameters
        ----------
        confidence
            How sure the answer is to be, from 0.5 to below 1.
        outcome
            What is counted, for the sentence: such as ``"visits"``.

        Examples
        --------
        >>> import bandanna as bd
        >>> bandit = bd.PrivateBandit(["A", "B"], epsilon=1.0, rounds=1000)
        >>> bandit.answer().best is None
        True
        """
        with self._lock:
            return answer_of(self, confidence, outcome)

    def compare(
        self,
        first: ArmName,
        second: ArmName,
        confidence: float = CONFIDENCE,
        *,
        outcome: str = "",
    ) -> Comparison:
        """Say how the second arm differs from the first: its mean minus the first one's.

        Parameters
        ----------
        first, second
            Names of two arms, or two experts.
        confidence, outcome
            As for ``answer``.
        """
        with self._lock:
            return compare_of(self, first, second, confidence, outcome)

    def summary(self) -> Summary:
        """Return what was learned of each arm: chances, and means with 95% intervals.

        It follows from released values, so it costs no privacy and may be shown to anyone.
        """
        with self._lock:
            return summary_of(self)

    @property
    def regret_bound(self) -> float | None:
        """What regret is at most so far, from what was released; None but for ``adaptive``.

        In expectation over runs, for losses fixed in advance with feedback in order: over many
        runs the mean regret is at most the mean of this. It may be shown to anyone. Decisions among
        some arms count against each arm in the rounds in which it was eligible. Rounds that were
        given up, slots beyond a person's cap and rounds in no slot count one loss range each.

        None also where nothing is proved: once arms have been added or retired; once people with
        open slots came with other eligible arms; and, with ``per_person`` or ``eligible``, once a
        batch began before another was released.
        """
        happened = self.happened
        if happened.changed or happened.mixed or happened.overlapped:
            return None
        with self._lock:
            found = self._player.report().regret
        low, high = self.loss_range
        # The last batch may not have been released.
        if found is None:
            return None
        return (high - low) * (self.batch * (found + 1.0) + happened.missed)

    @property
    def hint(self) -> str:
        """Why nothing is learned, and what to do; empty where nothing is wrong."""
        return hint(self._ledger, self.batch, self.people)

    @property
    def stationarity(self) -> GuardReport | None:
        """What the guard of ``dp-klucb`` has seen: tests, alarm, its most telling comparison.

        It cannot see an arm that is no longer played become the best while nothing else changes.
        """
        with self._lock:
            return self._player.report().guard

    def certificate(self, bought: PrivateRange | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        If the range of losses was ``bought`` with ``bd.private_range``, give it: the document then
        says what that cost, and what range and policy cost someone who is in both.

        It holds nothing private. Write it with ``json.dump``; ``docs/certificate.md`` explains
        every entry.
        """
        return certificate_of(self, bought)

    def _repr_html_(self) -> str:
        seen = paragraph(stationarity_words(self.stationarity))
        known = self.answer()._repr_html_() if self.released else ""
        return paragraph(repr(self)) + seen + known + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        experts = "" if self.experts is None else f"{self.experts} experts, "
        return (
            f"<{type(self).__name__} {self.algorithm}{self.around and f' around {self.around}'}: "
            f"{experts}{len(self.arms)} arms, batch "
            f"{self.batch}, {self.decided} decided, {self.waiting} waiting, {self.released} "
            f"batches released{self.hint and f'. {self.hint}.'}>"
        )
