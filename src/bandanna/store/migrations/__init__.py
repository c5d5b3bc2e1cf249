"""Changes of the tables, one file each, applied in order when a database is opened.

A change that only adds (a table, an index, a column that may be empty or has a default) leaves the
tables usable by processes of earlier versions: those that run go on, and those that start go on
too. So two processes are upgraded one after the other. A change that does more is named in
``BREAKS``, and a process that does not know it refuses to start.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect

from bandanna._core.types import StateFileError

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


def upgrade(connection: Connection, to: str = "head") -> None:
    """Bring a database to the newest tables, in the connection's transaction."""
    version = _version(connection)
    if to == "head" and version == NEWEST:
        return
    from alembic import command  # takes a while to load, and few starts need it
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        if _least(connection) in known:
            return  # what a newer version added is not looked at
        raise StateFileError(
            f"this database was written by a newer version of bandanna: its tables have version "
            f"{version}, this version knows up to {max(known, key=int)}. Install the newer version."
        )
    command.upgrade(config, to)
    if to == "head":
        _write_least(connection)


def _least(connection: Connection) -> str | None:
    from bandanna.store.database import FACTS

    here = FACTS.select().where(FACTS.c.name == LEAST)
    found = connection.execute(here).one_or_none()
    return None if found is None else str(found.value)


def _write_least(connection: Connection) -> None:
    from bandanna.store.database import FACTS

    connection.execute(FACTS.delete().where(FACTS.c.name == LEAST))
    connection.execute(FACTS.insert().values(name=LEAST, value=BREAKS[-1]))
