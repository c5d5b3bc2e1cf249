"""An experiment in phases: it begins, it goes on when the clock says so, it tells what it knows.

A phase has shares, and a time at which it opened. When it has lasted long enough, the next one
opens. When the window of its last exposures is over, it is counted where the data is, released once
and learned from. Phases that wait for their window and phases that are open overlap.

What one run of ``next`` changes is written down in one piece, before anything of it can be seen;
what is published is then copied from what was written, so a run that dies in between is made good
by the next one. ``Policy`` does what it does online: it plans the phase, releases each arm's sum
and learns from that alone. Nothing private is in the state.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bandanna import signatures
from bandanna._core.documents import write_whole
from bandanna._core.extras import need
from bandanna._core.grid import UNITS
from bandanna._core.types import JSON, Guarantee, InputError, StateFileError
from bandanna.counted import Counted
from bandanna.kept import Kept, kept
from bandanna.ledger import Ledger
from bandanna.phases.counting import count_phase
from bandanna.phases.definition import Definition, moment_of, written
from bandanna.phases.payloads import PARTS, digest, flagd, growthbook, parts_of, signed
from bandanna.policy.answers import Answer, Comparison
from bandanna.policy.facade import PrivateBandit, policy_from_dict
from bandanna.policy.policy import Policy
from bandanna.policy.state import Batch
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.privacy.composition import for_person, slot_for
from bandanna.privacy.release import Released
from bandanna.privacy.statements import PUBLIC_EXPOSURES, assumed_by_all
from bandanna.scorecard.card import Scorecard
from bandanna.scorecard.health import ALARM, ratio_chance
from bandanna.scorecard.view import Check
from bandanna.warehouse import count_exposed
from bandanna.warehouse.source import duration

LONGEST = 7
"""A phase lasts at most so many times as long as it was to, where few people come."""
ENOUGH = 0.9
"""The part of the people that were planned for with which a phase is closed."""
UNEVEN = 1e-3
"""A phase whose counts are less likely than this under its shares is pointed out."""


@dataclass(frozen=True)
class Step:
    """What one run of ``next`` did."""

    released: tuple[int, ...]
    """Phases that were counted and released."""
    opened: int | None
    """The phase that was opened."""
    waits: datetime | None
    """When there is something to do again; None once the experiment is over."""
    warnings: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Say it."""
        parts = []
        if self.released:
            parts.append(f"Released phase {', '.join(map(str, self.released))}.")
        if self.opened is not None:
            parts.append(f"Opened phase {self.opened} and published its shares.")
        if not parts:
            parts.append("Nothing to do yet." if self.waits else "The experiment is over.")
        if self.waits is not None:
            parts.append(f"Next at {written(self.waits)}.")
        return " ".join([*parts, *self.warnings])


class PhasedExperiment:
    """An experiment in phases without a server: see ``docs/warehouse.md``.

    Parameters
    ----------
    definition
        A ``Definition``, or a TOML file that has one.

    Examples
    --------
    >>> import bandanna as bd
    >>> bd.PhasedExperiment("no-such-file.toml")
    Traceback (most recent call last):
    bandanna._core.types.InputError: cannot read no-such-file.toml: No such file or directory.
    """

    def __init__(self, definition: Definition | str | Path) -> None:
        need("warehouse", "counting phases")
        folder = Path()
        if not isinstance(definition, Definition):
            folder = Path(definition).parent
            definition = Definition.read(definition)
        self.definition = definition
        self._kept = _kept(definition, folder)

    # --- what a user calls ------------------------------------------------------------------

    def start(self, now: datetime | str | None = None) -> Step:
        """Open the first phase and publish its shares; refused where it has begun before."""
        moment, definition = _moment(now), self.definition
        with self._kept.held():
            if self._kept.read() is not None:
                raise StateFileError(
                    f"{definition.name} has begun; go on with next. To begin anew, give it another "
                    f"name and another state: people's facts would be released again."
                )
            private = _private_key(definition)
            slots = definition.per_person or 1
            policy = PrivateBandit(
                definition.arms,
                slot_for(definition.epsilon, 0.0, slots).epsilon,
                definition.rounds,
                "phased",
                loss_range=definition.outcome_range,
                clip=True,
                control=definition.control,
                least_share=definition.least_share,
            )
            policy.state.rewarded = definition.reward
            state: JSON = {
                "name": definition.name,
                "seal": definition.seal(),
                "identity": secrets.token_hex(8),
                "salt": secrets.token_hex(16),
                "phases": [],
                "published": "",
            }
            self._open(state, policy, moment, private)
            if definition.per_person is not None:
                self._spend(state["identity"], "all phases")
            if not self._kept.write({**state, "policy": policy.to_dict()}, None):
                raise StateFileError(f"{definition.name} was started by another process.")
        self._publish(state["published"])
        return Step((), 0, _due(definition, state))

    def next(self, now: datetime | str | None = None) -> Step:
        """Do what is due: count and release phases whose window is over, open the next one.

        Before its time it does nothing but publish again what is published. Run twice, or by two
        at once, it releases each phase once.
        """
        moment = _moment(now)
        with self._kept.held():
            before = self._state()
            state: JSON = {**before, "phases": [dict(one) for one in before["phases"]]}
            policy = policy_from_dict(before["policy"], latest=True)
            step = self._go_on(state, policy, moment, before)
        self._publish(self._state()["published"])
        return step

    def answer(self, confidence: float = 0.95) -> Answer:
        """Say which arm is best, from what was released: it costs nothing and may be shown."""
        return self._policy().answer(confidence, outcome=self.definition.outcome)

    def compare(self, first: str, second: str, confidence: float = 0.95) -> Comparison:
        """Say how two arms differ."""
        return self._policy().compare(first, second, confidence, outcome=self.definition.outcome)

    def scorecard(self, control: str | None = None, confidence: float = 0.95) -> Scorecard:
        """Return what a team decides from, of what was released: it costs nothing."""
        card = self._policy().scorecard(
            control, outcome=self.definition.outcome, confidence=confidence
        )
        promise, seen = self.guarantee, [one["released"] for one in self.phases if one["released"]]
        chance = min([1.0, *(len(seen) * one["sample_ratio"] for one in seen)])
        fair = chance > ALARM
        said = "are divided as published" if fair else "are not divided as published"
        rest = "" if fair else ": are exposures lost, or shares cached for long?"
        check = Check("division", fair, f"In all phases people {said} (p = {chance:.2g}){rest}.")
        return replace(
            card,
            epsilon=promise.epsilon,
            protects=promise.protects,
            title=self.definition.name,
            health=(check, *(one for one in card.health if one.name == "change")),
            certificates=(self.certificate(),),
        )

    @property
    def phases(self) -> list[JSON]:
        """Each phase: when it was, its shares in 1/10,000, and what was released of it."""
        return [dict(one) for one in self._state()["phases"]]

    @property
    def waits(self) -> datetime | None:
        """When there is something to do."""
        return _due(self.definition, self._state())

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one person's facts."""
        definition, slots = self.definition, self.definition.per_person
        each = slot_for(definition.epsilon, 0.0, slots or 1).epsilon
        promise = PrivateBandit(
            definition.arms, each, algorithm="phased"
        ).recipe.release.guarantee()
        low, high = definition.outcome_range
        assumed = assumed_by_all(low, high, clip=True, slots=slots)
        promise = promise.assuming(*assumed, PUBLIC_EXPOSURES)
        return promise if slots is None else for_person(promise, definition.epsilon, 0.0, slots)

    def certificate(self) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` checks."""
        definition, identity = self.definition, self._state()["identity"]
        ends = definition.outcome_range
        setting = Setting(identity, "phased", len(definition.arms), None, *ends)
        return make_certificate(self.guarantee, setting)

    # --- how it works -----------------------------------------------------------------------

    def _go_on(self, state: JSON, policy: Policy, moment: datetime, before: JSON) -> Step:
        definition = self.definition
        last, opened = state["phases"][-1], None
        lists, released, warnings = [*self._kept.attachments(before)], [], []
        known = len(lists)
        for one in state["phases"]:
            closed = one["until"] is not None and one["released"] is None
            if closed and moment >= _after(one["until"], definition.window):
                self._spend(f"{before['identity']}-{one['number']}", f"phase {one['number']}")
                counted, listed = count_phase(definition, one, lists)
                lists += [] if listed is None else [listed]
                warnings += _release(policy, one, counted, moment, definition)
                released.append(int(one["number"]))
        if last["until"] is None and self._is_over(policy, last, moment):
            last["until"] = written(moment)
        over = policy.state.rounds >= (definition.rounds or float("inf"))
        over = over or (definition.until is not None and moment >= moment_of(definition.until))
        if last["until"] is not None and not over:
            opened = self._open(state, policy, moment, _private_key(definition))
        if state["phases"] == before["phases"]:
            return Step((), None, _due(definition, state, moment))
        if not self._kept.write({**state, "policy": policy.to_dict()}, before, lists[known:]):
            # Another one was faster: what was drawn here is thrown away, and nobody saw it.
            return Step((), None, _due(definition, self._state()))
        due = _due(definition, state, moment)
        return Step(tuple(released), opened, due, tuple(warnings))

    def _is_over(self, policy: Policy, one: JSON, moment: datetime) -> bool:
        """Whether a phase is to be closed: it has its time, and about as many people as planned.

        How many were exposed is public. With fewer than planned it goes on, for some time: noise
        is as large for a short phase as for a long one.
        """
        definition, begun = self.definition, moment_of(one["since"])
        each = duration(definition.every)
        if moment < begun + each:
            return False
        if definition.until is not None and moment >= moment_of(definition.until):
            return True
        if moment >= begun + LONGEST * each:
            return True
        source = definition.source(one["number"], one["since"], written(moment))
        came = count_exposed(source, definition.arm)
        rounds = definition.rounds or math.inf
        enough = min(policy.state.open[int(one["batch"])].size, rounds - policy.state.rounds)
        return came >= ENOUGH * enough

    def _spend(self, release: str, what: str) -> None:
        """Write down what is about to be spent, before anything is counted, and once.

        With ``per_person`` all of it is written at the start. A release under the same id is the
        same one: what a run that died had drawn, nobody saw.
        """
        definition = self.definition
        whole = definition.per_person is not None
        if definition.ledger is None or whole != (what == "all phases"):
            return
        Ledger(definition.ledger).spend(
            definition.epsilon,
            what=f"{definition.name}, {what}",
            population=definition.population,
            id=release,
        )

    def _open(self, state: JSON, policy: Policy, moment: datetime, private: bytes) -> int:
        """Plan a phase, and write down what is to be published."""
        definition, number = self.definition, len(state["phases"])
        batch = policy.plan_phase()
        assert batch.phase is not None, "the policy plays phases"
        parts = parts_of(batch.phase.planned)
        sticky = definition.per_person == 1
        seed = state["salt"] if sticky else f"{state['salt']}-{number}"
        since = written(moment)
        if definition.publish == "bandanna":
            text = signed(
                definition,
                number,
                parts,
                seed,
                since=since,
                previous=digest(state["published"]) if state["published"] else "",
                private_key=private,
            )
        else:
            write = growthbook if definition.publish == "growthbook" else flagd
            text = write(definition, number, parts, seed)
        state["published"] = text
        state["phases"].append(
            {
                "number": number,
                "batch": batch.number,
                "since": since,
                "until": None,
                "parts": parts,
                "released": None,
            }
        )
        return number

    def _publish(self, text: str) -> None:
        """Put what was written down where SDKs find it, whole or not at all."""
        to = self.definition.to
        try:
            if "://" in to:
                import fsspec  # an address of an object store; it brings its own drivers

                with fsspec.open(to, "w", encoding="utf-8") as file:
                    file.write(text)
            elif not Path(to).is_file() or Path(to).read_text(encoding="utf-8") != text:
                write_whole(Path(to), text)
        except ImportError:
            raise InputError(f"to publish at {to.partition(':')[0]}:// install fsspec.") from None
        except OSError as error:
            raise InputError(
                f"cannot publish at {to}: {error.strerror or error}. The state is written; next "
                f"will publish it."
            ) from None

    def _state(self) -> JSON:
        found = self._kept.read()
        if found is None:
            raise StateFileError(
                f"{self.definition.name} has not begun: bandanna phases start, or start()."
            )
        if found["seal"] != self.definition.seal():
            raise StateFileError(
                f"the definition of {self.definition.name} has changed since it began. Arms, "
                f"epsilon, range and times of a running experiment stay as they are."
            )
        return found

    def _policy(self) -> Policy:
        return policy_from_dict(self._state()["policy"], latest=True)


def _release(
    policy: Policy, one: JSON, counted: Counted, moment: datetime, definition: Definition
) -> list[str]:
    """Release what was counted of a phase, once, and note what may be seen."""
    sums = {}
    for arm, (count, total) in enumerate(
        zip(counted.counts[:, 0], counted.sums[:, 0], strict=True)
    ):
        if count:
            losses = int(count) * UNITS - int(total) if definition.reward else int(total)
            sums[arm] = losses, int(count)
    seen: dict[int, float] = {}

    def note(batch: Batch, published: Released | None) -> None:
        assert batch.phase is not None, "the policy plays phases"
        if published is not None:
            seen.update(zip(batch.phase.counts, np.atleast_1d(published).tolist(), strict=True))

    policy.on_release = note
    policy.observe_phase(int(one["batch"]), sums)
    low, high = definition.outcome_range
    means = {
        definition.arms[arm]: low + (high - low) * (1.0 - loss if definition.reward else loss)
        for arm, loss in seen.items()
    }
    counts = {name: int(n) for name, n in zip(definition.arms, counted.counts[:, 0], strict=True)}
    p = ratio_chance(list(counts.values()), [part / PARTS for part in one["parts"]])
    one["released"] = {"at": written(moment), "counts": counts, "means": means, "sample_ratio": p}
    if p >= UNEVEN:
        return []
    return [
        f"Phase {one['number']}: its counts do not fit its shares (p = {p:.1g}): are exposures "
        f"lost, or shares cached for long?"
    ]


def _after(moment: str, length: str) -> datetime:
    return moment_of(moment) + duration(length)


def _due(
    definition: Definition, state: Mapping[str, list[JSON]], now: datetime | None = None
) -> datetime | None:
    """Return when there is something to do; of a phase that goes on: when to look again."""
    times = []
    for one in state["phases"]:
        if one["until"] is None:
            time = _after(one["since"], definition.every)
            while now is not None and time <= now:
                time += duration(definition.every)
            times.append(time)
        elif one["released"] is None:
            times.append(_after(one["until"], definition.window))
    return min(times, default=None)


def _moment(now: datetime | str | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    return moment_of(now) if isinstance(now, str) else now.astimezone(UTC)


def _kept(definition: Definition, folder: Path) -> Kept:
    where = definition.state or folder / f"{definition.name}.state.json"
    return kept(where, "bandanna phases", definition.name)


def _private_key(definition: Definition) -> bytes:
    """Return the key that signs, where payloads are signed; made at the first start."""
    if definition.publish != "bandanna":
        return b""
    path = Path(definition.key or f"{definition.to}.key.pem")
    if not path.exists():
        pair = signatures.to_pem(signatures.make_key())
        write_whole(path, pair.private, private=True)
        write_whole(path.with_name(path.name.removesuffix(".pem") + ".public.pem"), pair.public)
    return signatures.private_from_pem(path.read_bytes())
