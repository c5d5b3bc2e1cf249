"""What an experiment in phases is: a file of a few lines, checked before anything begins."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from bandanna._core import checks
from bandanna._core.documents import read_toml, seal
from bandanna._core.grid import check_range
from bandanna._core.types import JSON, InputError
from bandanna.spec import parameters
from bandanna.warehouse.source import Exposures, duration, seen_from

FORMATS = ("growthbook", "flagd", "bandanna")
SECTIONS = {
    "experiment": (
        *("name", "arms", "epsilon", "rounds", "until", "reward", "per_person"),
        *("control", "least_share", "metrics", "metrics_share", "guardrails"),
        *("state", "ledger", "population"),
    ),
    "phases": ("every", "window"),
    "source": ("address", "exposures", "facts", "unit", "arm", "time", "outcome", "range", "phase"),
    "publish": ("format", "to", "key", "attribute"),
}
NEW_NAMES = {"range": "outcome_range", "format": "publish", "phase": "phase_column"}
MOST_ARMS = 100
OF_A_POLICY = ("rounds", "per_person", "least_share", "metrics", "metrics_share", "guardrails")
"""What ``bandanna.spec`` declares."""
MAY_CHANGE = ("address", "exposures", "facts", "to", "key", "state", "ledger", "rounds", "until")
"""What may be otherwise once an experiment has begun."""
ADDED = ("metrics", "metrics_share", "guardrails")


@dataclass(frozen=True, kw_only=True)
class Course:
    """An experiment in phases, wherever it is counted.

    Parameters
    ----------
    name, arms, epsilon
        What it is called, between which arms, and what the releases about one person may cost.
    every, window
        How long a phase is, and for how long after an exposure facts count.
    outcome, outcome_range
        What is counted, and its smallest and largest value.
    rounds
        How many people are expected in all, if that is known.
    until
        When the experiment ends, if that is known.
    reward
        Whether large outcomes are good.
    per_person
        In how many phases one person counts, at most; in the first ones they are met in. Without
        it every phase that a person is in costs epsilon.
    control, least_share
        An arm that keeps at least this share.
    metrics, metrics_share
        Further outcomes with their ranges, and the part of epsilon that goes to them, evenly.
    guardrails
        How far an arm may be from the control in a metric.
    """

    name: str
    arms: tuple[str, ...]
    epsilon: float
    every: str
    window: str
    outcome: str
    outcome_range: tuple[float, float] = (0.0, 1.0)
    rounds: int | None = None
    until: str | None = None
    reward: bool = False
    per_person: int | None = None
    control: str | None = None
    least_share: float = 0.0
    metrics: Mapping[str, tuple[float, float]] | None = None
    metrics_share: float = 0.5
    guardrails: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.type == "str" and not (isinstance(getattr(self, one.name), str)):
                raise InputError(f"{one.name} must be a text; got {getattr(self, one.name)!r}.")
        if not self.name or not all(mark.isalnum() or mark in "-_." for mark in self.name):
            raise InputError(
                f"name must be letters, digits, and - _ . alone, as it becomes a key; got "
                f"{self.name!r}."
            )
        arms = tuple(str(arm) for arm in self.arms)
        if not 2 <= len(set(arms)) == len(arms) <= MOST_ARMS:
            raise InputError(f"arms must be 2 to {MOST_ARMS} different names; got {self.arms!r}.")
        duration(self.every)
        duration(self.window)
        if self.until is not None:
            moment_of(self.until)
        checked = {name: parameters()[name].check(getattr(self, name)) for name in OF_A_POLICY}
        limits = checked["metrics"], checked["guardrails"]
        checks.check_together(*limits, self.control, self.least_share, arms)
        epsilon, ends = checks.epsilon(self.epsilon), check_range(self.outcome_range)
        # The others stay as they were written, as the seal of what began before is of that.
        kept = {name: checked[name] for name in ("rounds", "metrics", "guardrails")}
        checks.set_fields(self, arms=arms, epsilon=epsilon, outcome_range=ends, **kept)

    @property
    def outcomes(self) -> dict[str, tuple[float, float]]:
        """What is counted and its range: the outcome, then each metric."""
        return {self.outcome: self.outcome_range, **(self.metrics or {})}

    def key_of(self, phase: int) -> str:
        """Return the key under which SDKs report a phase."""
        return f"{self.name}-{phase}"


@dataclass(frozen=True, kw_only=True)
class Definition(Course):
    """An experiment in phases that is counted in tables: what a file says.

    Parameters
    ----------
    exposures, facts, unit, arm, time
        Where to count: see ``bandanna.warehouse.Exposures``.
    address
        Of the database with the tables; without it they are files.
    phase_column
        A column of the exposures that has the key of the phase, as SDKs report it. Without it an
        exposure belongs to the phase of its time.
    publish, to
        The format of the shares, and the file or address they are written to.
    key
        File with the private key that signs them; made at the start if there is none.
    attribute
        By which attribute of a person an SDK hashes.
    state
        A file, or the address of a database. By default a file beside the definition.
    ledger, population
        Where what it costs is written before anything is counted, and about whom.
    """

    exposures: str
    facts: str
    unit: str
    arm: str
    time: str
    address: str | None = None
    phase_column: str | None = None
    publish: str = "growthbook"
    to: str = "shares.json"
    key: str | None = None
    attribute: str = "id"
    state: str | None = None
    ledger: str | None = None
    population: str = "everyone"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.publish not in FORMATS:
            raise InputError(f"format must be {', '.join(FORMATS)}; got {self.publish!r}.")

    @classmethod
    def read(cls, path: str | Path) -> Definition:
        """Read a file; places in it are seen from its folder."""
        return cls.of(read_toml(Path(path)), Path(path).parent)

    @classmethod
    def of(cls, data: Mapping[str, object], folder: Path = Path()) -> Definition:
        """Make it from what a file says."""
        given: JSON = {}
        for section, values in data.items():
            _close("section", section, SECTIONS)
            if not isinstance(values, Mapping):
                raise InputError(f"[{section}] must be a section; got {values!r}.")
            for name, value in values.items():
                _close(f"in [{section}] the name", name, SECTIONS[section])
                given[NEW_NAMES.get(str(name), str(name))] = value
        if isinstance(given.get("until"), datetime):
            given["until"] = given["until"].isoformat()
        missing = [
            one.name for one in fields(cls) if one.default is MISSING and one.name not in given
        ]
        if missing:
            raise InputError(f"the experiment lacks {', '.join(missing)}.")
        tables = () if given.get("address") else ("exposures", "facts")
        for place in ("to", "key", "state", "ledger", *tables):
            value = given.get(place)
            if isinstance(value, str) and "://" not in value:
                given[place] = str(folder / value)
        if isinstance(given.get("address"), str):
            given["address"] = seen_from(given["address"], folder)
        return cls(**given)

    def seal(self) -> str:
        """Return a hash of all that must not change once it has begun."""
        usual = {one.name: one.default for one in fields(self) if one.name in ADDED}
        kept = {name: value for name, value in asdict(self).items() if name not in MAY_CHANGE}
        # Those that began before there were any of the added go on.
        return seal({name: kept[name] for name in kept if kept[name] != usual.get(name, MISSING)})

    def source(self, phase: int, since: str | None, until: str | None) -> Exposures:
        """Return where a phase is counted."""
        return Exposures(
            self.exposures,
            self.facts,
            unit=self.unit,
            time=self.time,
            window=self.window,
            arms=self.arms,
            address=self.address,
            since=since,
            until=until,
            only=None if self.phase_column is None else (self.phase_column, self.key_of(phase)),
        )


def _close(what: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is not known, and say which one is close."""
    names = list(known)
    if name not in names:
        close = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}."
        raise InputError(f"{what} {name!r} is not known{hint}")


def moment_of(text: str) -> datetime:
    """Read a time; without a zone it is in UTC.

    Examples
    --------
    >>> moment_of("2026-01-31T09:30").isoformat()
    '2026-01-31T09:30:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InputError(
            f"a time is written like 2026-01-31T09:30, in UTC unless it names a zone; got {text!r}."
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def written(moment: datetime) -> str:
    """Write a time in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
