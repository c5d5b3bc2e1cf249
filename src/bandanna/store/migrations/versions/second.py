"""Lineage: random steps of starts and releases, which the rollback guard compares."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add steps, the number of resumptions, and the tables of starts and challenges."""
    for table in ("experiments", "releases"):
        step = sa.Column("step", sa.String(32), nullable=False, server_default="")
        op.add_column(table, step)
    resumed = sa.Column("resumed", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("experiments", resumed)
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
