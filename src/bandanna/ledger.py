"""One budget for a population: what every question, phase and experiment has spent, and is left.

A ledger is about one space of ids: whoever is in several of its populations has spent the sum of
what was asked about each. Only where populations are declared as the parts of a public partition,
so that nobody is in two of them, the most that was spent on a part counts. What it costs is written
down before anything is read, and what would exceed the budget is refused with nothing written.

What is asked next may depend on earlier answers, and so may its epsilon. Two rules hold all the
same (privacy filters; Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Whitehouse, Ramdas,
Rogers, Wu 2023):

- without delta, epsilons are added up, exactly, in fractions;
- with a delta, each pure epsilon is ``epsilon^2 / 2`` of zero-concentrated privacy (Bun, Steinke
  2016, Proposition 1.4), these add up to rho, and rho costs ``rho + 2 sqrt(rho log(1 / delta))``.

Which of the two is fixed when the ledger begins. To count by asker would be unsound: askers may
talk to each other.
"""

from __future__ import annotations

import getpass
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from bandanna._core import checks
from bandanna._core.types import JSON, BandannaError, InputError, StateFileError, at_least
from bandanna.kept import Kept, kept

KIND = "bandanna ledger"
EVERYONE = "everyone"
"""The population of what names none."""
MANY_TRIES = 100
HARDLY = Fraction(1, 10**12)
"""By so little a budget may be exceeded: ten times 0.1, as computers have it, is more than 1."""


class BudgetError(BandannaError):
    """What was asked would exceed the budget: nothing was read and nothing was written."""


@dataclass(frozen=True)
class Expense:
    """What one release cost."""

    id: str
    at: str
    who: str
    what: str
    population: str
    epsilon: float

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return dict(vars(self))


class Ledger:
    """What was spent on a population, in a file or in a database.

    Parameters
    ----------
    place
        A file, or the address of a database.
    name
        Which ledger, in a database.

    Examples
    --------
    >>> import tempfile
    >>> import bandanna as bd
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = bd.Ledger.start(folder.name + "/customers.ledger", budget=1.0)
    >>> ledger.spend(0.5, what="which plan is better").epsilon
    0.5
    >>> ledger.spent, ledger.left
    (0.5, 0.5)
    >>> folder.cleanup()
    """

    def __init__(self, place: str | Path, name: str = "people") -> None:
        self.place, self.name = str(place), name
        self._kept: Kept = kept(place, KIND, name)

    @classmethod
    def start(
        cls,
        place: str | Path,
        budget: float,
        delta: float = 0.0,
        partitions: Mapping[str, Sequence[str]] | None = None,
        name: str = "people",
    ) -> Ledger:
        """Begin a ledger.

        Parameters
        ----------
        place, name
            Where it is kept.
        budget, delta
            What all releases about one person may cost together, ever. With a delta they are
            composed as zero-concentrated privacy.
        partitions
            Populations of which everyone is in at most one, by the name of what divides them:
            ``{"country": ["DE", "FR"]}``. It must be public who is in which.
        """
        epsilon, small = checks.positive("budget", budget), checks.delta(delta)
        parts: dict[str, str] = {}
        for title, members in (partitions or {}).items():
            names = list(map(str, members))
            if len(set(names)) < max(len(names), 2) or set(names) & parts.keys():
                raise InputError(
                    f"{title!r} must have two or more populations, each in one partition; got "
                    f"{members!r}."
                )
            parts |= dict.fromkeys(names, str(title))
        ledger = cls(place, name)
        document = {"budget": epsilon, "delta": small, "parts": parts, "entries": []}
        with ledger._kept.held():
            if ledger._kept.read() is not None or not ledger._kept.write(document, None):
                raise StateFileError(f"there is a ledger at {ledger._where} already.")
        return ledger

    def spend(
        self,
        epsilon: float,
        *,
        what: str,
        population: str = EVERYONE,
        who: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Expense:
        """Write down what a release is about to cost; refuse what would exceed the budget.

        Parameters
        ----------
        epsilon
            What it costs someone in the population, with delta 0.
        what, who
            What is asked, and who asks: by default the user of this process.
        population
            About whom.
        id
            What names this one release: asked again under the same id it is not charged again.
            Only for a release that is known to be seen once, such as that of a phase.
        """
        cost = checks.epsilon(epsilon)
        for _ in range(MANY_TRIES):
            with self._kept.held():
                before = self._document()
                entries = _entries(before)
                known = [one for one in entries if one.id == id]
                if known:
                    return known[0]
                now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                mine = id or secrets.token_hex(8)
                entry = Expense(
                    mine,
                    now,
                    _user() if who is None else str(who),
                    str(what),
                    str(population),
                    cost,
                )
                if not _fits(before, [*entries, entry]):
                    raise BudgetError(self._refused(before, entries, entry))
                listed = [one.to_dict() for one in (*entries, entry)]
                if self._kept.write({**before, "entries": listed}, before):
                    return entry
        raise StateFileError(f"the ledger at {self._where} changes too fast to be written.")

    def check(self, epsilon: float, *, population: str = EVERYONE) -> None:
        """Refuse what would exceed the budget, and write nothing."""
        document = self._document()
        entries = _entries(document)
        entry = Expense("", "", "", "", str(population), checks.epsilon(epsilon))
        if not _fits(document, [*entries, entry]):
            raise BudgetError(self._refused(document, entries, entry))

    @property
    def budget(self) -> float:
        """What all releases about one person may cost."""
        return float(self._document()["budget"])

    @property
    def delta(self) -> float:
        """The delta at which they are composed; 0 where epsilons add up."""
        return float(self._document()["delta"])

    @property
    def entries(self) -> list[Expense]:
        """What was spent, in order."""
        return _entries(self._document())

    @property
    def spent(self) -> float:
        """The epsilon that all releases cost whoever they are about, together, rounded up."""
        document = self._document()
        return _epsilon(document, _total(document, _entries(document)))

    @property
    def left(self) -> float:
        """The largest epsilon of one more release about everyone, rounded down."""
        return self.left_for(EVERYONE)

    def left_for(self, population: str) -> float:
        """Return the largest epsilon of one more release about a population, rounded down."""
        document = self._document()
        return _left(document, _entries(document), population)

    def to_dict(self) -> JSON:
        """Return everything as plain values."""
        document = self._document()
        entries = _entries(document)
        names = dict.fromkeys([EVERYONE, *document["parts"], *(one.population for one in entries)])
        return {
            "budget": document["budget"],
            "delta": document["delta"],
            "spent": _epsilon(document, _total(document, entries)),
            "left": {name: _left(document, entries, name) for name in names},
            "rule": _rule(document),
            "partitions": document["parts"],
            "entries": [one.to_dict() for one in entries],
        }

    @property
    def _where(self) -> str:
        return self.place.partition(":")[0] if "://" in self.place else self.place

    def _document(self) -> JSON:
        document = self._kept.read()
        if document is None:
            raise StateFileError(
                f"there is no ledger at {self._where}: bandanna ledger start, or Ledger.start."
            )
        return document

    def _refused(self, document: JSON, entries: list[Expense], entry: Expense) -> str:
        left = _left(document, entries, entry.population)
        return (
            f"refused, and nothing was read: epsilon {entry.epsilon:g} about {entry.population} "
            f"would exceed the budget of {document['budget']:g}; at most {at_least(left)} is left."
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return ""


def _entries(document: JSON) -> list[Expense]:
    return [Expense(**one) for one in document["entries"]]


def _cost(document: JSON, epsilon: float) -> Fraction:
    """Return what adds up: epsilon, or rho."""
    exact = Fraction(epsilon)
    return exact if document["delta"] == 0.0 else exact * exact / 2


def _total(document: JSON, entries: Sequence[Expense]) -> Fraction:
    """Return the most that anyone has spent: sums, and of a partition the largest part."""
    by_name: dict[str, Fraction] = {}
    for one in entries:
        cost = _cost(document, one.epsilon)
        by_name[one.population] = by_name.get(one.population, Fraction(0)) + cost
    parts, total = document["parts"], Fraction(0)
    largest: dict[str, Fraction] = {}
    for name, cost in by_name.items():
        if name in parts:
            largest[parts[name]] = max(largest.get(parts[name], Fraction(0)), cost)
        else:
            total += cost
    return sum(largest.values(), total)


def _epsilon(document: JSON, total: Fraction) -> float:
    """Return the epsilon of a total, rounded up."""
    spent = float(total)
    if Fraction(spent) < total:
        spent = math.nextafter(spent, math.inf)
    if document["delta"] == 0.0 or spent == 0.0:
        return spent
    wide = 2.0 * math.sqrt(spent * -math.log(document["delta"]))
    return (spent + wide) * (1.0 + 1e-14)


def _fits(document: JSON, entries: Sequence[Expense]) -> bool:
    budget = Fraction(document["budget"]) * (1 + HARDLY)
    total = _total(document, entries)
    return (total if document["delta"] == 0.0 else Fraction(_epsilon(document, total))) <= budget


def _left(document: JSON, entries: Sequence[Expense], population: str) -> float:
    """Return the largest epsilon that fits, rounded down."""

    def fits(epsilon: float) -> bool:
        return _fits(document, [*entries, Expense("", "", "", "", population, epsilon)])

    low, high = 0.0, 2.0 * float(document["budget"])
    if document["delta"] == 0.0:
        rest = Fraction(document["budget"]) - _total(document, entries)
        if fits(float(rest)) and float(rest) >= 0.0 and population not in document["parts"]:
            return float(rest)
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2.0
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rule(document: JSON) -> str:
    """Say how epsilons are composed."""
    if document["delta"] == 0.0:
        return "epsilons add up, also where they are chosen by earlier answers"
    return (
        f"each epsilon is epsilon^2 / 2 of zero-concentrated privacy; these add up, also where "
        f"they are chosen by earlier answers, and are turned into epsilon at delta "
        f"{document['delta']:g}"
    )
