"""Ids of events belong to an experiment; names are looked up; keys expire; a trail of changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Rebuild the events, and add what is new."""
    owner = sa.Column("owner", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("experiments", owner)
    first = "SELECT min(other.number) FROM experiments AS other WHERE other.id = experiments.id"
    op.execute(f"UPDATE experiments SET owner = ({first})")  # noqa: S608
    op.create_index("experiments_by_name", "experiments", ["name"])
    op.drop_index("events_by_place", "events")
    op.rename_table("events", "old_events")
    op.create_table(
        "events",
        sa.Column("id", sa.String(200), primary_key=True),
        sa.Column("owner", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("experiment", sa.BigInteger, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("arm", sa.Integer, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("chance", sa.Float),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("state", sa.SmallInteger, nullable=False),
    )
    names = "experiment, batch, position, arm, round, chance, made_at, expires_at, state"
    op.execute(
        f"INSERT INTO events (id, owner, {names}) SELECT old_events.id, experiments.owner, {names} "  # noqa: S608
        f"FROM old_events JOIN experiments ON experiments.number = old_events.experiment"
    )
    op.drop_table("old_events")
    op.create_index("events_by_place", "events", ["experiment", "batch", "position"])
    op.add_column("keys", sa.Column("expires_at", sa.Float))
    op.create_table(
        "trail",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("action", sa.String(100), nullable=False),
        sa.Column("about", sa.String(300), nullable=False),
        sa.Column("details", sa.Text, nullable=False),
    )
