"""The tables, as SQLAlchemy sees them; ``migrations/`` makes them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()
SqlRow = Row[*tuple[Any, ...]]
"""Whatever a query gives; its columns are the tables'."""
NUMBER = BigInteger().with_variant(Integer, "sqlite")

FACTS = Table(
    "facts",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

EXPERIMENTS = Table(
    "experiments",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(100), nullable=False),
    Column("segment", String(200), nullable=False),
    Column("name", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("head", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("stopped", Boolean, nullable=False),
    Column("observed", BigInteger, nullable=False),
    Column("step", String(32), nullable=False, server_default=""),
    Column("resumed", BigInteger, nullable=False, server_default="0"),
    Column("owner", BigInteger, nullable=False, server_default="0"),
    Column("counters", Text, nullable=False, server_default=""),
    UniqueConstraint("id", "segment"),
    Index("experiments_by_name", "name"),
    sqlite_autoincrement=True,  # numbers are never given again
)

EVENTS = Table(
    "events",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("owner", BigInteger, primary_key=True, autoincrement=False),
    Column("experiment", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("arm", Integer, nullable=False),
    Column("round", BigInteger, nullable=False),
    Column("chance", Float),
    Column("made_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("state", SmallInteger, nullable=False),
    Index("events_by_place", "experiment", "batch", "position"),
)

BATCHES = Table(
    "batches",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("choice", Integer, nullable=False),
    Column("importance", Float, nullable=False),
    Column("tally", LargeBinary),
    Column("changed", BigInteger, nullable=False),  # the version of the experiment that did
)

FEEDBACK = Table(
    "feedback",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("loss", LargeBinary),
    Column("given_up", Boolean, nullable=False),
    Column("ticket", Text),
)

RELEASES = Table(
    "releases",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("choice", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("value", Text, nullable=False),
    Column("released_at", Float, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("step", String(32), nullable=False, server_default=""),
    Index("releases_in_order", "experiment", "sequence", unique=True),
)

PEOPLE = Table(
    "people",
    metadata,
    Column("experiment", BigInteger, primary_key=True, autoincrement=False),
    Column("person", String(16), primary_key=True),
    Column("places", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Index("people_by_change", "experiment", "changed"),
)

KEYS = Table(
    "keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("experiment", String(100)),
    Column("created_at", Float, nullable=False),
    Column("revoked_at", Float),
    Column("expires_at", Float),
)

TRAIL = Table(
    "trail",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("who", String(100), nullable=False),
    Column("action", String(100), nullable=False),
    Column("about", String(300), nullable=False),
    Column("details", Text, nullable=False),
)

STARTS = Table(
    "starts",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("step", String(32), nullable=False, unique=True),
    Column("guard", String(32), nullable=False),
    Column("at", Float, nullable=False),
    Column("confirmed", Boolean, nullable=False),  # the guard knows of it
)

CHALLENGES = Table(
    "challenges",
    metadata,
    Column("nonce", String(32), primary_key=True),
    Column("at", Float, nullable=False),
    Column("answered_by", String(32)),
)
