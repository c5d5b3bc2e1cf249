"""A policy: decides round by round, releases each batch once, learns from the releases alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from bandanna._core import checks
from bandanna._core.advice import check_advice
from bandanna._core.grid import check_range, feedback_to_units, to_units
from bandanna._core.streams import Stream, new_stream
from bandanna._core.types import ArmName, Decision, InputError
from bandanna.policies.among import Among
from bandanna.policies.batch import Batch
from bandanna.policies.fitting import check_parts
from bandanna.policies.inputs import as_decision, check_bit
from bandanna.policies.ledger import Ledger
from bandanna.policies.people import People, PeopleRule
from bandanna.policies.player import Player
from bandanna.policies.promise import fitted_rule
from bandanna.policies.recipe import Recipe
from bandanna.policies.saving import Saved
from bandanna.policies.short import evidence, within_reach
from bandanna.privacy import Release
from bandanna.privacy.release import Released


class Policy(Saved):
    """Decides round by round, releases each batch once, and learns from the releases alone.

    Batches open while earlier ones still wait for feedback. Used in order it is the paper's
    Algorithm 1, or 6 or 2 with experts. Threads may share it: one lock lets them in
    one after the other.
    """

    def __init__(
        self,
        recipe: Recipe,
        names: Sequence[ArmName],
        *,
        algorithm: str,
        loss_range: tuple[float, float],
        rounds: int | None,
        experts: int | None = None,
        default_loss: float | None = None,
        clip: bool = False,
        seed: int | None = None,
        people: PeopleRule | None = None,
        retired: Iterable[int] = (),
    ) -> None:
        self.recipe = recipe
        self.arms, self.retired = tuple(names), frozenset(retired)
        self.experts = experts
        self.algorithm = algorithm
        self.loss_range = low, high = check_range(loss_range)
        self.default_loss = low + (high - low) / 2 if default_loss is None else default_loss
        self.default_loss = checks.within("default_loss", self.default_loss, low, high)
        self.clip = bool(clip)
        self.rounds = rounds
        self.resumed = 0
        """How often its file was resumed more than once."""
        check_parts(recipe, len(self.active), experts, rounds)
        self.people = people and fitted_rule(people, recipe, experts, algorithm)
        self._belong_here()
        self._lock = threading.RLock()
        self._stream = new_stream(None if seed is None else checks.whole("seed", seed, 0))
        self._player = self._new_player(self._stream)
        self._ledger = self._new_ledger(recipe.release)
        self.on_release: Callable[[Batch, Released | None], None] | None = None
        """Told of each batch that closes: the batch, which has forgotten its losses, and what came
        out; None if nothing in it counted."""

    # --- what a user calls ----------------------------------------------------------------

    def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        eligible: Iterable[ArmName] | None = None,
    ) -> Decision:
        """Choose an arm for the next round.

        Parameters
        ----------
        advice
            With experts: the index or name of an arm for each, shape (N,); or a distribution over
            the arms for each, shape (N, K), whose rows add up to 1 within 1e-4.
        person
            With ``per_person``: whose round it is. Anything that is the same whenever they come;
            only a keyed hash of it is kept.
        eligible
            The arms that may be played in this round, by name or index; all of them by default.
            Which they are must be public. Rounds with the same eligible arms fill batches of their
            own. ``docs/arms.md`` explains.
        """
        said = None
        if self.experts is not None:
            said = check_advice(advice, self.experts, len(self.arms), self.arms)
        elif advice is not None:
            raise InputError("there are no experts here; call decide() without advice.")
        nobody = person is None and self.people is None
        who = None if nobody else self._ledger.known_as(person)
        self._check_process()
        with self._lock:
            ledger, among = self._ledger, None if eligible is None else self.among(eligible)
            if who is not None:
                self._learn(ledger.sealed(among))
            room = ledger.room(among) if who is None else ledger.room_for(who, among)
            batch = room or self._open_batch(among)
            arm, ticket = self._player.choose(batch.choice, said)
            position = batch.open_round(ledger.next_round(batch.choice), arm, ticket, who)
            place = batch.round_of(position), batch.number, position
            chance = self._player.chance(batch.chance, ticket)
            return Decision(self.arms[arm], arm, *place, ledger.identity, chance)

    def observe(
        self,
        decision: Decision | Mapping[str, object],
        loss: float | None = None,
        *,
        reward: float | None = None,
    ) -> None:
        """Take the feedback of a decision: once, in any order, late if need be.

        Give either a loss or a reward, inside the range fixed at the start; a reward ``r`` is the
        loss ``low + high - r``. The same value sent again is ignored; another one is refused.
        """
        made = as_decision(decision)
        self.check_takes(bits=False)
        units = feedback_to_units(loss, reward, self.loss_range, clip=self.clip)
        self._check_process()
        with self._lock:
            batch = self._ledger.take(made, units)
            self.rewarded = reward is not None
            del loss, reward, units  # what fails below must not carry them in its traceback
            self._learn(batch)

    def observe_bit(self, decision: Decision | Mapping[str, object], bit: int) -> None:
        """Take the bit that a person's device released for a decision: once, as ``observe`` does.

        For policies with ``release="device"``, which take nothing else.
        """
        made = as_decision(decision)
        self.check_takes(bits=True)
        self._check_process()
        with self._lock:
            self._learn(self._ledger.take(made, check_bit(bit)))

    def give_up(self, decision: Decision | Mapping[str, object]) -> None:
        """Count ``default_loss`` for feedback that has not come, so that its batch can close.

        Give up by a rule that is public and looks at nobody's feedback, such as a fixed time
        after the decision. Where feedback has come nothing happens, whatever it was; feedback
        that comes later is refused, whatever it is.
        """
        made = as_decision(decision)
        units = to_units("default_loss", self.default_loss, self.loss_range)
        self._check_process()
        with self._lock:
            counted = self._ledger.release.stand_in(units)
            self._learn(self._ledger.give_up(made, counted))

    def finish(self, person: str | int) -> None:
        """Close a person's place with the feedback that has come, so that its batch can close.

        Do so by a rule that is public and looks at nobody's feedback, such as a fixed time after
        their first round. Feedback of theirs that comes later is refused, whatever it is; when
        they come back they take another place.
        """
        self._finish(self._ledger.known_as(person))

    def finish_place(self, decision: Decision | Mapping[str, object]) -> None:
        """Close the place that a decision belongs to, as ``finish`` does for its person."""
        with self._lock:
            self._finish(self._ledger.owner_of(as_decision(decision)))

    def rehearse(self, arm_stream: Stream, release_stream: Stream) -> Self:
        """Return a fresh copy with seeded streams, release included: for tests and simulation.

        Its guarantee says that epsilon is infinite.
        """
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._lock = threading.RLock()
        copy._belong_here()
        copy._stream = arm_stream
        copy._player = copy._new_player(arm_stream)
        copy._ledger = self._new_ledger(self.recipe.release.seeded(release_stream))
        copy.on_release = None
        return copy

    # --- how it works ---------------------------------------------------------------------

    def _new_player(self, stream: Stream) -> Player:
        return Player(self.recipe, self.experts, stream, self.active, len(self.arms))

    def _new_ledger(self, release: Release) -> Ledger:
        if self.people is None:
            return Ledger(release)
        default = to_units("default_loss", self.default_loss, self.loss_range)
        return Ledger(release, People(self.people, default))

    def _finish(self, who: int) -> None:
        self._check_process()
        with self._lock:
            for batch in self._ledger.finish(who):
                self._learn(batch)

    def _open_batch(self, among: Among | None) -> Batch:
        drawn = self._player.open(among)
        if self._ledger.people is not None and drawn.size:
            drawn = within_reach(drawn, self._ledger.people.with_places_left, self.batch)
        return self._ledger.begin(drawn, drawn.size or self.batch, among)

    def _learn(self, batch: Batch | None) -> None:
        """Release a complete batch, once, and learn from what came out."""
        if batch is not None:
            released = self._ledger.close(batch)
            if released is None:
                self._player.forget(batch.credited, batch.importance)
            else:
                told, rounds = released, batch.size
                if isinstance(told, float):
                    told, rounds = evidence(told, batch.importance, batch.size, batch.used)
                drawn = batch.credited, batch.importance, batch.ticket
                self._player.learn(*drawn, told, rounds)
            if self.on_release is not None:
                self.on_release(batch, released)
