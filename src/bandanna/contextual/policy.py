"""The contextual policy that a person holds: it decides by what is known of the person."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Never, Self

import numpy as np

from bandanna._core import checks
from bandanna._core.checks import MAX_SLOTS
from bandanna._core.grid import UNNAMED_FEEDBACK, check_range, feedback_to_units
from bandanna._core.html import paragraph
from bandanna._core.private_inputs import private_feedback, private_inputs
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import (
    JSON,
    ArmName,
    Decision,
    DecisionError,
    Guarantee,
    InputError,
    StateFileError,
    without_frames,
)
from bandanna.contextual.answers import ContextAnswer, answer_of
from bandanna.contextual.features import Context, Encoder, as_encoder, encoder_from_dict
from bandanna.contextual.regression import Noise, Released, fit, read_release
from bandanna.contextual.state import (
    GIVEN_UP,
    WAITING,
    Epoch,
    Past,
    State,
    Waiting,
    epoch_ends,
    first_end,
)
from bandanna.contextual.steps import Floats, add, draw, new_scratch
from bandanna.policy.files import OneProcess, claim_within, read_with, write_state
from bandanna.policy.state import People
from bandanna.policy.transitions import as_decision
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.privacy.charges import charged
from bandanna.privacy.epochs import (
    MAX_FEATURES,
    EpochRelease,
    Protects,
    Releasing,
    SeededRelease,
    Statistics,
)
from bandanna.privacy.statements import assumed_by_all
from bandanna.spec import arm_names

MAX_ROUNDS = 10**8


class PrivateContextual(OneProcess):
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
        The privacy parameters. With ``delta=0`` the guarantee is pure, and the noise much larger.
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
    algorithm = "linear"

    def __new__(cls, *args: object, algorithm: str = "linear", **kwargs: object) -> Self:
        """Make the kind that an algorithm needs."""
        if algorithm not in KINDS:
            known = " or ".join(map(repr, KINDS))
            raise InputError(f"algorithm must be {known}; got {algorithm!r}.")
        if cls is PrivateContextual:
            return object.__new__(KINDS[algorithm])  # type: ignore[return-value]
        return object.__new__(cls)

    def __init__(
        self,
        arms: int | Sequence[ArmName],
        features: Mapping[str, object] | Encoder,
        epsilon: float,
        delta: float = 1e-6,
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
        if leaves is not None or bins is not None:
            raise InputError('leaves and bins go with algorithm="trees".')
        del algorithm
        self.arms = arm_names(arms)
        self.encoder = as_encoder(features)
        self.rounds = checks.whole("rounds", rounds, 1, MAX_ROUNDS)
        self.loss_range = check_range(loss_range)
        self.clip = bool(clip)
        self.resumed = 0
        size = len(self.arms), checks.whole("features", self.encoder.size, 1, MAX_FEATURES)
        slots = 1 if per_person is None else checks.whole("per_person", per_person, 1, MAX_SLOTS)
        known = per_person is not None
        trial = EpochRelease(protects, epsilon, delta, *size, slots, by_person=known)
        first = first_end(self.rounds, *size, trial.scale, both=trial.both)
        ends = epoch_ends(self.rounds, first)
        lengths = np.diff([0, *ends])
        shortest = 1 if known else int(lengths.min())
        self.promised = EpochRelease(protects, epsilon, delta, *size, slots, shortest, known)
        people = People() if known else None
        self._begin(self.promised, State(*size, ends, people=people), new_stream(seed))

    def _begin(self, release: Releasing, state: State, stream: Stream) -> None:
        self._belong_here()
        self._lock = threading.RLock()
        self._release = release
        self._noise = Noise(release.scale, release.product_scale)
        self._state = state
        self._stream = stream
        self._scratch = new_scratch(state.features, state.arms)
        self.on_release: Callable[[int, Past], None] | None = None
        """Told the number of an epoch and what was released of it: for those who store it."""
        self._refit_all()

    # --- what a user calls ----------------------------------------------------------------

    @private_inputs
    def decide(self, context: Context, *, person: str | int | None = None) -> Decision:
        """Choose an arm for a person.

        With ``per_person`` say who it is, by anything that is the same whenever they come; only a
        keyed hash of it is kept. Features that ``context`` leaves out are missing; others than the
        declared ones are refused. The decision depends on this context and on what was released.
        Where contexts are protected, show it to this person only.
        """
        phi = self.encoder.encode(context)
        people = self._state.people
        if people is None and person is not None:
            raise InputError("this policy knows no persons; make it with per_person=.")
        who = None if people is None else people.known_as(person)
        self._check_process()
        with self._lock:
            arm, chance = draw(phi, self._scores, self._scratch, self._stream)
            return self._note(phi, arm, chance, who)

    def _note(self, phi: Floats, arm: int, chance: float, who: int | None = None) -> Decision:
        state = self._state
        epoch = state.current()
        number, position = state.decided, len(epoch.losses)
        state.decided = number + 1
        if who is not None and not self._admit(who, epoch):
            position = epoch.size + epoch.extras
            epoch.extras += 1
            if epoch.extras >= epoch.size and epoch.losses:  # people do not fill it
                epoch.closed = True
            made = self.arms[arm], arm, number, epoch.number, position, state.identity, chance
            self._close_if_complete(epoch)
            return Decision(*made)
        state.counted += 1
        epoch.waiting[position] = Waiting(arm, phi, who)
        del epoch.numbers[position:]  # what an interrupt left behind
        epoch.numbers.append(number)
        epoch.losses.append(WAITING)
        return Decision(self.arms[arm], arm, number, epoch.number, position, state.identity, chance)

    def _admit(self, who: int, epoch: Epoch) -> bool:
        """Give a person a slot in an epoch; False if they have one in it, or none left."""
        people = self._state.people
        assert people is not None
        had = people.slots.get(who, 0)
        if who in epoch.members or had >= self.promised.slots:
            return False
        people.slots[who] = had + 1
        if people.admitted is not None:
            people.admitted.add(who)
        epoch.members.add(who)
        return True

    def replay_round(self, phi: Floats, arm: int, reward: float) -> bool:
        """Meet one round of a log; it counts, and True is returned, if the same arm is drawn."""
        with self._lock:
            drawn, chance = draw(phi, self._scores, self._scratch, self._stream)
            if drawn != arm:
                return False
            self.observe(self._note(phi, arm, chance), reward=reward)
            return True

    @private_feedback
    def observe(
        self,
        decision: Decision | Mapping[str, object],
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
    ) -> None:
        """Take the feedback of a decision: once, in any order, late if need be.

        Give either a loss or a reward inside the range. The same value sent again is ignored while
        the epoch is open; another one is refused.
        """
        if unnamed:
            raise InputError(UNNAMED_FEEDBACK)
        made = as_decision(decision)
        units = feedback_to_units(loss, reward, self.loss_range, clip=self.clip)
        self._check_process()
        with self._lock:
            epoch = self._state.find(made)
            if epoch is None:
                return  # not counted
            one = epoch.waiting.pop(made.position, None)
            if one is not None:  # interrupted from here on, it is not counted and not asked again
                epoch.losses[made.position] = units
                add(one.phi, one.arm, units, self._release.both, epoch.counts, self._scratch)
            refused = _verdict(epoch.losses[made.position], units)
            del loss, reward, units
            if refused:
                raise _refusal(made, refused)
            self._close_if_complete(epoch)

    def give_up(self, decision: Decision | Mapping[str, object]) -> None:
        """Stop waiting for the feedback of a decision, so that its epoch can be released.

        The round then counts for nothing. Give up by a public rule that looks at nobody's
        feedback or context, such as a fixed time after the decision.
        """
        made = as_decision(decision)
        self._check_process()
        with self._lock:
            try:
                epoch = self._state.find(made)
            except DecisionError as error:
                if error.reason == "forgotten":
                    return
                raise
            if epoch is not None and epoch.waiting.pop(made.position, None) is not None:
                epoch.losses[made.position] = GIVEN_UP
                self._close_if_complete(epoch)

    def save(self, path: str | Path) -> None:
        """Write everything needed to go on to a JSON file, readable by its owner only.

        The file holds contexts and feedback of epochs that are still open: keep it as private as
        these. Release randomness is not in it.
        """
        self._check_process()
        try:
            with self._lock:
                write_state(Path(path), self.to_dict())
        except BaseException as error:
            raise without_frames(error) from None

    def to_dict(self, *, private: bool = True) -> JSON:
        """Return everything as plain values: as private as contexts and feedback.

        Without ``private``, open epochs and people are left out.
        """
        promised = self.promised
        return {
            "kind": self.saved_as,
            "algorithm": self.algorithm,
            "arms": list(self.arms),
            "encoder": self.encoder.to_dict(),
            "epsilon": promised.epsilon,
            "delta": promised.delta,
            "protects": promised.protects,
            "shortest": promised.shortest,
            "per_person": promised.slots if promised.by_person else None,
            "loss_range": list(self.loss_range),
            "clip": self.clip,
            "rounds": self.rounds,
            "resumed": self.resumed,
            "arm_stream": [int(word) for word in self._stream],
            "state": self._state.to_dict(private=private),
        }

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        epsilon: float | None = None,
        again: bool = False,
    ) -> Self:
        """Read a policy that ``save`` wrote; it goes on where it was, with a new identity.

        Parameters
        ----------
        path
            The file.
        encoder
            The fitted encoder it was made with, where features were not declared.
        epsilon
            Refuse a file whose policy promises less than this.
        again
            Load a file that has been resumed before. Whatever was open in it may then be released
            twice, and the guarantee says so.
        """
        return read_with(path, partial(cls.resume, encoder=encoder, epsilon=epsilon, again=again))

    @classmethod
    def resume(
        cls,
        source: Path,
        data: JSON,
        *,
        encoder: Encoder | None,
        epsilon: float | None,
        again: bool,
    ) -> Self:
        """Go on from the content of a file."""
        try:
            policy = kind_of(data["kind"]).from_dict(data, encoder)
        except InputError as error:
            raise StateFileError(f"{source}: {error}") from None
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise StateFileError(f"{source} is damaged: {type(error).__name__}.") from None
        before = policy.resumed

        def promised(times: int) -> float:
            policy.resumed = before + times
            return policy.guarantee.epsilon

        claim_within(source, data, promised, epsilon=epsilon, again=again)
        return policy  # type: ignore[return-value]

    @classmethod
    def from_dict(cls, data: JSON, encoder: Encoder | None = None, *, latest: bool = False) -> Self:
        """Make a policy from what ``to_dict`` returned, checking every value anew.

        It gets a new identity, unless this is known to be the ``latest`` state.
        """
        policy = object.__new__(cls)
        policy.arms = arm_names(data["arms"])
        policy.encoder = encoder_from_dict(data["encoder"], encoder)
        policy.rounds = checks.whole("rounds", data["rounds"], 1, MAX_ROUNDS)
        low, high = data["loss_range"]
        policy.loss_range = check_range((low, high))
        policy.clip = data["clip"] is True
        policy.resumed = checks.whole("resumed", data["resumed"], 0)
        size = len(policy.arms), policy.encoder.size
        words = data["protects"], data["epsilon"], data["delta"]
        known = data["per_person"] is not None
        slots = data["per_person"] if known else 1
        policy.promised = EpochRelease(*words, *size, slots, data["shortest"], known)
        state = State.from_dict(data["state"], latest=latest)
        if (state.people is None) == known:
            raise ValueError("it knows persons, or it does not")
        if (state.arms, state.features) != size:
            raise ValueError("its state does not fit its arms and features")
        stream = np.array(data["arm_stream"], dtype=np.uint64)
        if stream.shape != (4,) or not stream.any():
            raise ValueError("its stream is impossible")
        policy._begin(policy.promised, state, stream)
        return policy

    def recount(self, epoch: Epoch, rounds: Iterable[tuple[Floats, int, int]]) -> None:
        """Add up features, arms and losses of an open epoch: for stores, which keep rounds.

        Sums are of integers, so they are the same in any order.
        """
        for phi, arm, loss in rounds:
            add(phi, arm, loss, self._release.both, epoch.counts, self._scratch)

    @property
    def state(self) -> State:
        """Everything that changes, feedback of open epochs included: for those who store it."""
        return self._state

    @property
    def arm_stream(self) -> Stream:
        """The stream that arms are drawn with, as it is now."""
        return self._stream

    def rehearse(self, arm_stream: Stream, release_stream: Stream) -> Self:
        """Return a fresh copy with seeded streams, noise included: for tests and simulation.

        Its guarantee says that epsilon is infinite.
        """
        return self.around(SeededRelease(self.promised, release_stream), arm_stream)

    def around(self, release: Releasing, arm_stream: Stream) -> Self:
        """Return a fresh copy with another release: for tests, simulation and audits."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        people = People() if self.promised.by_person else None
        size = self._state.arms, self._state.features, self._state.ends
        state = State(*size, people=people)
        copy._begin(release, state, arm_stream)
        return copy

    # --- what it tells of itself: public, or follows from what was released ----------------

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round, and why."""
        promise = self._promise_once()
        return promise.repeated(self.resumed + 1) if promise.private and self.resumed else promise

    def _promise_once(self) -> Guarantee:
        """Return what a single release promises, however often the policy was resumed."""
        promise = self._release.guarantee()
        if not promise.private:
            return promise
        slots = self.promised.mechanism.per_person
        said = assumed_by_all(*self.loss_range, clip=self.clip, slots=slots, in_epochs=True)
        return promise.assuming(*said)

    @property
    def protects(self) -> Protects:
        """Which promise holds."""
        return self.promised.protects

    def certificate(self) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check."""
        setting = Setting(
            self._state.identity, self.algorithm, len(self.arms), None, *self.loss_range
        )
        return charged(make_certificate(self._promise_once(), setting), self.resumed)

    def answer(self) -> ContextAnswer:
        """Return what was learned: means by arm, and which features matter.

        It follows from released values, so it costs no privacy and may be shown to anyone.
        """
        with self._lock:
            return answer_of(self._state, self.encoder, self.arms, self.loss_range)

    def summary(self) -> ContextAnswer:
        """Return the same as ``answer``."""
        return self.answer()

    @property
    def both(self) -> bool:
        """Whether contexts are protected too."""
        return self._release.both

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return self._state.decided

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed."""
        return sum(len(epoch.waiting) for epoch in list(self._state.open.values()))

    @property
    def released(self) -> int:
        """Epochs released so far."""
        return len(self._state.past)

    @property
    def coefficients(self) -> Floats:
        """How the score of each arm depends on the encoded features: follows from releases."""
        return self._scores.coefficients.copy()

    def chances(self, context: Context) -> dict[ArmName, float]:
        """Return the probability of each arm for a context; nothing is decided."""
        phi = self.encoder.encode(context)
        scores = self._scores.coefficients @ phi
        best = int(scores.argmax())
        found = 1.0 / (len(self.arms) + self._scores.sharpness[0] * (scores[best] - scores))
        found[best] = 0.0
        found[best] = 1.0 - found.sum()
        return dict(zip(self.arms, found.tolist(), strict=True))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.algorithm}: {len(self.arms)} arms, "
            f"{self.encoder.size} features, protects {self.protects}, {self.decided} decided, "
            f"{self.waiting} waiting, {self.released} epochs released>"
        )

    def _repr_html_(self) -> str:
        return paragraph(repr(self)) + self.guarantee._repr_html_()

    # --- how it works ---------------------------------------------------------------------

    def _close_if_complete(self, epoch: Epoch) -> None:
        """Release a complete epoch, once, and learn from what came out.

        The epoch is gone before it is released: whatever fails cannot release it a second time.
        """
        if not epoch.complete:
            return
        state = self._state
        del state.open[epoch.number]
        counts = epoch.counts
        rounds = counts.rounds.copy()
        if self._release.both:  # which arms people had depends on their contexts
            rounds[0], rounds[1:] = rounds.sum(), 0
        epoch.losses = epoch.losses[:0]
        try:
            released = self._release.release(Statistics(counts.products, counts.sums))
        except BaseException as error:
            raise without_frames(error) from None
        finally:
            counts.products[:], counts.sums[:], counts.rounds[:] = 0, 0, 0
        state.past.append(Past(released, counts.transform, rounds))
        self._read_new()
        self._refit()
        if self.on_release is not None:
            self.on_release(epoch.number, state.past[-1])

    def _refit_all(self) -> None:
        state, past = self._state, self._state.past
        state.fitted, state.length = None, 1.0
        self._readings: list[Released] = []
        self._scores = state.scores
        for k in range(len(past)):
            self._read_new(k + 1)
            self._refit()

    def _read_new(self, end: int | None = None) -> None:
        """Read releases that have not been read, up to a number of them."""
        for past in self._state.past[len(self._readings) : end]:
            self._readings.append(
                read_release(
                    past.statistics,
                    past.transform,
                    past.rounds,
                    self._noise,
                    both=self._release.both,
                )
            )

    def _refit(self) -> None:
        state = self._state
        state.fitted = fit(
            self._readings,
            self._noise,
            self.encoder.constant,
            state.length,
            both=self._release.both,
        )
        state.length = state.fitted.length
        self._scores = state.fitted.scores


KINDS: dict[str, type[PrivateContextual]] = {"linear": PrivateContextual}
"""The class of each algorithm; ``bandanna.contextual`` knows them all."""


def kind_of(name: object) -> type[PrivateContextual]:
    """Return the class of a saved policy by its name."""
    found = [kind for kind in KINDS.values() if kind.saved_as == name]
    if not found:
        raise InputError(f"it holds a {name}; use bandanna.load.")
    return found[0]


def _verdict(counted: int, units: int) -> str:
    """Return why feedback is refused; nothing if it is what was counted.

    An interrupt may have come before a round that waits no more was counted: any value repeats it.
    """
    if counted in (units, WAITING):
        return ""
    return "given up" if counted == GIVEN_UP else "different"


def _refusal(decision: Decision, reason: str) -> DecisionError:
    error = DecisionError(
        f"decision {decision.round} was given up; its feedback is not counted."
        if reason == "given up"
        else f"decision {decision.round} has other feedback already; it was not changed."
    )
    error.reason = reason
    return error
