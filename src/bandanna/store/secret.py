"""The service's secret: kept outside the database, so that the database alone tells little.

Three keys are derived from it: one hashes keys to the service, one hashes people, one encrypts
feedback that waits in open batches.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bandanna._core.types import JSON, StateFileError

BYTES = 32
NONCE = 12
BLOCK, LARGE_BLOCK = 16, 1024
"""What a sealed number and a sealed tally are padded to a multiple of."""


class Secret:
    """32 random bytes, and what is done with them."""

    def __init__(self, value: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._value = value
        self._sealing = AESGCM(self._derive("open batches"))
        self._hashing = {purpose: self._derive(purpose) for purpose in ("keys", "people")}

    @classmethod
    def new(cls) -> Secret:
        """Make one that is kept nowhere."""
        return cls(secrets.token_bytes(BYTES))

    @property
    def fingerprint(self) -> str:
        """What a database remembers of the secret it was made with."""
        return self._derive("fingerprint").hex()

    def hash(self, purpose: str, text: str) -> bytes:
        """Hash a key or a person so that nobody without the secret can try candidates."""
        return hmac.digest(self._hashing[purpose], text.encode(), "sha256")

    def seal(self, value: JSON | int, name: str) -> bytes:
        """Encrypt a value so that it can be read under one name alone."""
        text, block = json.dumps(value), BLOCK if isinstance(value, int) else LARGE_BLOCK
        padded = text.ljust(-(-len(text) // block) * block)  # its length tells nothing
        return self.seal_rows(padded.encode(), name)

    def unseal(self, sealed: bytes, name: str) -> JSON | int:
        """Decrypt a value, refusing one that was sealed elsewhere or changed."""
        value: JSON | int = json.loads(self.unseal_rows(sealed, name))
        return value

    def seal_rows(self, rows: bytes, name: str) -> bytes:
        """Encrypt rows of one length each, whose number is no secret."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + self._sealing.encrypt(nonce, rows, name.encode())

    def unseal_rows(self, sealed: bytes, name: str) -> bytes:
        """Decrypt rows, refusing those that were sealed elsewhere or changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._sealing.decrypt(sealed[:NONCE], sealed[NONCE:], name.encode())
        except InvalidTag:
            raise StateFileError(
                f"what the database holds for {name} was changed, or sealed with another secret."
            ) from None

    def _derive(self, purpose: str) -> bytes:
        return hmac.digest(self._value, purpose.encode(), hashlib.sha256)


def read_secret(path: Path) -> Secret:
    """Read the secret from a file, making one, readable by its owner only, if there is none."""
    text = private_text(path, "secret", lambda: secrets.token_hex(BYTES) + "\n")
    try:
        value = bytes.fromhex(text.strip())
    except ValueError as error:
        raise StateFileError(f"cannot read the secret {path}: {error}.") from None
    if len(value) != BYTES:
        raise StateFileError(f"the secret {path} must be {2 * BYTES} hexadecimal digits.")
    return Secret(value)


def private_text(path: Path, what: str, make: Callable[[], str]) -> str:
    """Read a file that others cannot read; what is not there is made, once.

    The file appears whole or not at all, also when several processes make it at once.
    """
    if not path.exists():
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(make())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was faster: its file is used
                os.link(part, path)
        except OSError as error:
            raise StateFileError(f"cannot make the {what} {path}: {error.strerror}.") from None
        finally:
            part.unlink(missing_ok=True)
    try:
        text = path.read_text(encoding="ascii")
        open_to_others = path.stat().st_mode & 0o077
    except (OSError, ValueError) as error:
        raise StateFileError(f"cannot read the {what} {path}: {error}.") from None
    if open_to_others:
        raise StateFileError(f"others can read the {what} {path}; run: chmod 600 {path}")
    return text
