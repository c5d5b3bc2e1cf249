"""What people say of an experiment, and which arm they shipped: nothing here is private."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from bandanna._core.types import JSON, ArmName
from bandanna.store.database import DESCRIPTIONS, EXPERIMENTS, SqlRow


@dataclass(frozen=True)
class Shipped:
    """An arm that all decisions get since an experiment ended."""

    arm: ArmName
    at: float
    by: str
    """The id of the key that did it."""


@dataclass(frozen=True)
class Description:
    """What a team says of an experiment."""

    owner: str = ""
    outcome: str = ""
    """What the feedback is, in the team's words, such as conversion."""
    hypothesis: str = ""
    starts_on: str = ""
    """A day, as ISO 8601 has it, or nothing."""
    ends_on: str = ""
    tags: tuple[str, ...] = ()
    shipped: Shipped | None = None


def description_row(identity: str, said: Description) -> JSON:
    """Return a description as a row of its table."""
    row = {**said.__dict__, "experiment": identity, "tags": json.dumps(said.tags)}
    shipped = row.pop("shipped")
    row |= {"shipped_arm": None, "shipped_at": None, "shipped_by": None}
    if shipped is not None:
        row |= {"shipped_arm": json.dumps(shipped.arm), "shipped_at": shipped.at}
        row |= {"shipped_by": shipped.by}
    return row


def _read(row: SqlRow) -> Description:
    values = dict(row._mapping)
    del values["experiment"]
    arm, at, by = (values.pop(f"shipped_{what}") for what in ("arm", "at", "by"))
    shipped = None if arm is None else Shipped(json.loads(arm), at, by)
    tags = tuple(json.loads(values.pop("tags")))
    return Description(**values, tags=tags, shipped=shipped)


def read_descriptions(connection: Connection, ids: Sequence[str]) -> dict[str, Description]:
    """Return what is said of experiments; those of which nothing is said are left out."""
    query = select(DESCRIPTIONS).where(DESCRIPTIONS.c.experiment.in_(ids))
    return {row.experiment: _read(row) for row in connection.execute(query)}


def write_description(connection: Connection, identity: str, changed: JSON) -> None:
    """Change some of what is said of an experiment."""
    known = read_descriptions(connection, [identity]).get(identity, Description())
    row = description_row(identity, replace(known, **changed))
    connection.execute(delete(DESCRIPTIONS).where(DESCRIPTIONS.c.experiment == identity))
    connection.execute(insert(DESCRIPTIONS).values(row))


def matching(search: str | None, owner: str | None, tag: str | None) -> list[ColumnElement[bool]]:
    """Return the conditions on experiments that a search asks for; letters' case is ignored."""
    said, name = DESCRIPTIONS.c, EXPERIMENTS.c.name
    one = select(said.experiment)
    conditions: list[ColumnElement[bool]] = []
    if search is not None:
        about = one.where(_has(said.owner, search) | _has(said.tags, json.dumps(search)[1:-1]))
        conditions.append(_has(name, search) | EXPERIMENTS.c.id.in_(about))
    if owner is not None:
        mine = one.where(said.owner.ilike(_literal(owner), escape="\\"))
        conditions.append(EXPERIMENTS.c.id.in_(mine))
    if tag is not None:
        conditions.append(EXPERIMENTS.c.id.in_(one.where(_has(said.tags, json.dumps(tag)))))
    return conditions


def shipped_ones() -> ColumnElement[bool]:
    """Return the condition that an arm of an experiment was shipped."""
    said = DESCRIPTIONS.c
    return EXPERIMENTS.c.id.in_(select(said.experiment).where(said.shipped_arm.isnot(None)))


def _has(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    return column.ilike(f"%{_literal(text)}%", escape="\\")


def _literal(text: str) -> str:
    for letter in "\\%_":
        text = text.replace(letter, f"\\{letter}")
    return text
