"""Counters, which change with every round, apart from what was learned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Add the counters; where they are empty, those in the head are meant."""
    counters = sa.Column("counters", sa.Text, nullable=False, server_default="")
    op.add_column("experiments", counters)
