"""Contexts in studies: a table of people as an environment, and policies that decide by context.

Algorithms without contexts play what the people of the table lose, one after the other, in an order
that is drawn once. Contextual policies draw people themselves, anew in every run. For both, regret
is against the best single arm, so a policy to which contexts are of use goes below zero.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bandanna._core.grid import UNITS
from bandanna._core.types import JSON, Guarantee, InputError, no_guarantee
from bandanna.contextual.policy import PrivateContextual
from bandanna.contextual.simulation import ContextTable
from bandanna.environments.frames import read_columns
from bandanna.environments.tables import LossTable
from bandanna.privacy.epochs import Protects

if TYPE_CHECKING:
    from bandanna.studies.cell import Cell

CONTEXTUAL: dict[str, Protects] = {
    "contextual": "feedback",
    "contextual-both": "context and feedback",
}
"""Private algorithms that decide by context, and what they protect."""
WITHOUT_PRIVACY = "contextual-no-privacy"
"""The same without noise."""

OPTIONS = ("features", "label", "outcomes")
DIGITS = {"digits": 20, "digits-pixels": None}
DELTA = 1e-6
"""Delta of contextual policies where the grid has none."""
ROUNDS = 100_000
ROUND_SECONDS = 2e-6


@dataclass(frozen=True, eq=False, repr=False)
class ContextData:
    """A table of people with their features and a loss for every arm."""

    name: str
    table: ContextTable
    arms: tuple[str, ...]
    content: str

    def environment(self, rounds: int | None = None) -> LossTable:
        """Return what people lose who are drawn from the table, always in the same order."""
        count = ROUNDS if rounds is None else rounds
        people = np.random.default_rng(0).integers(0, len(self.table.losses), count)
        return LossTable(self.table.losses[people] / UNITS, (0.0, 1.0), self.arms)


def refuse_options(what: str, given: JSON, known: tuple[str, ...]) -> None:
    """Refuse what a file says of an environment and means nothing there."""
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(f"{what} has no option {', '.join(unknown)}; it has {', '.join(known)}.")


def read_context(value: JSON, folder: Path) -> ContextData:
    """Read ``{context = "people.csv", features = {age = [18, 90]}, label = "best"}``.

    ``label`` is the column with each row's best arm, ``outcomes`` lists a column for each arm with
    its reward from 0 to 1. ``digits`` and ``digits-pixels`` come with scikit-learn.
    """
    name = value.pop("context")
    refuse_options(f"context {name}", value, OPTIONS)
    if name in DIGITS:
        if value:
            raise InputError(f"{name} has its features and labels; leave out others.")
        from bandanna.contextual.simulation import digits_table  # loaded when first used

        table, arms = digits_table(DIGITS[name]), tuple(map(str, range(10)))
    else:
        table, arms = _read_table(folder / name, value)
    parts = np.ascontiguousarray(table.phi).tobytes(), table.losses.tobytes()
    content = hashlib.sha256(b"".join(parts)).hexdigest()
    return ContextData(Path(name).name, table, arms, content)


def _read_table(path: Path, value: JSON) -> tuple[ContextTable, tuple[str, ...]]:
    label, outcomes, features = (value.get(name) for name in ("label", "outcomes", "features"))
    if not isinstance(features, dict) or not features:
        raise InputError(
            f"context {path.name} needs features, which are declared and public: "
            f'features = {{age = [18, 90], plan = ["basic", "gold"]}}.'
        )
    if (label is None) == (outcomes is None):
        raise InputError(
            f"context {path.name} needs label, the column with each row's best arm, or outcomes, a "
            f"list of columns with the reward of each arm."
        )
    declared = {name: _declared(one) for name, one in features.items()}
    if label is not None:
        labels = read_columns(path, [label])[label]
        table = ContextTable.from_labels(path, declared, labels)  # type: ignore[arg-type]
        return table, tuple(map(str, np.unique(np.asarray(labels))))
    names = [str(one) for one in outcomes or []]
    columns = read_columns(path, names)
    rewards = np.stack([columns[one].astype(np.float64) for one in names], axis=1)
    return ContextTable.from_rewards(path, declared, rewards), tuple(names)


def _declared(feature: object) -> object:
    """Return a feature as ``PrivateContextual`` takes it: two numbers are a range."""
    if not isinstance(feature, list):
        raise InputError(f"a feature is a list: a range or categories; got {feature!r}.")
    range_ = len(feature) == 2 and all(isinstance(one, int | float) for one in feature)
    return tuple(feature) if range_ else feature


def table_of(cell: Cell) -> ContextTable:
    """Return the people of a cell's environment; refuses one without contexts."""
    data: object = cell.environment.data
    if not isinstance(data, ContextData):
        raise InputError(
            f"{cell.algorithm} decides by context, which {cell.environment.label} has not; use an "
            f"environment {{context = ...}}."
        )
    return data.table


def promise_of(cell: Cell) -> Guarantee:
    """Return what the policy of a cell that decides by context promises, or refuse the cell."""
    table, size = table_of(cell), (cell.epsilon, cell.delta or DELTA, cell.rounds)
    if cell.algorithm == WITHOUT_PRIVACY:
        return no_guarantee("none", "sums are used without noise")
    kind = CONTEXTUAL[cell.algorithm]
    return PrivateContextual(table.arms, table.encoder, *size, kind).guarantee
