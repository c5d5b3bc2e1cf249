"""Alembic runs this: it works on the connection it is handed."""

from __future__ import annotations

from alembic import context

from bandanna.store.database import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
