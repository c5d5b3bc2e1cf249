"""Signatures: by the right key, of the right bytes; a missing package is named."""

from __future__ import annotations

import sys

import pytest

from bandanna import signatures
from bandanna._core.types import InputError


def test_only_the_key_and_the_bytes_that_were_signed_verify() -> None:
    key, other = signatures.make_key(), signatures.make_key()
    signature = signatures.sign(key.private, b"epsilon 1")
    assert signatures.verify(key.public, b"epsilon 1", signature)
    assert not signatures.verify(key.public, b"epsilon 2", signature)
    assert not signatures.verify(other.public, b"epsilon 1", signature)
    assert not signatures.verify(key.public, b"epsilon 1", signature[:-1])
    assert signatures.public_key(key.private) == key.public
    assert signatures.key_id(key.public) != signatures.key_id(other.public)


def test_it_is_ed25519_as_others_have_it() -> None:
    """The first test of RFC 8032, section 7.1."""
    private = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert signatures.public_key(private).hex() == public
    assert signatures.sign(private, b"").hex().startswith("e5564300c360ac729086e2cc806e828a")


def test_keys_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="a private key is 32 bytes"):
        signatures.sign(b"short", b"")
    with pytest.raises(InputError, match="a public key is 32 bytes"):
        signatures.verify(b"short", b"", b"")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    key = signatures.make_key()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"pip install 'bandanna\[signatures\]"):
        signatures.verify(key.public, b"", b"")
