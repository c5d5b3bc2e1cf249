"""Decide by published shares: a page of code, to be copied. Needs the package ``cryptography``.

    shares = Shares.read(text, public_key)        # of what an experiment in phases publishes
    arm = shares.assign("user 17", exposed.append)

Who has what was published and the public key can decide; nobody is asked. ``text`` is a page or a
file that is fetched once a phase. An exposure is reported where the arm is shown, and goes into the
table that the experiment counts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from bisect import bisect
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import accumulate
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PARTS = 10_000


class Exposure(NamedTuple):
    """A row of the table of exposures."""

    unit: str
    arm: str
    time: str
    experiment: str
    """The key of the phase."""


class Shares:
    """The shares of one phase, verified."""

    def __init__(self, said: dict[str, object], mark: str) -> None:
        self.experiment, self.phase, self.key = said["experiment"], said["phase"], str(said["key"])
        self.arms: list[str] = list(said["arms"])  # type: ignore[call-overload]
        self._ends = list(accumulate(said["parts"]))  # type: ignore[call-overload]
        self.previous, self.mark = said["previous"], mark
        self._salt = str(said["salt"])
        self._reported: set[str] = set()

    @classmethod
    def read(cls, text: str, public_key: bytes, before: Shares | None = None) -> Shares:
        """Read what was published; ``cryptography`` raises InvalidSignature if it is not theirs.

        With ``before``, the shares that this one follows, it must be the next of its chain.
        """
        document = json.loads(text)
        payload = document["payload"].encode()
        mark = base64.b64decode(document["signature"])
        Ed25519PublicKey.from_public_bytes(public_key).verify(mark, payload)
        said = json.loads(payload)
        if (said["format"], said["version"]) != ("bandanna phase", 1):
            raise ValueError("these are no shares of a version that is known here")
        if sum(said["parts"]) != PARTS:
            raise ValueError("shares must add up")
        if before is not None and said["previous"] != before.mark:
            raise ValueError("these shares do not follow those before: others were told others")
        return cls(said, hashlib.sha256(text.encode()).hexdigest())

    def outcome(self, unit: str, value: float) -> dict[str, object]:
        """Return a line for the service's feedback: what came of a unit that met its arm."""
        return {"unit": unit, "value": value, "experiment": self.key}

    def assign(self, unit: str, report: Callable[[Exposure], object] | None = None) -> str:
        """Return the arm of a unit; reports its first exposure in this phase."""
        mark = hashlib.sha256(f"{self._salt}:{unit}".encode()).digest()
        bucket = int.from_bytes(mark[:4], "big") * PARTS >> 32
        arm = self.arms[bisect(self._ends, bucket)]
        if report is not None and unit not in self._reported:
            self._reported.add(unit)
            now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            report(Exposure(unit, arm, now, self.key))
        return arm
