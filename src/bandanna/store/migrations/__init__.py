"""Changes of the tables, one file each, applied in order when a database is opened."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from bandanna._core.types import StateFileError


def upgrade(connection: Connection, to: str = "head") -> None:
    """Bring a database to the newest tables, in the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    newest = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if newest is not None and newest not in known:
        raise StateFileError(
            f"this database was written by a newer version of bandanna: its tables have version "
            f"{newest}, this version knows up to {max(known, key=int)}. Install the newer version."
        )
    command.upgrade(config, to)
