"""Numbers for operators: counts, times and room on the disk; never a loss."""

from __future__ import annotations

import shutil

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """All metrics of one service."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "bandanna_requests", "Requests.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "bandanna_request_seconds",
            "How long requests took.",
            ["route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self.transactions = Gauge(
            "bandanna_transactions", "Transactions that were committed.", registry=registry
        )
        self.failures = Gauge(
            "bandanna_failed_transactions", "Transactions that failed.", registry=registry
        )
        self.waiting = Gauge("bandanna_queue", "Tasks that wait.", registry=registry)
        self.available = Gauge(
            "bandanna_database_available",
            "1 if the database took the last transaction.",
            registry=registry,
        )
        self.disk = Gauge(
            "bandanna_disk_free_bytes",
            "Room where the database or the rollback guard lies.",
            registry=registry,
        )

        self.resumed = Gauge(
            "bandanna_resumed",
            "How often an experiment was resumed from an older copy; each costs epsilon once more.",
            ["experiment"],
            registry=registry,
        )
        self.guard = Gauge(
            "bandanna_rollback_guard",
            "1 if the rollback guard agrees with the database, 0 if not or if there is none.",
            registry=registry,
        )
        self.stale = Gauge(
            "bandanna_stale_batches", "Open batches begun over a day ago.", registry=registry
        )

    def measure_disk(self, path: str) -> None:
        """Look how much room is left."""
        self.disk.set(shutil.disk_usage(path).free)

    def text(self) -> bytes:
        """Return everything, as Prometheus reads it."""
        return generate_latest(self.registry)
