"""A table for feedback that comes in blocks, where others decide."""

from alembic import op

from bandanna.store.database import BLOCKS

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Make the table."""
    BLOCKS.create(op.get_bind())
