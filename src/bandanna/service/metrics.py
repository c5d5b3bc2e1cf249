"""Numbers for operators: counts, times and free disk space; never a loss."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bandanna._core.types import JSON
from bandanna.store.rows import Gauges

MOST_EXPERIMENTS = 200
"""Experiments that have numbers of their own: the newest that run."""

EACH = {
    "decisions": "Decisions of a running experiment.",
    "feedback": "Decisions of a running experiment whose feedback has come.",
    "releases": "Batches that a running experiment released.",
    "oldest_batch_seconds": "How long ago the oldest open batch was begun.",
}
"""Numbers of each running experiment."""

WHOLE = {
    "transactions": "Transactions that were committed.",
    "failed_transactions": "Transactions that failed.",
    "queue": "Tasks that wait.",
    "database_available": "1 if the database took the last transaction.",
    "disk_free_bytes": "Room where the database or the rollback guard lies.",
    "rollback_guard": "1 if the rollback guard agrees with the database, 0 if not or if there is "
    "none.",
    "stale_batches": "Open batches begun over a day ago.",
}
"""Numbers of the whole service."""

RESUMED = "How often an experiment was resumed from an older copy; each costs epsilon once more."
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """All metrics of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here: JSON = {"registry": self.registry, "namespace": "bandanna"}
        kinds, labels = ["method", "route", "status"], ["experiment", "name"]
        self.requests = Counter("requests", "Requests.", kinds, **here)
        self.seconds = Histogram(
            "request_seconds", "How long requests took.", ["route"], buckets=BUCKETS, **here
        )
        self.whole = {name: Gauge(name, what, **here) for name, what in WHOLE.items()}
        self.resumed = Gauge("resumed", RESUMED, ["experiment"], **here)
        self.each = {
            name: Gauge(f"experiment_{name}", what, labels, **here) for name, what in EACH.items()
        }
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. Finding a number by its labels takes longer than counting: once."""
        kind = method, route, status
        if (known := self._counted.get(kind)) is None:
            known = self.requests.labels(*kind), self.seconds.labels(route)
            self._counted[kind] = known
        known[0].inc()
        known[1].observe(seconds)

    def set(self, **numbers: float) -> None:
        """Set numbers of the whole service."""
        for name, number in numbers.items():
            self.whole[name].set(number)

    def experiments(self, found: Iterable[Gauges], now: float) -> None:
        """Set the numbers of running experiments; of others none are kept."""
        self.resumed.clear()
        for gauge in self.each.values():
            gauge.clear()
        for one in _whole(found):
            labels = one.id, one.name
            age = 0.0 if one.open_since is None else max(0.0, now - one.open_since)
            numbers: dict[str, float] = {"decisions": one.decided, "feedback": one.observed}
            numbers |= {"releases": one.released, "oldest_batch_seconds": age}
            for name, value in numbers.items():
                self.each[name].labels(*labels).set(value)
            if one.resumed:
                self.resumed.labels(one.id).set(one.resumed)

    def text(self) -> bytes:
        """Return everything, as Prometheus reads it."""
        return generate_latest(self.registry)


def _whole(parts: Iterable[Gauges]) -> list[Gauges]:
    """Return experiments as wholes: what is counted in segments is added up."""
    gauges: dict[str, Gauges] = {}
    for part in parts:
        known = gauges.get(part.id)
        if known is None and len(gauges) < MOST_EXPERIMENTS:
            gauges[part.id] = part
        elif known is not None:
            begun = [one.open_since for one in (known, part) if one.open_since is not None]
            gauges[part.id] = known._replace(
                decided=known.decided + part.decided,
                observed=known.observed + part.observed,
                released=known.released + part.released,
                resumed=max(known.resumed, part.resumed),
                open_since=min(begun, default=None),
            )
    return list(gauges.values())
