"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make everything."""
    _experiments()
    _rounds()
    _access()
    _lineage()


def _numbers(*names: str, key: bool = False) -> list[sa.Column[int]]:
    return [
        sa.Column(name, sa.BigInteger, primary_key=key, autoincrement=False, nullable=False)
        for name in names
    ]


def _small_key(name: str, server_default: sa.TextClause | None = None) -> sa.Column[int]:
    return sa.Column(
        name, sa.Integer, primary_key=True, autoincrement=False, server_default=server_default
    )


def _index_some(name: str, columns: list[str], condition: str) -> None:
    """Index some events alone."""
    some = sa.text(condition)
    op.create_index(name, "events", columns, sqlite_where=some, postgresql_where=some)


def _experiments() -> None:
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
        *_numbers("version"),
        sa.Column("stopped", sa.Boolean, nullable=False),
        *_numbers("observed"),
        sa.Column("step", sa.String(32), nullable=False, server_default=""),
        sa.Column("resumed", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("owner", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("counters", sa.Text, nullable=False, server_default=""),
        sa.UniqueConstraint("id", "segment"),
        sqlite_autoincrement=True,
    )
    op.create_index("experiments_by_name", "experiments", ["name"])
    texts = ("owner", "outcome", "hypothesis", "tags")
    op.create_table(
        "descriptions",
        sa.Column("experiment", sa.String(100), primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in texts),
        sa.Column("starts_on", sa.String(10), nullable=False),
        sa.Column("ends_on", sa.String(10), nullable=False),
        sa.Column("shipped_arm", sa.Text),
        sa.Column("shipped_at", sa.Float),
        sa.Column("shipped_by", sa.String(100)),
    )


def _rounds() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.String(200), primary_key=True),
        *_numbers("owner", key=True),
        *_numbers("experiment", "batch"),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("arm", sa.Integer, nullable=False),
        *_numbers("round"),
        sa.Column("chance", sa.Float),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("visitor", sa.String(32)),
    )
    op.create_index("events_by_place", "events", ["experiment", "batch", "position"])
    _index_some("events_that_wait", ["experiment", "expires_at", "round"], "state IN (0, 3)")
    _index_some("events_of_visitors", ["owner", "visitor", "round"], "visitor IS NOT NULL")
    _index_some("events_never_shown", ["experiment", "batch"], "state = 2")
    op.create_table(
        "batches",
        *_numbers("experiment", "number", key=True),
        *_numbers("size"),
        sa.Column("choice", sa.Integer, nullable=False),
        sa.Column("importance", sa.Float, nullable=False),
        sa.Column("tally", sa.LargeBinary),
    )
    op.create_table(
        "feedback",
        *_numbers("experiment", "batch", key=True),
        _small_key("position"),
        sa.Column("loss", sa.LargeBinary),
        sa.Column("given_up", sa.Boolean, nullable=False),
        sa.Column("ticket", sa.Text),
    )
    op.create_table(
        "releases",
        *_numbers("experiment", "batch", key=True),
        _small_key("part", server_default=sa.text("0")),
        sa.Column("choice", sa.Integer, nullable=False),
        *_numbers("size"),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("released_at", sa.Float, nullable=False),
        *_numbers("sequence"),
        sa.Column("step", sa.String(32), nullable=False, server_default=""),
    )
    op.create_index("releases_in_order", "releases", ["experiment", "sequence"], unique=True)
    op.create_table(
        "people",
        *_numbers("experiment", key=True),
        sa.Column("person", sa.String(16), primary_key=True),
        *_numbers("places"),
    )


def _access() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("experiment", sa.String(100)),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("revoked_at", sa.Float),
        sa.Column("expires_at", sa.Float),
    )
    op.create_table(
        "trail",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("action", sa.String(100), nullable=False),
        sa.Column("about", sa.String(300), nullable=False),
        sa.Column("details", sa.Text, nullable=False),
    )
    op.create_index("trail_by_about", "trail", ["about", "number"])


def _lineage() -> None:
    op.create_table(
        "starts",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("step", sa.String(32), nullable=False, unique=True),
        sa.Column("guard", sa.String(32), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("confirmed", sa.Boolean, nullable=False),
    )
    op.create_table(
        "challenges",
        sa.Column("nonce", sa.String(32), primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("answered_by", sa.String(32)),
    )
