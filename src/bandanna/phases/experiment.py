"""An experiment in phases without a server: its state is a document, its cohort is in tables.

What one run of ``next`` changes is written down in one piece, before anything of it can be seen;
what is published is then copied from what was written, so a run that dies in between is made good
by the next one. What is due when is said in ``course``.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bandanna import signatures
from bandanna._core.documents import write_whole
from bandanna._core.extras import need
from bandanna._core.types import JSON, BandannaError, Guarantee, InputError, StateFileError
from bandanna.counted import Counted
from bandanna.kept import kept
from bandanna.ledger import Ledger
from bandanna.phases.course import (
    Step,
    Write,
    begun,
    division,
    due,
    go_on,
    new_policy,
    promising,
)
from bandanna.phases.definition import Definition, moment_of
from bandanna.phases.payloads import flagd, growthbook, signed
from bandanna.policy.answers import Answer, Comparison
from bandanna.policy.facade import policy_from_dict
from bandanna.policy.policy import Policy
from bandanna.privacy.certificate import Setting, make_certificate
from bandanna.scorecard.card import Scorecard
from bandanna.warehouse import check_columns, count, count_exposed, count_units

if TYPE_CHECKING:
    import pyarrow as pa


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
        where = definition.state or folder / f"{definition.name}.state.json"
        self._kept = kept(where, "bandanna phases", definition.name)

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
            policy = new_policy(definition)
            state = {
                **begun(secrets.token_hex(16)),
                "name": definition.name,
                "seal": definition.seal(),
                "identity": secrets.token_hex(8),
            }
            step = go_on(definition, state, policy, moment, self._cohort(state, ()), self._write())
            if definition.per_person is not None:
                self._spend(state["identity"], 0)
            if not self._kept.write({**state, "policy": policy.to_dict()}, None):
                raise StateFileError(f"{definition.name} was started by another process.")
        self._publish(state["published"])
        return replace(step, warnings=(*step.warnings, *self._unready()))

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
            cohort = self._cohort(state, self._kept.attachments(before))
            step = go_on(self.definition, state, policy, moment, cohort, self._write())
            new = {**state, "policy": policy.to_dict()}
            changed = state["phases"] != before["phases"]
            if changed and not self._kept.write(new, before, cohort.listed):
                # Another one was faster: what was drawn here is thrown away, and nobody saw it.
                step = Step((), None, due(self.definition, self._state()))
        self._publish(self._state()["published"])
        return step

    def answer(self, confidence: float = 0.95, *, metric: str | None = None) -> Answer:
        """Say which arm is best, from what was released: it costs nothing and may be shown."""
        return self._policy().answer(confidence, outcome=self.definition.outcome, metric=metric)

    def compare(
        self, first: str, second: str, confidence: float = 0.95, *, metric: str | None = None
    ) -> Comparison:
        """Say how two arms differ."""
        outcome = self.definition.outcome
        return self._policy().compare(first, second, confidence, outcome=outcome, metric=metric)

    def scorecard(self, control: str | None = None, confidence: float = 0.95) -> Scorecard:
        """Return what a team decides from, of what was released: it costs nothing."""
        card = self._policy().scorecard(
            control, outcome=self.definition.outcome, confidence=confidence
        )
        change = (one for one in card.health if one.name == "change")
        return replace(
            card,
            title=self.definition.name,
            health=(division(self.phases), *change),
            certificates=(self.certificate(),),
        )

    @property
    def phases(self) -> list[JSON]:
        """Each phase: when it was, its shares in 1/10,000, and what was released of it."""
        return [dict(one) for one in self._state()["phases"]]

    @property
    def waits(self) -> datetime | None:
        """When there is something to do."""
        return due(self.definition, self._state())

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one person's facts."""
        return new_policy(self.definition).guarantee

    def certificate(self) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` checks."""
        definition, identity = self.definition, self._state()["identity"]
        ends = definition.outcome_range
        setting = Setting(identity, "phased", len(definition.arms), None, *ends)
        return make_certificate(self.guarantee, setting)

    # --- how it works -----------------------------------------------------------------------

    def _cohort(self, state: JSON, lists: Sequence[bytes]) -> InTables:
        """Return who was met: what a phase costs is in the ledger before it is counted.

        Also where the experiment has a ledger only since it began: what is there is not charged
        again.
        """
        return InTables(self.definition, lists, partial(self._spend, state["identity"]))

    def _unready(self) -> tuple[str, ...]:
        """Say what is missing in the tables; they may be made later. No row of them is read."""
        definition = self.definition
        try:
            check_columns(definition.source(0, None, None), definition.arm, definition.outcomes)
        except BandannaError as error:
            return (f"Before that is counted: {error}",)
        return ()

    def _spend(self, identity: str, phase: int) -> None:
        """Write down what is about to be spent, before a phase is counted, and once.

        With ``per_person`` all of it is written at the start. A release under the same id is the
        same one: what a run that died had drawn, nobody saw.
        """
        definition, what, release = self.definition, "all phases", identity
        if definition.per_person is None:
            what, release = f"phase {phase}", f"{identity}-{phase}"
        if definition.ledger is not None:
            Ledger(definition.ledger).spend(
                definition.epsilon,
                what=f"{definition.name}, {what}",
                population=definition.population,
                id=release,
            )

    def _write(self) -> Write:
        """Return what writes shares as those who decide read them."""
        definition = self.definition
        if definition.publish == "bandanna":
            private = _private_key(definition)
            return partial(signed, definition, sign=partial(signatures.sign, private))
        return partial(growthbook if definition.publish == "growthbook" else flagd, definition)

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
        state = self._kept.read()
        if state is None:
            raise StateFileError(
                f"{self.definition.name} has not begun: bandanna phases start, or start()."
            )
        if state["seal"] != self.definition.seal():
            raise StateFileError(
                f"the definition of {self.definition.name} has changed since it began. Arms, "
                f"epsilon, range and times of a running experiment stay as they are."
            )
        return state

    def _policy(self) -> Policy:
        return promising(self.definition, policy_from_dict(self._state()["policy"], latest=True))


class InTables:
    """Who was met in a phase, and what came of it, as tables say.

    With ``per_person`` someone counts in the first phases they are met in, and in no more. Who has
    been counted is kept with what was released: computed again from tables that have been pruned
    since, someone would count again. So the list is fetched first, and facts are added up for those
    on it.
    """

    def __init__(
        self, definition: Definition, lists: Sequence[bytes], before: Callable[[int], None]
    ) -> None:
        self._definition, self._before = definition, before
        self._lists = [*lists]
        self.listed: list[bytes] = []
        """Lists of who was counted, that were not there yet."""

    def came(self, phase: JSON, until: str) -> int:
        """Return how many were met until then."""
        source = self._definition.source(phase["number"], phase["since"], until)
        return count_exposed(source, self._definition.arm)

    def counted(self, phase: JSON) -> list[Counted]:
        """Count a phase; ``before`` is called first."""
        definition = self._definition
        self._before(int(phase["number"]))
        source = definition.source(phase["number"], phase["since"], phase["until"])
        arm, outcomes = definition.arm, definition.outcomes
        if definition.per_person is None:
            return [
                count(source, arm=arm, outcome=name, loss_range=ends).counted
                for name, ends in outcomes.items()
            ]
        from pyarrow import parquet

        totals, units = count_units(source, self._with_a_slot, arm, outcomes)
        written = io.BytesIO()
        parquet.write_table(units.select(["unit"]), written)
        self._lists.append(written.getvalue())
        self.listed.append(written.getvalue())
        return totals

    def _with_a_slot(self, units: pa.Table) -> pa.Table:
        """Return those who have a slot left."""
        import pyarrow as pa
        from pyarrow import parquet

        had = [parquet.read_table(io.BytesIO(one)) for one in self._lists]
        if not had:
            return units
        times = pa.concat_tables(had).group_by("unit").aggregate([("unit", "count")])
        slots = self._definition.per_person or 1
        out = times.filter(pa.compute.greater_equal(times["unit_count"], slots))
        return units.join(out.select(["unit"]), "unit", join_type="left anti")


def _moment(now: datetime | str | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    return moment_of(now) if isinstance(now, str) else now.astimezone(UTC)


def _private_key(definition: Definition) -> bytes:
    """Return the key that signs; made at the first start."""
    path = Path(definition.key or f"{definition.to}.key.pem")
    if not path.exists():
        pair = signatures.to_pem(signatures.make_key())
        write_whole(path, pair.private, private=True)
        write_whole(path.with_name(path.name.removesuffix(".pem") + ".public.pem"), pair.public)
    return signatures.private_from_pem(path.read_bytes())
