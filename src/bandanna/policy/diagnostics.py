"""What a policy says of itself: readable views, safe to publish.

All of it is public, or follows from released values, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from bandanna._core.html import paragraph
from bandanna._core.types import ArmName, InputError
from bandanna.error_budget import ErrorBudget
from bandanna.inference import Floats
from bandanna.learners.base import Report
from bandanna.learners.net import NetReport
from bandanna.learners.stationarity import GuardReport
from bandanna.planner.plan import Happened, Plan
from bandanna.policy.answers import (
    COUNTS_THE_LOG,
    Answer,
    Comparison,
    DroppedArm,
    Question,
    Settled,
    Shown,
    answer_later,
    check_confidence,
    compare_from,
)
from bandanna.policy.base import BasePolicy
from bandanna.policy.first_phase import found_words
from bandanna.policy.intervals import Known, leader_of, standing
from bandanna.policy.outcomes import (
    Spreads,
    and_start,
    known_of,
    metric_known,
    reason_of,
    spreads_of,
    square_bounds,
    turned_over,
)
from bandanna.policy.parts import slot_problem, too_few
from bandanna.policy.promises import knows_its_noise, plan_of
from bandanna.policy.runner import Runner
from bandanna.policy.statements import (
    AMONG_SOME,
    AS_IN_THE_LOG,
    FIXED,
    STEADY,
    THAT_CAME,
    WEIGHED,
    Units,
)
from bandanna.policy.summary import (
    ArmSummary,
    Summary,
    alarm_words,
    hint,
    net_words,
    stationarity_words,
)
from bandanna.policy.transitions import Parts, batch_with_room
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.sums import SumRelease
from bandanna.spec import Problem
from bandanna.theory.delay import outstanding

if TYPE_CHECKING:
    from bandanna.scorecard.card import Scorecard

CONFIDENCE = 0.95
"""Default confidence of the intervals that are shown."""


class Diagnostics(BasePolicy):
    """The half of a policy that is read; ``Policy`` is the half that acts."""

    _parts: Parts[Runner]
    why: str = ""
    """Why this algorithm."""
    _kept: tuple[tuple[str, int, int], Callable[[], Known]] | None = None
    """What phases told, for as long as none is added."""

    # --- what it is -----------------------------------------------------------------------

    @property
    def retired(self) -> frozenset[int]:
        """Indices of arms that no further batch plays."""
        return self._state.retired | {one.arm for one in self._state.retirements}

    @property
    def active(self) -> tuple[int, ...]:
        """Indices of the arms that its learner knows: those that are not retired.

        If a guardrail retired the last arm beside the control, it is among them and not played.
        """
        retired, arms = self._state.retired, range(len(self.arms))
        return tuple(arm for arm in arms if arm not in retired) if retired else tuple(arms)

    @property
    def experts(self) -> int | None:
        """How many experts advise; None without experts."""
        return self.spec.num_experts

    @property
    def expert_names(self) -> tuple[ArmName, ...]:
        """What experts are called: numbers from 0 on unless they were named."""
        return self.spec.experts or ()

    @property
    def around(self) -> str:
        """The learner that was put in, by name."""
        return self.spec.around

    @property
    def batch(self) -> int:
        """Rounds in a batch."""
        return self.recipe.batch

    @property
    def default_loss(self) -> float:
        """What is counted for feedback that never comes."""
        assert self.spec.default_loss is not None, "a Spec fills it in"
        return self.spec.default_loss

    # --- what it promises -----------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """What this policy and all algorithms guarantee for this problem; needs ``rounds``."""
        if self.rounds is None or not self.guarantee.private or self.experts == 1:
            raise InputError("a plan needs rounds=, a private policy and no single expert.")
        made = plan_of(self.spec, self.recipe, self.problem)
        return made.after(self.happened)

    @property
    def problem(self) -> Problem:
        """What its learner is asked to do: with people, in slots."""
        epsilon = self.recipe.release.guarantee().epsilon
        return slot_problem(self.spec).but(arms=len(self.active), epsilon=epsilon)

    @property
    def happened(self) -> Happened:
        """What has happened that a bound on regret must say: all of it is public."""
        state, rule = self._state, self.people
        return Happened(
            changed=state.changed,
            restricted=state.restricted,
            mixed=state.mixed,
            overlapped=state.outstanding > outstanding(self.spec.delay, self.batch),
            several=rule is not None and rule.rounds_per_slot != 1,
            missed=state.missed,
            controlled=self.spec.least_share > 0.0,
            finding=self.spec.finds,
        )

    @property
    def changed(self) -> bool:
        """Whether arms were added or retired."""
        return self._state.changed

    # --- what it has learned --------------------------------------------------------------

    @property
    def chances(self) -> dict[ArmName, float]:
        """Probabilities with which each arm, or expert, would be drawn for the next batch.

        Some algorithms have none and raise ``InputError``: those that play the arm with the best
        index, such as ``dp-klucb``; those that plan phases, between two; ``ftpl``; other libraries'
        learners.
        """
        with self._lock:
            drawn = self._next_chances()
        if drawn is None:
            raise InputError(
                f"{self.recipe.learner.name} does not draw arms with probabilities that are known; "
                f"leader, answer() and summary() say which arm is ahead."
            )
        return dict(zip(self.choices, map(float, drawn), strict=True))

    def _next_chances(self) -> Floats | None:
        """Return the chances of the next round; None between phases, before the next is planned."""
        if getattr(self.recipe.learner, "phases", False) and batch_with_room(self._state) is None:
            return None
        return self._parts.runner.chances()

    @property
    def leader(self) -> ArmName | None:
        """The arm, or expert, that looks best by what was released; None while nothing is known.

        It may well be ahead by chance: ``answer`` says how sure that is.
        """
        with self._lock:
            shown = self._shown(CONFIDENCE)
        intervals = shown().known.intervals
        leader = None if intervals is None else leader_of(intervals, self._running)
        return None if leader is None else self.choices[leader]

    @property
    def likeliest(self) -> ArmName | None:
        """The arm, or expert, that is likeliest to be drawn next; None where that is unknown."""
        with self._lock:
            chances = self._next_chances()
        if chances is None:
            return None
        return self.choices[max(self._running, key=lambda arm: chances[arm])]

    def answer(
        self, confidence: float = CONFIDENCE, *, outcome: str = "", metric: str | None = None
    ) -> Answer:
        """Say which arm is best, if that can be said, and what is known of each.

        It follows from released values, so it costs no privacy and may be shown to anyone.
        Intervals cover sampling and noise, at any time and however often you look, provided
        each arm's outcomes do not change over time. ``docs/answers.md`` explains.

        Parameters
        ----------
        confidence
            Confidence of the answer, from 0.5 to below 1.
        outcome
            What is counted, for the sentence: such as ``"visits"``.
        metric
            Answer about one of the ``metrics`` instead of the main outcome. Less of it is better
            if its guardrail is above 0, more if that is below 0. Without a guardrail neither is:
            the sentence says which arm has the most, and no best one is named.

        Examples
        --------
        >>> import bandanna as bd
        >>> bandit = bd.PrivateBandit(["A", "B"], epsilon=1.0, rounds=1000)
        >>> bandit.answer().best is None
        True
        """
        with self._lock:
            return answer_later(*self._asked(confidence, outcome, metric))

    @property
    def answered(self) -> bool:
        """Whether the best arm is known; for ``goal="answer"``, and else by ``answer()``.

        With ``goal="answer"`` it stays True once it is, and the best arm is played from then on.
        """
        with self._lock:
            race = self._parts.runner.report().race
            if race is not None:
                return race.winner is not None
            return self.answer(self.spec.confidence).best is not None

    @property
    def dropped(self) -> tuple[DroppedArm, ...]:
        """The arms that guardrails retired, and those that left the race of ``goal="answer"``.

        Each with the evidence; for guardrails also with the reason in words.
        """
        with self._lock:
            race, spec = self._parts.runner.report().race, self.spec
            retired = list(self._state.retirements)
        dropped = [
            DroppedArm(
                self.arms[one.arm],
                spec.control,
                one.rounds,
                one.log_evidence,
                reason_of(one, spec.metrics or {}, spec.control, spec.confidence, clip=spec.clip),
            )
            for one in retired
            if spec.control is not None
        ]
        names = [self.arms[arm] for arm in self.active]
        for left in () if race is None else race.dropped:
            by = None if left.by is None else names[left.by]
            dropped.append(DroppedArm(names[left.arm], by, left.rounds, left.log_evidence))
        return tuple(dropped)

    def compare(
        self,
        first: ArmName,
        second: ArmName,
        confidence: float = CONFIDENCE,
        *,
        outcome: str = "",
        metric: str | None = None,
    ) -> Comparison:
        """Say how the second arm differs from the first: its mean minus the first one's.

        Parameters
        ----------
        first, second
            Names of two arms, or two experts.
        confidence, outcome, metric
            As for ``answer``.
        """
        with self._lock:
            shown, asked = self._asked(confidence, outcome, metric)
        return compare_from(shown(), asked, first, second)

    def scorecard(
        self,
        control: ArmName | None = None,
        *,
        outcome: str = "",
        confidence: float = CONFIDENCE,
    ) -> Scorecard:
        """Return what a team decides from: every arm against the control, in one view.

        Parameters
        ----------
        control
            The arm to compare with; by default the policy's control, or its first arm.
        outcome
            What is counted, such as conversion.
        confidence
            Of all that it says, together.

        Examples
        --------
        >>> import bandanna as bd
        >>> bandit = bd.PrivateBandit(["A", "B"], epsilon=1.0, rounds=1000)
        >>> bandit.scorecard().recommendation.headline
        'Go on: no arm is surely better than A yet'
        """
        from bandanna.policy.scorecard import scorecard_of

        with self._lock:
            return scorecard_of(self, control, outcome, confidence)

    @property
    def _unsaid(self) -> str:
        """Why no answer can be given, where that is so."""
        return WEIGHED if self._parts.runner.weighs else ""

    def error_budget(self, confidence: float, *, transitive: bool = True) -> ErrorBudget:
        """Return with which probability each statement may be wrong, of arms or of experts."""
        first = self._state.first_arms or len(self.choices)
        alpha = 1.0 - check_confidence(confidence)
        return ErrorBudget(alpha, first, transitive, grows=self.experts is None)

    def summary(self) -> Summary:
        """Return what was learned of each arm: chances, and means with the intervals of ``answer``.

        It follows from released values, so it costs no privacy and may be shown to anyone.
        """
        with self._lock:
            state, runner = self._state, self._parts.runner
            chances, plays = runner.chances(), state.plays()
            answer, totals = self.answer(CONFIDENCE), state.totals
            rows = [
                ArmSummary(
                    arm.name,
                    None if chances is None else float(chances[choice]),
                    None if runner.weighs else plays.get(choice, 0) / max(1, state.rounds),
                    totals[choice].batches if choice in totals and not runner.weighs else 0,
                    arm.mean,
                    None if arm.mean is None else arm.low,
                    None if arm.mean is None else arm.high,
                )
                for choice, arm in enumerate(answer.arms)
            ]
            known = answer if any(row.mean is not None for row in rows) else None
            said = stationarity_words(runner.report().guard), self.hint
            also = self._net_words, self._unsaid
            return Summary(rows, state.rounds, state.released, *said, known, *also)

    def _asked(
        self, confidence: float, outcome: str, metric: str | None
    ) -> tuple[Callable[[], Shown], Question]:
        """Return what was released of the main outcome, or of a metric, and what is asked of it."""
        if metric is not None:
            shown, units = self._shown_metric(metric, confidence)
            return shown, Question(units, self._running, unsaid=self._unsaid)
        about = self._running, self._settled(confidence), self._changes, self._unsaid
        return self._shown(confidence), Question(self._units(outcome), *about)

    def _settled(self, confidence: float) -> Settled | None:
        """Return what a race has settled that is at least as sure as this."""
        race = self._parts.runner.watched().race
        if race is None or confidence > self.spec.confidence:
            return None
        width = self.counted_range[1] - self.counted_range[0]
        racing = tuple(self.active[arm] for arm in race.racing)
        winner = None if race.winner is None else self.active[race.winner]
        return Settled(racing, winner, self.spec.tolerance / width)

    @property
    def _changes(self) -> str:
        """What a guard has seen that speaks against outcomes that do not change; or nothing."""
        return alarm_words(self._parts.runner.watched().guard)

    def shown(self, confidence: float) -> Shown:
        """Return what was released until now, and how it may be said."""
        return self._shown(confidence)()

    def _shown(self, confidence: float) -> Callable[[], Shown]:
        """Return a function that tells what was released until now, however late it is called.

        A run in phases that started from a log is told alone where that names an arm, and where
        it has seen outcomes change. Else the log counts, if outcomes are like those in it. Which
        it is depends on what was released, so the two share the error probability.
        """
        names, release, state = self.choices, self.recipe.release, self._state
        if not isinstance(release, SumRelease) or self._parts.runner.weighs:
            nothing = Known(names, {}, None)
            return lambda: Shown(nothing, self.error_budget(confidence), STEADY)
        seen, phases = dict(state.totals), list(state.phases)
        spreads = self._spreads
        start, assumed = self.spec.start, self._assumption
        steady = self.error_budget(confidence)
        told = self.error_budget(confidence, transitive=not phases)
        squares = self._square_bounds(steady)
        if squares is not None:
            told = told.with_squares
        rests = spreads, squares
        alone = self._told(lambda: known_of(names, release, seen, phases, *rests), bool(phases))
        if start is None:
            return cache(lambda: Shown(alone(), told, assumed))
        in_phases, running, changes = self._parts.runner.phases, self._running, self._changes

        def show() -> Shown:
            if in_phases:
                known = alone()
                best = standing(known.intervals, told.half, running, len(names)).best
                if changes or best is not None:
                    return Shown(known, told.half, assumed)
            both = and_start(known_of(names, release, seen, spreads=spreads), start)
            if not in_phases:
                return Shown(both, steady, AS_IN_THE_LOG)
            return Shown(both, steady.half, AS_IN_THE_LOG, COUNTS_THE_LOG)

        return cache(show)

    @property
    def _proved(self) -> bool:
        """Whether intervals are to be proved, where they could be approximated."""
        return self.spec.interval == "proved"

    def _square_bounds(self, budget: ErrorBudget) -> dict[int, float] | None:
        """Return how much outcomes vary at most, where intervals are to be proved with that."""
        law = self.recipe.release.law() if isinstance(self.recipe.release, SumRelease) else None
        in_phases = self._parts.runner.phases
        if not self._proved or in_phases or self.spec.start is not None or law is None:
            return None
        return square_bounds(self._parts.columns, self._state, law.scale, budget)

    @property
    def _spreads(self) -> Spreads | None:
        """What is known of how much outcomes vary; None where statements do not rest on it."""
        if self._proved:
            return None
        if self.spec.binary and isinstance(self.recipe.release, LaplaceRelease):
            return Spreads(binary=True)
        return spreads_of(self._parts.columns, self._state)

    def _told(self, known: Callable[[], Known], in_phases: bool) -> Callable[[], Known]:
        """Return it as it was made before, if nothing was released since: phases take time."""
        if not in_phases:
            return known
        state = self._state
        key = state.identity, len(state.phases), len(self.choices)
        if self._kept is None or self._kept[0] != key:
            self._kept = key, cache(known)
        return self._kept[1]

    def _shown_metric(self, metric: str, confidence: float) -> tuple[Callable[[], Shown], Units]:
        """Return what was released of a metric, and how it is counted."""
        columns, guardrails = self._parts.columns, self.spec.guardrails or {}
        if columns is None or not columns.ranges:
            raise InputError("this policy has no metrics; make it with metrics=, by name.")
        known = metric_known(self.choices, columns, self._state, metric, proved=self._proved)
        limit = guardrails.get(metric)
        neutral, more = limit is None, limit is None or limit < 0.0
        per = "decisions" if self.people is None else "people"
        if more:  # ``answers`` counts losses: what is released of a metric is turned over
            known = turned_over(known)
        budget = self.error_budget(confidence, transitive=not self._state.column_phases)
        shown = Shown(known, budget, self._assumption)
        ends = columns.ranges[metric]
        return lambda: shown, Units(*ends, more, metric, per, neutral, clip=self.clip)

    @property
    def _assumption(self) -> str:
        """What must be true for what is said of the run alone."""
        state = self._state
        in_phases = AMONG_SOME if state.restricted else FIXED
        assumed = in_phases if state.phases else STEADY
        return f"{assumed}, and {THAT_CAME}" if state.left_out else assumed

    def _units(self, outcome: str) -> Units:
        per = "decisions" if self.people is None else "people"
        rewarded, scale = bool(self._state.rewarded), self._state.scale
        if scale is None:
            return Units(*self.loss_range, rewarded, outcome, per, clip=self.clip)
        adjusted = self.spec.adjust or ""
        counted = Units(*scale.ends, rewarded, outcome, per, clip=True)
        found = "" if self._state.found is None else found_words(self._state.found, per)
        return counted._replace(adjusted=adjusted, slope=scale.slope, found=found)

    @property
    def _running(self) -> tuple[int, ...]:
        return self.active if self.experts is None else tuple(range(self.experts))

    @property
    def regret_bound(self) -> float | None:
        """What regret is at most so far, from what was released; None but for ``adaptive``.

        In expectation over runs, for losses fixed in advance with feedback in order: over many
        runs the mean regret is at most the mean of this. It may be shown to anyone. Decisions among
        some arms count against each arm in the rounds in which it was eligible. Rounds that were
        given up, slots beyond a person's cap and rounds in no slot count one loss range each.

        None also where nothing is proved: once a batch began before another was released, so that
        feedback was late; once arms have been added or retired; once people with open slots came
        with other eligible arms; and where a control keeps a share.
        """
        if self._unproved or not knows_its_noise(self.recipe):
            return None
        happened = self.happened
        with self._lock:
            bound = self._parts.runner.report().regret
        low, high = self.counted_range
        # The last batch may not have been released.
        if bound is None:
            return None
        return (high - low) * (self.batch * (bound + 1.0) + happened.missed)

    @property
    def _unproved(self) -> str:
        """What has happened after which ``regret_bound`` and ``net`` say nothing; or nothing."""
        happened, phases = self.happened, self._parts.runner.phases
        reasons = {
            "arms were added or retired": happened.changed,
            "people with open slots came with other eligible arms": happened.mixed,
            "batches began while others waited for feedback": self._state.outstanding > 0,
            "a control keeps a share of the rounds": happened.controlled,
            "the first phase finds how outcomes are counted": happened.finding,
            "not all arms were eligible in every round": phases and happened.restricted,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    @property
    def _net_words(self) -> str:
        """What the net promises, or why it promises nothing any more; empty without a net."""
        with self._lock:
            if self._parts.runner.report().net is None:
                return ""
        if self._unproved:
            return f"Nothing is promised about regret: {self._unproved}."
        return net_words(self.net)

    def report(self) -> Report:
        """Return what the learner says of its own run; arms are those of ``active``, in order."""
        with self._lock:
            return self._parts.runner.report()

    @property
    def hint(self) -> str:
        """Why nothing is learned, and what to do; empty where nothing is wrong."""
        stuck = hint(self._state, self.batch, self.people)
        return stuck or too_few(self.spec).rstrip(".")

    @property
    def stationarity(self) -> GuardReport | None:
        """What the guard of ``dp-klucb`` has seen: tests, alarm, its most telling comparison.

        It cannot see an arm that is no longer played become the best while nothing else changes.
        """
        with self._lock:
            return self._parts.runner.report().guard

    @property
    def net(self) -> NetReport | None:
        """What the net under ``adaptive`` or ``phased`` has seen; None where there is none.

        ``budget`` is what expected regret is at most, under the conditions of ``regret_bound``.
        ``switched`` says whether centred EXP3 plays, because the bound on the regret so far came
        close to it, and ``after`` from which round on. Under ``phased`` there is none any more once
        not all arms were eligible.
        """
        if self._unproved:
            return None
        happened = self.happened
        with self._lock:
            report = self._parts.runner.report().net
        if report is None:
            return None
        low, high = self.counted_range
        batch = 1 if self._parts.runner.phases else self.batch
        budget = (high - low) * (batch * report["budget"] + happened.missed)
        if not report["switched"]:
            return NetReport(budget=budget, switched=False)
        return NetReport(budget=budget, switched=True, after=batch * report["after"])

    def _repr_html_(self) -> str:
        seen = paragraph(stationarity_words(self.stationarity)) + paragraph(self._net_words)
        known = self.answer()._repr_html_() if self.released else ""
        return paragraph(repr(self)) + seen + known + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        experts = "" if self.experts is None else f"{self.experts} experts, "
        name = self.algorithm
        if self.around:
            name = f"{self.recipe.release.name} around {self.around}"
        return (
            f"<{type(self).__name__} {name}: {experts}{len(self.arms)} arms, batch "
            f"{self.batch}, {self.decided} decided, {self.waiting} waiting, {self.released} "
            f"batches released{self.hint and f'. {self.hint}.'}>"
        )
