"""Durable state of running experiments: what a store promises, and the stores there are."""

from __future__ import annotations

from bandanna.store.contract import ConflictError, KeyRow, Store, StoreUnavailableError, Transaction
from bandanna.store.secret import Secret, read_secret
from bandanna.store.sql import SqlStore, is_used, open_store

__all__ = [
    "ConflictError",
    "KeyRow",
    "Secret",
    "SqlStore",
    "Store",
    "StoreUnavailableError",
    "Transaction",
    "is_used",
    "open_store",
    "read_secret",
]
