"""Changes of the tables, one file each, applied in order when a database is opened."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect

from bandanna._core.types import StateFileError

NEWEST = "6"
"""The version of the tables as they are now."""


def _version(connection: Connection) -> str | None:
    """Return the version of the tables, if there are any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def upgrade(connection: Connection, to: str = "head") -> None:
    """Bring a database to the newest tables, in the connection's transaction."""
    if to == "head" and _version(connection) == NEWEST:
        return
    from alembic import command  # takes a while to load, and few starts need it
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

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
