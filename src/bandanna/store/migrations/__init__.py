"""Changes of the tables, one file each, applied in order when a database is opened.

A new database gets the tables of ``database.py``, and the newest version's name. A change that only
adds (a table, an index, a column that may be empty or has a default) leaves the
tables usable by processes of earlier versions: those that run go on, and those that start go on
too. So two processes are upgraded one after the other. A change that does more is named in
``BREAKS``, and a process that does not know it refuses to start.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect

from bandanna._core.types import StateFileError
from bandanna.store.database import FACTS, metadata

FOLDER = Path(__file__).parent
NEWEST = "1"
"""The version of the tables as they are now."""

BREAKS = ("1",)
"""Versions of the tables that earlier processes cannot use, in order."""

LEAST = "least tables"
"""Among the facts: the version of the tables that a process has to know at least."""


def _version(connection: Connection) -> str | None:
    """Return the version of the tables, if there are any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def upgrade(connection: Connection) -> None:
    """Bring a database to the newest tables, in the connection's transaction."""
    version = _version(connection)
    if version == NEWEST:
        return
    from alembic import command  # takes a while to load, and few starts need it
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    least = FACTS.c.name == LEAST
    if version is None:
        metadata.create_all(connection)
        command.stamp(config, "head")
    elif version in known:
        command.upgrade(config, "head")
    elif connection.scalar(FACTS.select().with_only_columns(FACTS.c.value).where(least)) in known:
        return  # what a newer version added is not looked at
    else:
        raise StateFileError(
            f"this database was written by a newer version of bandanna: its tables have version "
            f"{version}, this version knows up to {max(known, key=int)}. Install the newer version."
        )
    connection.execute(FACTS.delete().where(least))
    connection.execute(FACTS.insert().values(name=LEAST, value=BREAKS[-1]))
