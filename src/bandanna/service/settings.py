"""How a service is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The settings of ``bandanna serve``.

    Parameters
    ----------
    database
        ``sqlite:///file`` or ``postgresql://user@host/name``.
    secret
        File of the secret that is not in the database.
    signing
        File of the key that signs what devices are told.
    guard
        Where the rollback guard is kept: a file, or ``postgresql://...``. By default a file in the
        user's state folder, apart from the database.
    guarded
        Whether there is a rollback guard.
    accept_restored
        Take a database that was put back from an older copy, and charge it.
    rate
        Requests a second that one key may make, on average; ten times as many at once.
    device_rate
        The same for one address with a key for pages.
    most_waiting
        Decisions and feedback that may wait for the writer; more is answered 503.
    proxies
        Addresses or networks of proxies whose ``X-Forwarded-For`` is believed.
    people_from
        Addresses or networks of proxies that say who signed in.
    roles
        File that says what people may do.
    origins
        Pages of these origins may decide and send feedback.
    """

    database: str
    secret: Path
    signing: Path
    guard: str | Path | None = None
    guarded: bool = True
    accept_restored: bool = False
    rate: float = 10_000.0
    device_rate: float = 10.0
    most_waiting: int = 10_000
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    people_from: tuple[str, ...] = ()
    roles: Path | None = None
    origins: tuple[str, ...] = ()


def settings_beside(database: str, **other: object) -> Settings:
    """Return settings with secret and signing key beside a SQLite file, or in this folder."""
    if "://" not in database:
        database = f"sqlite:///{database}"
    base = database.removeprefix("sqlite:///") if database.startswith("sqlite") else "bandanna"
    paths = {name: Path(f"{base}.{name}") for name in ("secret", "signing")}
    given = {name: value for name, value in other.items() if value is not None}
    return Settings(database, **(paths | given))  # type: ignore[arg-type]
