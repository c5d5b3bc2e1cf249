"""The release on a person's own device: the Python twin of ``clients/device/bandanna-device.js``.

Nothing here needs NumPy. What both do, and what travels, is in ``docs/device-protocol.md``;
``clients/device/client.py`` is a device that remembers and sends.
"""

from __future__ import annotations

from pathlib import Path

from bandanna.device.release import (
    Parameters,
    RefusalError,
    canonical_document,
    check_release,
    draw_bit,
    fingerprint,
    make_release,
    sign_release,
    system_words,
    to_units,
    verify_release,
)

MODULE = Path(__file__).with_name("bandanna-device.js")
"""The ES module to serve to browsers; in a checkout a link to the one in ``clients/device``."""

__all__ = [
    "MODULE",
    "Parameters",
    "RefusalError",
    "canonical_document",
    "check_release",
    "draw_bit",
    "fingerprint",
    "make_release",
    "sign_release",
    "system_words",
    "to_units",
    "verify_release",
]
