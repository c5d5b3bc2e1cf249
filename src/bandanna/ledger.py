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
                book = self._book()
                if again := [one for one in book.entries if one.id == id]:
                    return again[0]
                now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                asker = _user() if who is None else str(who)
                mine = id or secrets.token_hex(8)
                entry = Expense(mine, now, asker, str(what), str(population), cost)
                book.check(entry)
                listed = [one.to_dict() for one in (*book.entries, entry)]
                if self._kept.write({**book.document, "entries": listed}, book.document):
                    return entry
        raise StateFileError(f"the ledger at {self._where} changes too fast to be written.")

    def check(self, epsilon: float, *, population: str = EVERYONE) -> None:
        """Refuse what would exceed the budget, and write nothing."""
        self._book().check(_about(str(population), checks.epsilon(epsilon)))

    @property
    def budget(self) -> float:
        """What all releases about one person may cost."""
        return self._book().budget

    @property
    def delta(self) -> float:
        """The delta at which they are composed; 0 where epsilons add up."""
        return self._book().delta

    @property
    def entries(self) -> list[Expense]:
        """What was spent, in order."""
        return self._book().entries

    @property
    def spent(self) -> float:
        """The epsilon that all releases cost whoever they are about, together, rounded up."""
        return self._book().epsilon()

    @property
    def left(self) -> float:
        """The largest epsilon of one more release about everyone, rounded down."""
        return self.left_for(EVERYONE)

    def left_for(self, population: str) -> float:
        """Return the largest epsilon of one more release about a population, rounded down."""
        return self._book().left(population)

    def to_dict(self) -> JSON:
        """Return everything as plain values."""
        book = self._book()
        names = dict.fromkeys([EVERYONE, *book.parts, *(one.population for one in book.entries)])
        return {
            "budget": book.budget,
            "delta": book.delta,
            "spent": book.epsilon(),
            "left": {name: book.left(name) for name in names},
            "rule": book.rule,
            "partitions": book.parts,
            "entries": [one.to_dict() for one in book.entries],
        }

    @property
    def _where(self) -> str:
        return self.place.partition(":")[0] if "://" in self.place else self.place

    def _book(self) -> _Book:
        document = self._kept.read()
        if document is None:
            raise StateFileError(
                f"there is no ledger at {self._where}: bandanna ledger start, or Ledger.start."
            )
        return _Book(document)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return ""


def _about(population: str, epsilon: float) -> Expense:
    """Return an expense that is only tried."""
    return Expense("", "", "", "", population, epsilon)


class _Book:
    """What is written in a ledger, and what follows from it."""

    def __init__(self, document: JSON) -> None:
        self.document = document
        self.budget, self.delta = float(document["budget"]), float(document["delta"])
        self.parts: dict[str, str] = document["parts"]
        self.entries = [Expense(**one) for one in document["entries"]]

    def total(self, *more: Expense) -> Fraction:
        """Return the most that anyone has spent: sums, and of a partition the largest part.

        What adds up is epsilon, or rho.
        """
        by_name: dict[str, Fraction] = {}
        for one in (*self.entries, *more):
            exact = Fraction(one.epsilon)
            cost = exact if self.delta == 0.0 else exact * exact / 2
            by_name[one.population] = by_name.get(one.population, Fraction(0)) + cost
        total, largest = Fraction(0), dict.fromkeys(self.parts.values(), Fraction(0))
        for name, cost in by_name.items():
            if name in self.parts:
                largest[self.parts[name]] = max(largest[self.parts[name]], cost)
            else:
                total += cost
        return sum(largest.values(), total)

    def epsilon(self, *more: Expense) -> float:
        """Return the epsilon of a total, rounded up."""
        total = self.total(*more)
        spent = float(total)
        if Fraction(spent) < total:
            spent = math.nextafter(spent, math.inf)
        if self.delta == 0.0 or spent == 0.0:
            return spent
        wide = 2.0 * math.sqrt(spent * -math.log(self.delta))
        return (spent + wide) * (1.0 + 1e-14)

    def fits(self, *more: Expense) -> bool:
        """Whether the budget allows what is written, and more."""
        spent = self.total(*more) if self.delta == 0.0 else Fraction(self.epsilon(*more))
        return spent <= Fraction(self.budget) * (1 + HARDLY)

    def check(self, entry: Expense) -> None:
        """Refuse what would exceed the budget."""
        if not self.fits(entry):
            raise BudgetError(
                f"refused, and nothing was read: epsilon {entry.epsilon:g} about "
                f"{entry.population} would exceed the budget of {self.budget:g}; at most "
                f"{at_least(self.left(entry.population))} is left."
            )

    def left(self, population: str) -> float:
        """Return the largest epsilon that fits, rounded down."""
        low, high = 0.0, 2.0 * self.budget
        if self.delta == 0.0 and population not in self.parts:
            rest = float(Fraction(self.budget) - self.total())
            if rest >= 0.0 and self.fits(_about(population, rest)):
                return rest
        while high - low > 1e-12 * max(1.0, high):
            middle = (low + high) / 2.0
            fits = self.fits(_about(population, middle))
            low, high = (middle, high) if fits else (low, middle)
        return low

    @property
    def rule(self) -> str:
        """How epsilons are composed."""
        if self.delta == 0.0:
            return "epsilons add up, also where they are chosen by earlier answers"
        return (
            f"each epsilon is epsilon^2 / 2 of zero-concentrated privacy; these add up, also where "
            f"they are chosen by earlier answers, and are turned into epsilon at delta "
            f"{self.delta:g}"
        )
