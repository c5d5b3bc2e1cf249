"""``bandanna serve``, ``bandanna keys`` and ``bandanna db``: the decision service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandanna._core.extras import need
from bandanna._core.types import InputError

if TYPE_CHECKING:
    from bandanna.service.settings import Settings
    from bandanna.store import SqlStore

Database = Annotated[
    str, typer.Option(envvar="BANDANNA_DATABASE", help="A SQLite file or postgresql://...")
]
SecretFile = Annotated[
    Path | None, typer.Option(help="The secret; beside the SQLite file by default.")
]
GuardFile = Annotated[
    Path | None,
    typer.Option(
        "--guard-file",
        help="The rollback guard, which notices restored copies of the database. By default in "
        "the user's state folder; best on another volume than the database.",
    ),
]
GuardDatabase = Annotated[
    str | None,
    typer.Option(help="Keep the rollback guard in another database: postgresql://..."),
]
FILE = "bandanna.db"


def serve(
    database: Database = FILE,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    key_file: Annotated[
        Path | None, typer.Option(help="Also write the first key to this file.")
    ] = None,
    secret_file: SecretFile = None,
    guard_file: GuardFile = None,
    fence_file: Annotated[Path | None, typer.Option("--fence-file", hidden=True)] = None,
    guard_database: GuardDatabase = None,
    no_guard: Annotated[
        bool,
        typer.Option(
            "--no-guard", help="Keep no rollback guard: nothing notices an older copy then."
        ),
    ] = False,
    signing_file: Annotated[
        Path | None, typer.Option(help="The key that signs what devices are told.")
    ] = None,
    accept_restored: Annotated[
        bool,
        typer.Option(
            "--accept-restored",
            help="Start from a restored or copied database. Epsilon is charged once more, always.",
        ),
    ] = False,
    rate: Annotated[float, typer.Option(help="Requests a second for each key.")] = 10_000.0,
    device_rate: Annotated[
        float, typer.Option(help="The same for each address with a page's key.")
    ] = 10.0,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Pages of this origin may ask from people's devices; repeatable."),
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    check: Annotated[bool, typer.Option("--check", help="Look at everything, then end.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Make an experiment and play people against it.")
    ] = False,
) -> None:
    """Answer decisions over HTTP, with a page at /."""
    if log_level not in ("debug", "info", "warning", "error"):
        raise InputError(f"--log-level is debug, info, warning or error; got {log_level!r}.")
    for option, value in (("--rate", rate), ("--device-rate", device_rate)):
        if value <= 0:
            raise InputError(f"{option} must be above 0; got {value!r}.")
    settings = _settings(
        database,
        secret=secret_file,
        guard=_guard(guard_file or fence_file, guard_database),
        guarded=not no_guard,
        signing=signing_file,
        accept_restored=accept_restored,
        rate=rate,
        device_rate=device_rate,
        origins=tuple(allow_origin or ()),
    )
    from bandanna.service import running
    from bandanna.service.core import Core

    if check:
        for line in running.check(settings):
            typer.echo(line)
        return
    core = Core(settings)
    for name in core.charged:
        typer.echo(f"charged: {name} was resumed from an older copy; its guarantee says so.")
    if core.charged:
        typer.echo(
            "Keys that were revoked after the copy was made may be good again, where the rollback "
            "guard did not know of it: see bandanna keys list."
        )
    text = running.first_key(core, key_file)
    if text is not None:
        typer.echo(f"The first key, which opens everything and is shown once:\n\n  {text}\n")
    typer.echo(f"What devices are told is signed by the key\n\n  {core.signer.public}\n")
    typer.echo(f"http://{host}:{port}")
    running.serve(core, host, port, log_level=log_level, demo=demo)


keys = typer.Typer(help="Keys to the decision service.", no_args_is_help=True)


@keys.command("new")
def new_key(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[
        list[str],
        typer.Option(help="decide, reward, read or manage; repeatable. Or device, for pages."),
    ],
    experiment: Annotated[
        str | None, typer.Option(help="The only experiment that it opens.")
    ] = None,
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Make a key and show it, once."""
    settings = _settings(database, secret=secret_file)
    from bandanna.service.keys import make_key
    from bandanna.store import SqlStore, read_secret

    secret = read_secret(settings.secret)
    store = SqlStore(settings.database, secret)
    _, text = make_key(store, secret, name, tuple(scope), experiment)
    typer.echo(text)


@keys.command("list")
def list_keys(database: Database = FILE, secret_file: SecretFile = None) -> None:
    """List keys, without what makes them secret."""
    for key in _open(database, secret_file).all_keys():
        state = "revoked" if key.revoked_at else "good"
        where = key.experiment or "everywhere"
        typer.echo(f"{key.id}  {state:8}{' '.join(key.scopes):20}  {where}  {key.name}")


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="The key's id, as the list shows it.")],
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Make a key open nothing, within two seconds."""
    if not _open(database, secret_file).revoke_key(key, time.time()):
        raise InputError(f"there is no key {key!r} to revoke.")
    typer.echo(f"{key} opens nothing any more.")


db = typer.Typer(help="The decision service's database.", no_args_is_help=True)


@db.command()
def backup(
    path: Annotated[Path, typer.Argument(help="Where the copy goes.")],
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Copy a SQLite database, whole, while it is used; keep the secret apart from the copy."""
    _open(database, secret_file).backup(path)
    typer.echo(f"{path} is a copy; starting from it is charged: see --accept-restored.")


@db.command()
def charge(
    experiment: Annotated[
        list[str] | None,
        typer.Option(help="Charge this experiment; repeatable. All that may release, if left out."),
    ] = None,
    database: Database = FILE,
    secret_file: SecretFile = None,
    guard_file: GuardFile = None,
    guard_database: GuardDatabase = None,
) -> None:
    """Count a copy of the database that was run elsewhere: epsilon is charged once more."""
    settings = _settings(database, secret=secret_file, guard=_guard(guard_file, guard_database))
    from bandanna.service.core import open_guard
    from bandanna.store import SqlStore, read_secret

    store = SqlStore(settings.database, read_secret(settings.secret))
    guard = open_guard(settings, store)
    assert guard is not None
    listed = store.listed()
    unknown = set(experiment or ()) - {one.id for one in listed}
    if unknown:
        raise InputError(f"there is no experiment {min(unknown)!r}.")
    chosen = [
        one
        for one in listed
        if (one.id in experiment if experiment else one.open or not one.stopped)
    ]
    guard.charge([one.number for one in chosen])
    for name in dict.fromkeys(one.id for one in chosen):
        typer.echo(f"charged: {name}; its guarantee says so.")


def _guard(file: Path | None, database: str | None) -> Path | str | None:
    if file is not None and database is not None:
        raise InputError("give --guard-file or --guard-database, not both.")
    return file or database


def _settings(database: str, **given: object) -> Settings:
    need("service", "the decision service")
    from bandanna.service.settings import settings_beside

    return settings_beside(database, **given)


def _open(database: str, secret_file: Path | None) -> SqlStore:
    settings = _settings(database, secret=secret_file)
    from bandanna.store import SqlStore, read_secret

    return SqlStore(settings.database, read_secret(settings.secret))
