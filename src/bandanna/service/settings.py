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
    signing
        File of the key that signs what devices are told.
    accept_restored
        Take a database that was put back from an older copy, and charge it.
    most_bytes
        Largest request that is read.
    rate
        Requests a second that one key may make, on average; ten times as many at once.
    device_rate
        The same for one address with a key for pages.
    origins
        Pages of these origins may ask from people's devices.
    """

    database: str
    secret: Path
    fence: Path
    signing: Path
    accept_restored: bool = False
    most_bytes: int = 1_000_000
    rate: float = 10_000.0
    device_rate: float = 10.0
    origins: tuple[str, ...] = ()


def settings_beside(database: str, **other: object) -> Settings:
    """Return settings with secret, key and fence beside a SQLite file, or in this folder."""
    if "://" not in database:
        database = f"sqlite:///{database}"
    base = database.removeprefix("sqlite:///") if database.startswith("sqlite") else "bandanna"
    paths = {name: Path(f"{base}.{name}") for name in ("secret", "fence", "signing")}
    given = {name: value for name, value in other.items() if value is not None}
    return Settings(database, **(paths | given))  # type: ignore[arg-type]
