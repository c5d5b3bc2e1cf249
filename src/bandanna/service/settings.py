"""How a service is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """What ``bandanna serve`` is told.

    Parameters
    ----------
    database
        ``sqlite:///file`` or ``postgresql://user@host/name``.
    secret
        File of the secret that is not in the database.
    fence
        File that remembers how far the database has come.
    accept_restored
        Take a database that was put back from an older copy, and charge it.
    most_bytes
        Largest request that is read.
    rate
        Requests a second that one key may make, on average; ten times as many at once.
    """

    database: str
    secret: Path
    fence: Path
    accept_restored: bool = False
    most_bytes: int = 1_000_000
    rate: float = 10_000.0


def settings_beside(database: str, **other: object) -> Settings:
    """Return settings with secret and fence beside a SQLite file, or in this folder."""
    if "://" not in database:
        database = f"sqlite:///{database}"
    base = database.removeprefix("sqlite:///") if database.startswith("sqlite") else "bandanna"
    paths = {"secret": Path(f"{base}.secret"), "fence": Path(f"{base}.fence")}
    given = {name: value for name, value in other.items() if value is not None}
    return Settings(database, **(paths | given))  # type: ignore[arg-type]
