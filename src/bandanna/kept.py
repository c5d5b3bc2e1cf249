"""A document that is kept: whole or not at all, and changed by one at a time.

What is to be published is written down before anyone sees it. A run that dies before that has
published nothing; a run that comes later, or second, finds what is written and goes on from there.
A document is a file, or a row of a database. Attachments, such as lists of people, are written with
the document that names them, and never change.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bandanna._core.documents import errors_as, read_sealed, sealed, to_text, write_whole
from bandanna._core.extras import need
from bandanna._core.types import JSON, StateFileError
from bandanna.policy.files import locked

if TYPE_CHECKING:
    from sqlalchemy import Engine

VERSION = 1


class InFile:
    """A document in a file, with attachments in a folder beside it."""

    def __init__(self, path: Path, kind: str) -> None:
        self._path, self._kind = path, kind

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it, so that processes on this machine change it one after the other.

        The system takes the lock back from a process that dies.
        """
        with errors_as(f"cannot lock {self._path}", StateFileError):
            lock = locked(self._path.with_name(f"{self._path.name}.lock"))
        with lock:
            yield

    def read(self) -> JSON | None:
        """Return the document; None if there is none yet."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateFileError(f"cannot read {self._path}: {error.strerror}.") from None
        return read_sealed(content, str(self._path), self._kind, _check_version)

    def write(self, document: JSON, before: JSON | None, more: Sequence[bytes] = ()) -> bool:
        """Write the next one, with further attachments; False if another was faster.

        It is written whole; attachments first, which nothing names until then.
        """
        there = self.read()
        if (there and there["checksum"]) != (before and before["checksum"]):
            return False
        with errors_as(f"cannot write {self._path}", StateFileError):
            names = []
            for one in more:
                self._folder.mkdir(exist_ok=True, mode=0o700)
                names.append(secrets.token_hex(16))
                write_whole(self._folder / names[-1], one, private=True)
            text = to_text(_whole(document, self._kind, names))
            write_whole(self._path, text, private=True)
        return True

    def attachments(self, document: JSON) -> Sequence[bytes]:
        """Return what the document names."""
        with errors_as(f"what belongs to {self._path} is missing", StateFileError):
            return [(self._folder / name).read_bytes() for name in document["attached"]]

    @property
    def _folder(self) -> Path:
        return self._path.with_name(f"{self._path.name}.d")


class InDatabase:
    """A document in a row, with attachments in rows of another table.

    Nobody is kept waiting: of two who write at once one is first, and the other is told.
    """

    def __init__(self, address: str, kind: str, name: str) -> None:
        need("service", "keeping a document in a database")
        self._key = {"kind": kind, "name": name}
        self._where = f"{name} in the database ({address.partition(':')[0]})"
        self._engine = _engine(address)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold nothing: writing compares."""
        yield

    def read(self) -> JSON | None:
        """Return the document, if there is one."""
        from sqlalchemy import text

        with _told(self._where), self._engine.connect() as base:
            query = "SELECT document FROM bandanna_kept WHERE kind = :kind AND name = :name"
            kept = base.execute(text(query), self._key).scalar_one_or_none()
        if kept is None:
            return None
        return read_sealed(kept, self._where, self._key["kind"], _check_version)

    def write(self, document: JSON, before: JSON | None, more: Sequence[bytes] = ()) -> bool:
        """Write it and its attachments in one transaction."""
        from sqlalchemy import text
        from sqlalchemy.exc import IntegrityError

        names = [secrets.token_hex(16) for _ in more]
        whole = _whole(document, self._key["kind"], names)
        values = {**self._key, "document": to_text(whole), "checksum": whole["checksum"]}
        try:
            with _told(self._where), self._engine.begin() as base:
                if before is None:
                    columns = "kind, name, document, checksum"
                    taken = ":kind, :name, :document, :checksum"
                    base.execute(
                        text(f"INSERT INTO bandanna_kept ({columns}) VALUES ({taken})"),  # noqa: S608
                        values,
                    )
                else:
                    query = (
                        "UPDATE bandanna_kept SET document = :document, checksum = :checksum "
                        "WHERE kind = :kind AND name = :name AND checksum = :before"
                    )
                    done = base.execute(text(query), {**values, "before": before["checksum"]})
                    if done.rowcount != 1:
                        return False
                query = "INSERT INTO bandanna_attached (id, content) VALUES (:id, :content)"
                for name, one in zip(names, more, strict=True):
                    base.execute(text(query), {"id": name, "content": one})
        except IntegrityError:
            return False
        return True

    def attachments(self, document: JSON) -> Sequence[bytes]:
        """Return what the document names."""
        from sqlalchemy import text

        query = text("SELECT content FROM bandanna_attached WHERE id = :id")
        with _told(self._where), self._engine.connect() as base:
            texts = [base.execute(query, {"id": one}).scalar() for one in document["attached"]]
        if None in texts:
            raise StateFileError(f"what belongs to {self._where} is missing.")
        return [bytes(one) for one in texts]  # type: ignore[arg-type]


Kept = InFile | InDatabase
"""Where a document is kept."""


def kept(place: str | Path, kind: str, name: str = "") -> Kept:
    """Return where a document of a kind is kept: a file, or a database by its address."""
    if "://" in str(place):
        return InDatabase(str(place), kind, name)
    return InFile(Path(place), kind)


def _engine(address: str) -> Engine:
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import ArgumentError
    from sqlalchemy.pool import NullPool

    scheme, _, rest = address.partition("://")
    if scheme in ("postgres", "postgresql"):
        address = f"postgresql+psycopg://{rest}"
    try:
        engine = create_engine(address, poolclass=NullPool)
    except ArgumentError:
        raise StateFileError(f"{scheme}:// is no address of a database.") from None
    binary = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
    with _told(f"the database ({scheme})"), engine.begin() as base:
        base.execute(
            text(
                "CREATE TABLE IF NOT EXISTS bandanna_kept (kind VARCHAR(50) NOT NULL, name "
                "VARCHAR(200) NOT NULL, document TEXT NOT NULL, checksum VARCHAR(64) NOT NULL, "
                "PRIMARY KEY (kind, name))"
            )
        )
        base.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS bandanna_attached (id VARCHAR(32) PRIMARY KEY, "
                f"content {binary} NOT NULL)"
            )
        )
    return engine


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Say that a database does not answer, without its address."""
    from sqlalchemy.exc import IntegrityError, SQLAlchemyError

    try:
        yield
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        raise StateFileError(f"{where} does not answer: {type(error).__name__}.") from None


def _whole(document: JSON, kind: str, names: Sequence[str]) -> JSON:
    """Return a document as it is written."""
    kept = {key: value for key, value in document.items() if key not in HEAD}
    attached = [*document.get("attached", []), *names]
    return sealed({"format": kind, "version": VERSION, **kept, "attached": attached})


HEAD = ("format", "version", "attached", "checksum")


def _check_version(data: JSON, where: str) -> None:
    if data.get("version") != VERSION:
        raise StateFileError(
            f"{where} has version {data.get('version')} of the format; this software reads "
            f"{VERSION}. Upgrade Bandanna to go on with it."
        )
