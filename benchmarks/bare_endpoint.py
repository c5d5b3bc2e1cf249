"""The least a durable service does: an endpoint that commits a row before it answers."""

from __future__ import annotations

import sqlite3
import sys
import threading

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Row(BaseModel):
    """What is kept."""

    event_id: str | None = None


def make_app(path: str) -> FastAPI:
    """Return the endpoint; it is not async, as one does who calls a database."""
    app = FastAPI()
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, event TEXT)")
    lock = threading.Lock()

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/experiments/{experiment}/decisions")
    def keep(experiment: str, row: Row) -> dict[str, str]:
        with lock:
            connection.execute("INSERT INTO rows (event) VALUES (?)", (experiment,))
        return {"arm": "a"}

    return app


if __name__ == "__main__":
    uvicorn.run(make_app(sys.argv[1]), port=int(sys.argv[2]), log_level="warning", access_log=False)
