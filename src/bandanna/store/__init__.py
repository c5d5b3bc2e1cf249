"""Durable state of running experiments: what a store promises, and the store."""

from __future__ import annotations

from bandanna.store.contract import ConflictError, KeyRow, StoreUnavailableError
from bandanna.store.secret import Secret, read_secret
from bandanna.store.sql import SqlStore, is_used, open_store

__all__ = [
    "ConflictError",
    "KeyRow",
    "Secret",
    "SqlStore",
    "StoreUnavailableError",
    "is_used",
    "open_store",
    "read_secret",
]
