"""A batch may release a value of each arm: releases have a part."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    """Rebuild the releases with another key."""
    op.drop_index("releases_in_order", "releases")
    op.rename_table("releases", "old_releases")
    op.create_table(
        "releases",
        sa.Column("experiment", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("batch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "part", sa.Integer, primary_key=True, autoincrement=False, server_default=sa.text("0")
        ),
        sa.Column("choice", sa.Integer, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("released_at", sa.Float, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("step", sa.String(32), nullable=False, server_default=""),
    )
    names = "experiment, batch, choice, size, value, released_at, sequence, step"
    op.execute(f"INSERT INTO releases ({names}) SELECT {names} FROM old_releases")  # noqa: S608
    op.drop_table("old_releases")
    op.create_index("releases_in_order", "releases", ["experiment", "sequence"], unique=True)
