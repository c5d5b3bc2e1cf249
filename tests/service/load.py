"""Programs that use the service while it is being killed, and an account of what they were told."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from typing import Any

import bandanna as bd
from bandanna.client import RemoteBandit
from tests.service.running import Process

PLANTED = 0.654321
"""A loss that would be recognised anywhere."""
TRACES = (b"654321", b"686105")
"""It, and it in grid units."""


def loss_of(event: str) -> float:
    """Return the loss of an event in the experiment whose releases hardly hide it."""
    return 0.1 if int(event.rsplit("-", 1)[1]) % 2 else 0.9


class Load:
    """Threads that decide and reward; whatever they were told is remembered."""

    def __init__(self, services: list[Process], threads: int) -> None:
        self._urls, self._key = [one.url for one in services], services[0].key
        first = bd.Client(self._urls, self._key, patience=120)
        self._quiet = first.create("quiet", ["a", "b"], 0.2, rounds=100_000, algorithm="one-bit")
        self._open = first.create("open", ["a", "b"], 100.0, rounds=100_000, algorithm="exp3")
        self.client = first
        self.decided: dict[str, Any] = {}
        self.rewarded: dict[str, set[str]] = {self._quiet.id: set(), self._open.id: set()}
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(k % len(services),)) for k in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def quiet(self) -> RemoteBandit:
        """Small epsilon, planted losses."""
        return self._quiet

    @property
    def open(self) -> RemoteBandit:
        """Batches of one and an epsilon that shows which loss was counted."""
        return self._open

    def wait_for(self, rewards: int) -> None:
        """Wait until so many more rewards were acknowledged."""
        enough = sum(map(len, self.rewarded.values())) + rewards
        for _ in range(12_000):
            if sum(map(len, self.rewarded.values())) >= enough or self.errors:
                return
            time.sleep(0.01)
        raise AssertionError("the service acknowledges nothing")

    def finish(self) -> None:
        """Let everyone finish what they began."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=200)
            assert not thread.is_alive()
        assert not self.errors, self.errors[:3]

    def close(self) -> None:
        """End, whatever happened."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=200)
        self.client.close()

    def exported(self, bandit: RemoteBandit) -> dict[int, float]:
        """Return released values by batch."""
        rows: Any = self.client.send("GET", f"/v1/experiments/{bandit.id}/export")
        return {row["batch"]: row["released"] for row in rows}

    def _run(self, begin: int) -> None:
        urls = self._urls[begin:] + self._urls[:begin]
        client, who = bd.Client(urls, self._key, patience=120), secrets.token_hex(4)
        try:
            for k in itertools.count():
                if self._stop.is_set():
                    return
                for identity in self.rewarded:
                    bandit, event = client.experiment(identity), f"{identity[4:8]}-{who}-{k}"
                    self.decided[event] = identity, bandit.decide(event_id=event)
                    planted = PLANTED if identity == self._quiet.id else loss_of(event)
                    bandit.observe(event, loss=planted)
                    self.rewarded[identity].add(event)
                time.sleep(0.001)
        except BaseException as error:
            self.errors.append(error)
        finally:
            client.close()
