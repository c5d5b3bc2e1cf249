"""What devices were told, one after the other: an entry of a certificate that people compare.

Each line is a fingerprint of signed parameters, as devices show it too (``bandanna.device``), the
key that signed them, and since when. It promises nothing: the numbers of the certificate do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bandanna._core.types import JSON
from bandanna.privacy.mechanism import Finding
from bandanna.privacy.seals import sealed

HISTORY = "parameters"
SHAPES = {
    "fingerprint": r"[0-9a-f]{64}",
    "key_id": r"[0-9a-f]{16}",
    "since": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}Z",
}


def with_history(certificate: JSON, history: Sequence[JSON]) -> JSON:
    """Return a certificate that also lists what devices were told."""
    entries = {key: value for key, value in certificate.items() if key != "seals"}
    return sealed(entries | {HISTORY: list(history)})


def check_history(data: JSON) -> Iterator[Finding]:
    """Check what the list looks like, where there is one."""
    if HISTORY in data:
        told = data[HISTORY]
        good = isinstance(told, list) and all(map(_is_line, told))
        yield Finding(HISTORY, good, "what devices were told: fingerprints, to be compared")


def _is_line(line: object) -> bool:
    return (
        isinstance(line, dict)
        and set(line) == set(SHAPES)
        and all(re.fullmatch(shape, str(line[name])) for name, shape in SHAPES.items())
    )
