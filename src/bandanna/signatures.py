"""Ed25519 signatures of bytes: who wrote a document, and that nobody changed it since.

A private key is 32 bytes that only its owner holds; a public key is 32 bytes for everyone. The
``cryptography`` package does the work and is loaded when first used.
"""

from __future__ import annotations

import hashlib
from types import ModuleType
from typing import NamedTuple

from bandanna._core.extras import need
from bandanna._core.types import InputError

KEY_LENGTH = 32


class KeyPair(NamedTuple):
    """A private key and the public key that belongs to it."""

    private: bytes
    public: bytes


def make_key() -> KeyPair:
    """Make a new key from the operating system's randomness."""
    private: bytes = _ed25519().Ed25519PrivateKey.generate().private_bytes_raw()
    return KeyPair(private, public_key(private))


def public_key(private: bytes) -> bytes:
    """Return the public key that belongs to a private one."""
    key = _ed25519().Ed25519PrivateKey.from_private_bytes(_checked("private", private))
    public: bytes = key.public_key().public_bytes_raw()
    return public


def key_id(public: bytes) -> str:
    """Return a short name for a public key, to tell keys apart by."""
    return hashlib.sha256(_checked("public", public)).hexdigest()[:16]


def sign(private: bytes, message: bytes) -> bytes:
    """Sign a message; the same key and message give the same 64 bytes."""
    key = _ed25519().Ed25519PrivateKey.from_private_bytes(_checked("private", private))
    signature: bytes = key.sign(message)
    return signature


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the owner of a public key signed exactly this message."""
    key = _ed25519().Ed25519PublicKey.from_public_bytes(_checked("public", public))
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def to_pem(key: KeyPair) -> KeyPair:
    """Return both keys in PEM form, as files have them."""
    ed25519, forms = _ed25519(), _forms()
    private = ed25519.Ed25519PrivateKey.from_private_bytes(_checked("private", key.private))
    public = ed25519.Ed25519PublicKey.from_public_bytes(_checked("public", key.public))
    return KeyPair(
        private.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()),
        public.public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo),
    )


def private_from_pem(pem: bytes) -> bytes:
    """Read a private key in PEM form."""
    try:
        key = _forms().load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, _ed25519().Ed25519PrivateKey):
        raise InputError("this is no private Ed25519 key in PEM form, without a password.")
    private: bytes = key.private_bytes_raw()
    return private


def public_from_pem(pem: bytes) -> bytes:
    """Read a public key in PEM form."""
    try:
        key = _forms().load_pem_public_key(pem)
    except ValueError:
        key = None
    if not isinstance(key, _ed25519().Ed25519PublicKey):
        raise InputError("this is no public Ed25519 key in PEM form.")
    public: bytes = key.public_bytes_raw()
    return public


def _forms() -> ModuleType:
    _ed25519()  # says so if the package is missing
    from cryptography.hazmat.primitives import serialization

    return serialization


def _checked(kind: str, key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_LENGTH:
        raise InputError(f"a {kind} key is {KEY_LENGTH} bytes, as make_key() gives it.")
    return key


def _ed25519() -> ModuleType:
    need("signatures", "a signature")
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519
