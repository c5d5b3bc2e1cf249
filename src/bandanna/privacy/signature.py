"""Signed certificates: who stands behind one.

Anyone can write a certificate, and renew its seals. One that carries a signature was written by
the owner of a key, and not changed since. The signature covers every other entry.
"""

from __future__ import annotations

import base64
import json

from bandanna import signatures
from bandanna._core.types import JSON
from bandanna.privacy.mechanism import Finding

SIGNATURE = "signature"


def sign_certificate(certificate: JSON, private_key: bytes) -> JSON:
    """Return a certificate with a signature, in place of one that it may have.

    Examples
    --------
    >>> import bandanna as bd
    >>> from bandanna._core.documents import to_text
    >>> from bandanna.privacy.certificate import verify
    >>> from bandanna.signatures import make_key
    >>> key = make_key()
    >>> certificate = bd.PrivateBandit(arms=2, epsilon=0.5).certificate()
    >>> signed = sign_certificate(certificate, key.private)
    >>> all(finding.holds for finding in verify(to_text(signed), key=key.public))
    True
    """
    mark = signatures.sign(private_key, _signed_part(certificate))
    return {**certificate, SIGNATURE: base64.b64encode(mark).decode()}


def check_signature(certificate: JSON, public_key: bytes) -> Finding:
    """Check that a certificate was signed by the owner of a key."""
    given = certificate.get(SIGNATURE)
    if given is None:
        return Finding(SIGNATURE, False, "missing: nobody stands behind this certificate")
    try:
        mark = base64.b64decode(str(given), validate=True)
    except ValueError:
        mark = b""
    if not signatures.verify(public_key, _signed_part(certificate), mark):
        return Finding(SIGNATURE, False, "not by the owner of this key, or something was changed")
    return Finding(SIGNATURE, True, f"by the owner of key {signatures.key_id(public_key)}")


def _signed_part(certificate: JSON) -> bytes:
    entries = {key: value for key, value in certificate.items() if key != SIGNATURE}
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
