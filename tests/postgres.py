"""A PostgreSQL server of our own, for as long as tests run."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.browser import missing

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
PROGRAMS = str(FOLDERS[-1] / "postgres") if FOLDERS else "postgres"

needs_postgres = pytest.mark.skipif(
    missing(PROGRAMS), reason="no PostgreSQL server on this machine"
)


class Postgres:
    """A server in a folder of its own; it waits for the disk where it is ``durable``.

    With ``archive`` it keeps its log of changes in a folder, and can be put back to a moment.
    """

    def __init__(self, folder: Path, *, durable: bool = False, archive: bool = False) -> None:
        self._options = "" if durable else " -c fsync=off -c full_page_writes=off"
        self._bin = Path(shutil.which(PROGRAMS) or PROGRAMS).parent
        self._folder = folder
        self._user: str | None = None
        if os.geteuid() == 0:  # it refuses to run as root
            self._user = "postgres"
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._run(
            "initdb", "--no-sync", "-A", "trust", "-U", "bandanna", "-D", str(folder / "data")
        )
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        if archive:
            self._folder_of_its_own("archive")
            command = f"cp %p {folder}/archive/%f"
            self._set(archive_mode="on", archive_command=command)
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self._folder}"
        options += self._options
        log = str(self._folder / "log")
        self._run(
            "pg_ctl", "-D", str(self._folder / "data"), "-o", options, "-l", log, "-w", "start"
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "-w", "stop")

    def base_backup(self) -> None:
        """Copy all files while they are used, as ``put_back`` begins with."""
        where = str(self._folder / "base")
        self._run("pg_basebackup", *self._host, "-c", "fast", "--no-sync", "-D", where)

    def archive_all(self) -> None:
        """Let everything that was committed until now be in the archive."""
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            ((last,),) = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchall()
        end = time.monotonic() + 60
        while not (self._folder / "archive" / last).exists():
            assert time.monotonic() < end, "nothing is archived"
            time.sleep(0.05)

    def put_back(self, moment: str | None = None) -> None:
        """Put the server back to a moment, or to the end of the archive."""
        self.stop()
        shutil.rmtree(self._folder / "data")
        shutil.copytree(self._folder / "base", self._folder / "data")
        (self._folder / "data" / "recovery.signal").touch()
        until = {} if moment is None else {"recovery_target_time": moment}
        command = f"cp {self._folder}/archive/%f %p"
        self._set(restore_command=command, recovery_target_action="promote", **until)
        self._own(self._folder / "data")
        (self._folder / "data").chmod(0o700)
        self.start()
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            while connection.execute("SELECT pg_is_in_recovery()").fetchone() != (False,):
                time.sleep(0.05)

    def _set(self, **settings: str) -> None:
        """Change settings; they are used from the next start on."""
        with (self._folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _folder_of_its_own(self, name: str) -> None:
        (self._folder / name).mkdir()
        self._own(self._folder / name)

    def _own(self, path: Path) -> None:
        """Give files to the account that the server runs under."""
        if self._user is not None:
            for one in (path, *path.rglob("*")):
                shutil.chown(one, self._user, self._user)

    @property
    def process(self) -> int:
        """The number of its first process."""
        return int((self._folder / "data" / "postmaster.pid").read_text().split()[0])

    def workers(self) -> list[int]:
        """Return the processes that its first one has started."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended
                fields = path.read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) == self.process:
                    found.append(int(path.parent.name))
        return found

    @contextmanager
    def full_disk(self, room: int) -> Iterator[None]:
        """Let it write nothing beyond the first bytes of a file: it ends, and recovers."""
        workers = list(map(str, self.workers()))
        self._limit(f"{room}:", workers)
        yield
        self._limit("unlimited:", workers)

    def _limit(self, size: str, workers: list[str]) -> None:
        each = f"for p; do prlimit --pid $p --fsize={size} || true; done"
        command = ["sh", "-c", each, "sh", *workers]  # as its own user; some have ended
        subprocess.run(command, user=self._user, stderr=subprocess.DEVNULL, check=True)

    def new_database(self) -> str:
        """Make an empty database and return its address."""
        name = f"test_{secrets.token_hex(4)}"
        self._run("createdb", *self._host, name)
        return self._address(name)

    def _address(self, name: str) -> str:
        return f"postgresql://bandanna@127.0.0.1:{self.port}/{name}"

    def copy(self, database: str, name: str) -> None:
        """Copy a database while it is used, as of one moment, as people keep backups of it."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            if self._user is not None:
                shutil.chown(folder, self._user)
            self._run("pg_dump", "-Fc", "-f", f"{folder}/dump", database)
            self._run("createdb", *self._host, name)
            self._run("pg_restore", *self._host, "-d", name, f"{folder}/dump")

    @property
    def _host(self) -> tuple[str, ...]:
        return ("-h", "127.0.0.1", "-p", str(self.port), "-U", "bandanna")

    def files(self) -> Iterator[Path]:
        """Everything the server wrote, its log of changes included."""
        return (path for path in self._folder.rglob("*") if path.is_file())

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            user=self._user,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=60,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"


@contextmanager
def open_postgres(**options: bool) -> Iterator[Postgres]:
    """Start a server, and leave nothing of it behind."""
    with tempfile.TemporaryDirectory(prefix="bandanna-pg-") as folder:
        server = Postgres(Path(folder), **options)
        try:
            yield server
        finally:
            server.stop()
