"""Keys of callers, and the key that signs what devices are told.

A caller's key is made once, shown once, and kept as a hash that needs the secret to be tried.
"""

from __future__ import annotations

import base64
import hmac
import math
import secrets
import time
from pathlib import Path

from bandanna import signatures
from bandanna._core.types import JSON, InputError
from bandanna.device import fingerprint, sign_release
from bandanna.service.models import LOCAL, is_local, moment
from bandanna.store import KeyRow, Secret, SqlStore
from bandanna.store.guard import Guard
from bandanna.store.rows import Experiment, Outline
from bandanna.store.secret import private_text

SCOPES = ("decide", "reward", "read", "manage", "device")
"""What a key may open; ``manage`` opens everything. ``device`` opens decisions and bits of one
experiment with local privacy, and may stand in a page."""

REFRESH_SECONDS = 2.0
"""A revoked key opens nothing after this."""


def make_key(
    store: SqlStore,
    secret: Secret,
    name: str,
    scopes: tuple[str, ...],
    experiment: str | None = None,
    expires_at: float | None = None,
) -> tuple[KeyRow, str]:
    """Make a key; returns what is kept of it, and the key itself, which is kept nowhere."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise InputError(f"scopes are {', '.join(SCOPES)}; got {', '.join(unknown) or 'none'}.")
    experiments = [] if experiment is None else store.experiments(experiment)
    if experiment is not None and not experiments:
        raise InputError(f"there is no experiment {experiment!r}.")
    local = bool(experiments) and is_local(experiments[0].settings)
    if "device" in scopes and not (local and scopes == ("device",)):
        raise InputError(
            "a key for pages opens 'device' alone, in one experiment with local privacy: give that "
            "experiment, and no other scope."
        )
    row, text = _new_key(secret, name, scopes, experiment)
    row = row._replace(expires_at=expires_at)
    store.add_key(row)
    return row, text


def make_first_key(store: SqlStore, secret: Secret) -> str | None:
    """Make a key that opens everything, unless there is a key already, and return it."""
    row, text = _new_key(secret, "the first key", ("manage",), None)
    return text if store.add_first_key(row) else None


def _new_key(
    secret: Secret, name: str, scopes: tuple[str, ...], experiment: str | None
) -> tuple[KeyRow, str]:
    identity, rest = secrets.token_hex(6), secrets.token_urlsafe(32)
    text = f"bdn_{identity}_{rest}"
    row = KeyRow(identity, name, secret.hash("keys", text), scopes, experiment, time.time())
    return row, text


class KeyRing:
    """Knows which key opens what; looks again at the store every two seconds."""

    def __init__(self, store: SqlStore, secret: Secret, guard: Guard | None = None) -> None:
        self._store, self._secret, self._guard = store, secret, guard
        self._rows: dict[str, KeyRow] = {}
        self.read_at = -math.inf
        """When it last began to look, by the monotonic clock."""

    @property
    def age(self) -> float:
        """Seconds since it last looked."""
        return time.monotonic() - self.read_at

    def refresh(self) -> None:
        """Look at the store."""
        at = time.monotonic()
        rows = self._store.all_keys()
        if self._guard is not None:
            self._guard.remember_revoked(row.id for row in rows if row.revoked_at is not None)
        gone = frozenset() if self._guard is None else self._guard.revoked
        self._rows = {r.id: r for r in rows if r.revoked_at is None and r.id not in gone}
        self.read_at = at  # after the rows: whoever finds it young finds the rows too

    def knows(self, key: KeyRow) -> bool:
        """Whether a key that was found before still opens something."""
        return key.id in self._rows and not _expired(key)

    def find(self, text: str) -> KeyRow | None:
        """Return what a key opens, or None; how long that takes does not depend on its secret."""
        parts = text.split("_", 2)
        row = self._rows.get(parts[1]) if len(parts) == 3 else None
        right = hmac.compare_digest(
            self._secret.hash("keys", text), b"\0" * 32 if row is None else row.hash
        )
        return row if right and row is not None and not _expired(row) else None


def _expired(row: KeyRow) -> bool:
    return row.expires_at is not None and row.expires_at <= time.time()


def opens(
    row: KeyRow, scope: str, experiment: str | None = None, project: str | None = None
) -> bool:
    """Say whether a key, or a person, opens something: everywhere or in a project."""
    may = scope in row.scopes or "manage" in row.scopes
    may = may or (project is not None and scope in (row.projects or {}).get(project, ()))
    return may and (row.experiment is None or row.experiment == experiment)


# --- what devices are told ------------------------------------------------------------

# In experiments with local privacy it is signed with a key outside the database. Pages pin the
# public key: nobody without the private one, who holds the database alone or sits in between, can
# tell them other numbers. Every change, of numbers or of the key, is noted with the experiment and
# shown with its certificate.


class Signer:
    """The key, and what it signed."""

    def __init__(self, private: bytes) -> None:
        self._private = private
        public = signatures.public_key(private)
        self.public = base64.b64encode(public).decode()
        self.key_id = signatures.key_id(public)
        self._signed: dict[str, JSON] = {}

    def parameters(self, experiment: Experiment) -> JSON:
        """Return what travels with each decision: the release's numbers and their signature."""
        if experiment.id not in self._signed:
            release: dict[str, str] = experiment.settings["device_release"]
            signed = sign_release(self._private, experiment.id, release)
            self._signed[experiment.id] = {"release": release, **signed}
        return self._signed[experiment.id]

    def sign(self, text: bytes) -> bytes:
        """Sign a text, such as the shares of a phase."""
        return signatures.sign(self._private, text)

    def note(self, store: SqlStore, experiment: Experiment | Outline, now: float) -> None:
        """Note what devices are told, if it is not what they were told before."""
        store.record_device_parameters(experiment.id, self._line(experiment), moment(now))

    def note_all(self, store: SqlStore, now: float) -> None:
        """Note what devices are told in every experiment where it has changed."""
        local = [one for one in store.outlines(f'"{LOCAL}"') if is_local(one.settings)]
        latest = store.latest_device_parameters() if local else {}
        for one in local:
            line = self._line(one)
            if line.items() - latest.get(one.id, {}).items():
                self.note(store, one, now)

    def _line(self, experiment: Experiment | Outline) -> dict[str, str]:
        seen = fingerprint(experiment.id, experiment.settings["device_release"])
        return {"fingerprint": seen, "key_id": self.key_id}


def read_signer(path: Path) -> Signer:
    """Read the key from its file, in PEM form; it is made if there is none."""

    def make() -> str:
        return signatures.to_pem(signatures.make_key()).private.decode()

    text = private_text(path, "signing key", make)
    return Signer(signatures.private_from_pem(text.encode()))
