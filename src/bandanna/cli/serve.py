"""``bandanna serve``, ``bandanna keys`` and ``bandanna db``: the decision service."""

from __future__ import annotations

import gc
import json
import re
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bandanna._core.documents import read_toml
from bandanna._core.extras import need
from bandanna._core.types import InputError
from bandanna.cli.help import command, group

if TYPE_CHECKING:
    from bandanna.service.settings import Settings
    from bandanna.store import SqlStore


def _option(variable: str, text: str, *names: str, **limits: Any) -> object:
    """Return an option that an environment variable has, too."""
    return typer.Option(*names, envvar=f"BANDANNA_{variable}", help=text, **limits)


_further = partial(_option, hidden=True)
"""Return an option that ``--help`` leaves to docs/service.md."""

Database = Annotated[str, _option("DATABASE", "A SQLite file or postgresql://...")]
SecretFile = Annotated[
    Path | None,
    _option("SECRET_FILE", "File with the secret; beside the SQLite file by default."),
]
GuardFile = Annotated[
    Path | None,
    _option(
        "GUARD_FILE",
        "The rollback guard, which notices restored copies of the database. By default in the "
        "user's state folder; best on another volume than the database.",
    ),
]
GuardDatabase = Annotated[
    str | None,
    _further("GUARD_DATABASE", "Keep the rollback guard in another database: postgresql://..."),
]
FILE = "bandanna.db"
PASSWORD = re.compile(r"://([^:/@]+):[^@]*@")
OPEN_ON_THE_COMMAND_LINE = (
    "warning: everyone on this machine can read a password on the command line. Put the address "
    "into BANDANNA_DATABASE or a file (--config), or the password into ~/.pgpass."
)
BY_COMMAND = "command line"
"""Who changed something, in the trail."""


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take options from a file where neither the command line nor the environment has them."""
    if path is None:
        return None
    known = {parameter.name for parameter in context.command.params}
    options = {name.replace("-", "_"): value for name, value in read_toml(path).items()}
    unknown = sorted(set(options) - known)
    if unknown:
        names = ", ".join(sorted(known))
        raise InputError(f"{path} has an unknown option {unknown[0]!r}; there are {names}.")
    context.default_map = options
    return path


NOT_IN_A_FILE = ("config", "show_config", "check")
"""Options of ``bandanna serve`` that are about a single call."""


def config_lines(options: dict[str, object]) -> list[str]:
    """Return options as lines of a file that ``--config`` takes, without passwords."""
    shown = {name: value for name, value in sorted(options.items()) if value is not None}
    return [f"{name} = {_toml(value)}" for name, value in shown.items()]


def _toml(value: object) -> str:
    if isinstance(value, str | Path):
        value = PASSWORD.sub(r"://\1:***@", str(value))
    return json.dumps(value)


@command(
    "bandanna serve --demo",
    "bandanna serve --database postgresql://user@host/bandanna --key-file key.txt",
)
def serve(
    context: typer.Context,
    database: Database = FILE,
    host: Annotated[str, _option("HOST", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, _option("PORT", "Port to listen on.")] = 8000,
    key_file: Annotated[
        Path | None,
        _option("KEY_FILE", "Where the first key is written; beside the SQLite file by default."),
    ] = None,
    secret_file: SecretFile = None,
    guard_file: GuardFile = None,
    guard_database: GuardDatabase = None,
    no_guard: Annotated[
        bool,
        _further(
            "NO_GUARD", "Keep no rollback guard: nothing notices an older copy then.", "--no-guard"
        ),
    ] = False,
    signing_file: Annotated[
        Path | None, _further("SIGNING_FILE", "The key that signs what devices are told.")
    ] = None,
    accept_restored: Annotated[
        bool,
        typer.Option(
            "--accept-restored",
            help="Start from a restored or copied database. Epsilon is charged once more, always.",
        ),
    ] = False,
    rate: Annotated[float, _further("RATE", "Requests a second for each key.")] = 10_000.0,
    device_rate: Annotated[
        float, _further("DEVICE_RATE", "The same for each address with a page's key.")
    ] = 10.0,
    allow_origin: Annotated[
        list[str] | None,
        _option("ALLOW_ORIGIN", "Pages of this origin may decide and send feedback; repeatable."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        _further(
            "TRUSTED_PROXY",
            "Address or network of a proxy whose X-Forwarded-For is believed; repeatable.",
        ),
    ] = None,
    people_from: Annotated[
        list[str] | None,
        _further(
            "PEOPLE_FROM",
            "Address or network of a proxy that says who signed in; repeatable. Off by default.",
        ),
    ] = None,
    roles: Annotated[
        Path | None, _further("ROLES", "TOML file: what people may do, by project.")
    ] = None,
    most_connections: Annotated[
        int, _further("MOST_CONNECTIONS", "Connections; more are answered 503.", min=1)
    ] = 2_000,
    most_waiting: Annotated[
        int,
        _further(
            "MOST_WAITING", "Decisions and feedback that may wait; more are answered 503.", min=1
        ),
    ] = 10_000,
    log_level: Annotated[str, _further("LOG_LEVEL", "debug, info, warning or error.")] = "info",
    check: Annotated[
        bool, typer.Option("--check", help="Check the configuration, then exit.")
    ] = False,
    config: Annotated[
        Path | None,
        _option(
            "CONFIG",
            "A TOML file with these options; the environment and the command line win.",
            is_eager=True,
            callback=_read_config,
        ),
    ] = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print the settings in effect, then exit.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Make an experiment and play people against it.")
    ] = False,
) -> None:
    """Start the decision service: an HTTP API and a page at /.

    Further settings, such as rates and proxies, are in docs/service.md; --show-config prints all.
    """
    if log_level not in ("debug", "info", "warning", "error"):
        raise InputError(f"--log-level is debug, info, warning or error; got {log_level!r}.")
    for option, value in (("--rate", rate), ("--device-rate", device_rate)):
        if value <= 0:
            raise InputError(f"{option} must be above 0; got {value!r}.")
    given = context.get_parameter_source("database")
    if given is not None and given.name == "COMMANDLINE" and PASSWORD.search(database):
        typer.echo(OPEN_ON_THE_COMMAND_LINE, err=True)
    settings = _settings(
        database,
        secret=secret_file,
        guard=_guard(guard_file, guard_database),
        guarded=not no_guard,
        signing=signing_file,
        accept_restored=accept_restored,
        rate=rate,
        device_rate=device_rate,
        most_waiting=most_waiting,
        proxies=tuple(trusted_proxy or ()) or None,
        people_from=tuple(people_from or ()),
        roles=roles,
        origins=tuple(allow_origin or ()),
    )
    if show_config:
        options = {k: value for k, value in context.params.items() if k not in NOT_IN_A_FILE}
        options |= {"database": settings.database, "trusted_proxy": settings.proxies}
        options |= {"secret_file": settings.secret, "signing_file": settings.signing}
        for line in config_lines(options):
            typer.echo(line)
        return
    gc.disable()  # what is loaded now stays; ``running`` looks for garbage from then on
    from bandanna.service import server
    from bandanna.service.core import Core

    if check:
        for line in server.check(settings, host):
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
    key_file = key_file or settings.secret.with_suffix(".first-key")
    if server.write_first_key(core, key_file):
        typer.echo(f"The first key, which opens everything, is in {key_file}.")
    typer.echo(f"What devices are told is signed by the key\n\n  {core.signer.public}\n")
    typer.echo(f"http://{host}:{port}")
    server.serve(
        core, host, port, log_level=log_level, demo=demo, most_connections=most_connections
    )


keys = group("keys", "Make, list and revoke keys to the service.")


@command("bandanna keys new web --scope decide", name="new", of=keys)
def new_key(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[
        list[str],
        typer.Option(help="decide, reward, read or manage; repeatable. Or device, for pages."),
    ],
    experiment: Annotated[
        str | None, typer.Option(help="Limit the key to this experiment.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="How long the key is valid: 12h, 90d, 2w.")
    ] = None,
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Make a key and print it; it is not shown again."""
    settings = _settings(database, secret=secret_file)
    from bandanna.service.keys import make_key
    from bandanna.store import open_store
    from bandanna.warehouse.source import duration

    store = open_store(settings.database, settings.secret)
    until = None if expires is None else time.time() + duration(expires).total_seconds()
    row, text = make_key(store, store.secret, name, tuple(scope), experiment, until)
    store.note(BY_COMMAND, "key made", row.id, {"name": name, "scopes": scope}, time.time())
    typer.echo(text)


@command("bandanna keys list", name="list", of=keys)
def list_keys(database: Database = FILE, secret_file: SecretFile = None) -> None:
    """List keys without their secrets."""
    for key in _open(database, secret_file).all_keys():
        over = key.expires_at is not None and key.expires_at <= time.time()
        state = "revoked" if key.revoked_at else "expired" if over else "good"
        where = key.experiment or "everywhere"
        typer.echo(f"{key.id}  {state:8}{' '.join(key.scopes):20}  {where}  {key.name}")


@command("bandanna keys revoke key_1a2b", name="revoke", of=keys)
def revoke_key(
    key: Annotated[str, typer.Argument(help="The key's id, as the list shows it.")],
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Revoke a key; it stops working within two seconds."""
    store = _open(database, secret_file)
    if not store.revoke_key(key, time.time()):
        raise InputError(f"there is no key {key!r} to revoke.")
    store.note(BY_COMMAND, "key revoked", key, {}, time.time())
    typer.echo(f"{key} opens nothing any more.")


db = group("db", "Back up and inspect the service's database.")


@command("bandanna db backup copy.db", of=db)
def backup(
    path: Annotated[Path, typer.Argument(help="Where the copy goes.")],
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Copy a SQLite database while it is in use.

    Keep the secret apart from the copy.
    """
    _open(database, secret_file).backup(path)
    typer.echo(f"{path} is a copy; starting from it is charged: see --accept-restored.")


@command("bandanna db charge --experiment exp_1a2b", of=db)
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
    """Charge epsilon once more for a copy that was run elsewhere."""
    settings = _settings(database, secret=secret_file, guard=_guard(guard_file, guard_database))
    from bandanna.service.core import open_guard

    store = _open(database, secret_file)
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
        store.note(BY_COMMAND, "charged for a copy", name, {}, time.time())
        typer.echo(f"charged: {name}; its guarantee says so.")


@command("bandanna db trail --after 100", of=db)
def trail(
    after: Annotated[int, typer.Option(help="Entries after this number.")] = 0,
    database: Database = FILE,
    secret_file: SecretFile = None,
) -> None:
    """Print who made, changed, stopped and exported what, as JSON lines."""
    store = _open(database, secret_file)
    while rows := store.trail(after):
        for row in rows:
            typer.echo(json.dumps(row._asdict()))
        after = rows[-1].number


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
    from bandanna.store import is_used, open_store

    if not is_used(settings.database):
        raise InputError(f"there is no database {database} that a service has used.")
    return open_store(settings.database, settings.secret)
