"""The least a service does: an endpoint that commits a row before it answers, or keeps nothing."""

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


def make_forgetful_app() -> FastAPI:
    """Return an endpoint that reads a request, answers, and keeps nothing."""
    app = FastAPI()

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/experiments/{experiment}/decisions")
    async def answer(experiment: str, row: Row) -> dict[str, str]:
        return {"arm": "a"}

    return app


if __name__ == "__main__":
    app = make_app(sys.argv[1]) if sys.argv[1] else make_forgetful_app()
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
