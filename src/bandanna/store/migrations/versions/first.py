"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make everything."""
    op.create_table(
        "facts",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "experiments",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("segment", sa.String(200), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("stopped", sa.Boolean, nullable=False),
        sa.Column("observed", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("id", "segment"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "events",
        sa.Column("id", sa.String(200), primary_key=True),
        *_numbers("experiment", "batch"),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("arm", sa.Integer, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("chance", sa.Float),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("state", sa.SmallInteger, nullable=False),
    )
    op.create_index("events_by_place", "events", ["experiment", "batch", "position"])
    op.create_table(
        "batches",
        *_numbers("experiment", "number", key=True),
        *_numbers("size"),
        sa.Column("choice", sa.Integer, nullable=False),
        sa.Column("importance", sa.Float, nullable=False),
        sa.Column("tally", sa.LargeBinary),
        *_numbers("changed"),
    )
    op.create_table(
        "feedback",
        *_numbers("experiment", "batch", key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("loss", sa.LargeBinary),
        sa.Column("given_up", sa.Boolean, nullable=False),
        sa.Column("ticket", sa.Text),
    )
    op.create_table(
        "releases",
        *_numbers("experiment", "batch", key=True),
        sa.Column("choice", sa.Integer, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("released_at", sa.Float, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
    )
    op.create_index("releases_in_order", "releases", ["experiment", "sequence"], unique=True)
    op.create_table(
        "people",
        *_numbers("experiment", key=True),
        sa.Column("person", sa.String(16), primary_key=True),
        *_numbers("places", "changed"),
    )
    op.create_index("people_by_change", "people", ["experiment", "changed"])
    op.create_table(
        "keys",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("experiment", sa.String(100)),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("revoked_at", sa.Float),
    )


def _numbers(*names: str, key: bool = False) -> list[sa.Column[int]]:
    return [
        sa.Column(name, sa.BigInteger, primary_key=key, autoincrement=False, nullable=False)
        for name in names
    ]
