"""The first tables: those of ``database.py``, until a second version changes them."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Change nothing: a new database has them."""
