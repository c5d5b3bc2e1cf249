"""A device in Python: decisions for one person, and the bits that answer them.

What keeps the promise, in this order: the parameters are checked and charged to the budget before
a decision is shown; the bit is drawn once and written down before it is sent; the time it is sent
is fixed when the decision is made, and a bit is sent whether or not there was feedback. The twin of
``clients/device/bandanna-device.js``; copy this file and change it.
"""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from urllib import request
from urllib.error import HTTPError

from bandanna._core import checks
from bandanna._core.documents import write_whole
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.device import (
    RefusalError,
    Words,
    check_release,
    demand,
    draw_bit,
    fingerprint,
    system_words,
    to_units,
    verify_release,
)

FINAL = (200, 204, 404, 409, 410, 422)
"""Answers after which a bit is not sent again."""


class DeviceDecision(NamedTuple):
    """An arm to show, the event to give feedback for, and the parameters' fingerprint."""

    event_id: str
    arm: ArmName
    fingerprint: str


class Device:
    """One person's side of an experiment with local privacy.

    Parameters
    ----------
    transport
        Reaches the service: ``HttpTransport(url, key)``.
    experiment
        The experiment's id.
    epsilon
        The most that one event may cost; sharper parameters are refused.
    budget
        The most that all events of a period may cost together.
    public_keys
        Keys whose signature of the parameters is trusted; None trusts the service.
    storage
        What remembers bits and budget: ``FileStorage(path)``.
    delay
        Seconds from a decision to the sending of its bit; at most a day.
    fingerprint
        Refuse any other parameters than those with this hash.
    clock, words
        Time in seconds and random words, for tests.
    """

    def __init__(
        self,
        transport: Transport,
        experiment: str,
        *,
        epsilon: float,
        budget: Budget,
        public_keys: Sequence[bytes] | None,
        storage: Storage,
        delay: float = 60.0,
        fingerprint: str | None = None,
        clock: Callable[[], float] = time.time,
        words: Words = system_words,
    ) -> None:
        if public_keys is not None and not public_keys:
            raise InputError("public_keys must list keys to trust; None trusts the service.")
        self._transport = transport
        self._experiment = experiment
        self._epsilon = checks.positive("epsilon", epsilon)
        checks.positive("budget.epsilon", budget.epsilon)
        checks.positive("budget.days", budget.days)
        self._memory = Memory(storage, budget, clock)
        self._keys = public_keys
        self._delay = checks.within("delay", checks.positive("delay", delay), 0.0, DAY)
        self._fingerprint = fingerprint
        self._clock = clock
        self._words = words

    def decide(self, event_id: str | None = None) -> DeviceDecision:
        """Ask for a decision; refuse one that costs too much."""
        event_id = event_id or str(uuid.uuid4())
        path = f"experiments/{self._experiment}/decisions"
        status, answer = self._transport.post(path, {"event_id": event_id})
        if not 200 <= status < 300 or not isinstance(answer, dict):
            raise RefusalError("service", f"the service answered {status}")
        demand(answer.get("event_id") == event_id, "service", "an answer to another event")
        arm = answer.get("arm")
        if not isinstance(arm, str | int):
            raise RefusalError("service", "an answer without an arm")
        epsilon, seen = self._accept(answer.get("release"), answer.get("signature"))
        send_at = self._clock() + self._delay
        expires = _seconds(answer.get("expires_at"), otherwise=send_at + DAY)
        demand(expires > send_at, "service", "it expires before its bit would be sent")

        def note(state: JSON, now: float) -> None:
            if event_id in state["events"]:
                return
            self._memory.charge(state, epsilon)
            if not state["history"] or state["history"][-1]["fingerprint"] != seen:
                state["history"].append({"fingerprint": seen, "epsilon": epsilon, "seen": now})
            state["events"][event_id] = {
                "arm": arm,
                "send_at": send_at,
                "forget_at": expires + DAY,
                "release": answer["release"],
            }

        self._memory.change(note)
        return DeviceDecision(event_id, arm, seen)

    def feedback(self, event_id: str, loss: float) -> bool:
        """Draw the bit and keep it, not the loss; tells whether this was the first in time."""

        def note(state: JSON, now: float) -> bool:
            event = state["events"].get(event_id)
            demand(event is not None, "event", "no such event on this device")
            if "done" in event or "bit" in event or now >= event["send_at"]:
                return False
            event["bit"] = self._draw(event["release"], loss)
            return True

        return self._memory.change(note)

    def flush(self) -> float | None:
        """Send what is due, and return the time at which to call this again, if any.

        Without feedback the default loss is randomised in its place, so that neither the sending
        nor its time says whether there was any.
        """

        def fix(state: JSON, now: float) -> dict[str, int]:
            events = open_events(state).items()
            due = {key: event for key, event in events if event["send_at"] <= now}
            for event in due.values():
                if "bit" not in event:
                    release = event["release"]
                    event["bit"] = self._draw(release, float(release["default_loss"]))
                event["send_at"] = now + self._delay  # again, if no answer comes
            return {key: event["bit"] for key, event in due.items()}

        for event_id, bit in self._memory.change(fix).items():
            self._send(event_id, bit)
        waiting = open_events(self.kept()).values()
        return min((event["send_at"] for event in waiting), default=None)

    def kept(self) -> JSON:
        """Return all that is remembered: events, every change of parameters, what was spent."""
        return self._memory.change(lambda state, _: state)

    def _send(self, event_id: str, bit: int) -> None:
        """Send a bit that is written down; without a final answer the same one goes out again."""
        try:
            status = self._transport.post(f"events/{event_id}/bit", {"bit": bit}).status
        except OSError:
            return
        if status in FINAL:
            self._memory.change(lambda state, _: close_event(state, event_id))

    def _accept(self, release: object, signature: object) -> tuple[float, str]:
        epsilon = check_release(release, self._epsilon).epsilon
        assert isinstance(release, Mapping), "its texts were read"
        signed = self._keys is None or verify_release(
            self._keys, self._experiment, release, signature
        )
        demand(signed, "signature", "no pinned key signed this")
        seen = fingerprint(self._experiment, release)
        same = self._fingerprint in (None, seen)
        demand(same, "fingerprint", f"the parameters changed to {seen}")
        return epsilon, seen

    def _draw(self, release: object, loss: float) -> int:
        parameters = check_release(release, math.inf)  # it was allowed, and charged
        return draw_bit(parameters, to_units(parameters, loss), self._words)


def _seconds(moment: object, otherwise: float) -> float:
    """Read a moment such as 2030-01-31T12:00:00Z; one without a zone or a sense is long past."""
    if moment is None:
        return otherwise
    try:
        read = datetime.fromisoformat(moment if isinstance(moment, str) else "")
    except ValueError:
        return -math.inf
    return read.timestamp() if read.tzinfo else -math.inf


# --- what a device must not forget ------------------------------------------------------


class Storage(Protocol):
    """Keeps one text. When ``write`` returns, the text survives the program."""

    def read(self) -> str | None:
        """Return what was written last, or None."""

    def write(self, text: str) -> None:
        """Keep a text in place of the one before."""


class MemoryStorage:
    """For tests, and for devices that are never switched off: forgets with the program."""

    def __init__(self) -> None:
        self._text: str | None = None

    def read(self) -> str | None:
        """Return what was written last, or None."""
        return self._text

    def write(self, text: str) -> None:
        """Keep a text in place of the one before."""
        self._text = text


class FileStorage:
    """A file that its owner alone can read. One program at a time may use it."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def read(self) -> str | None:
        """Return the file's content, or None when there is no file."""
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Write the file whole or not at all, and to the disk."""
        write_whole(self._path, text, private=True)


DAY = 86_400.0
NANO = 1e9
"""Budgets are kept in whole billionths."""

T = TypeVar("T")


class Budget(NamedTuple):
    """How much epsilon may be spent in each period of so many days."""

    epsilon: float
    days: float


class Memory:
    """A state that is read, changed and written as one step, before anything leaves."""

    def __init__(self, storage: Storage, budget: Budget, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._budget = budget
        self._clock = clock
        self._lock = threading.Lock()

    def change(self, work: Callable[[JSON, float], T]) -> T:
        """Let ``work`` change the state, given the time; nothing is changed if it refuses."""
        with self._lock:
            now = self._clock()
            period = math.floor(now / (self._budget.days * DAY))
            text = self._storage.read()
            fresh: JSON = {"period": period, "spent": 0, "events": {}, "history": []}
            state: JSON = fresh if text is None else json.loads(text)
            if period > state["period"]:  # a clock that was set back earns nothing
                state |= {"period": period, "spent": 0}
            events = state["events"].items()
            state["events"] = {key: event for key, event in events if event["forget_at"] >= now}
            result = work(state, now)
            text = json.dumps(state)
            self._storage.write(text)
            demand(self._storage.read() == text, "storage", "the storage keeps nothing")
            return result

    def charge(self, state: JSON, epsilon: float) -> None:
        """Spend from this period's budget, or refuse."""
        state["spent"] += math.ceil(epsilon * NANO)
        most = math.floor(self._budget.epsilon * NANO)
        demand(state["spent"] <= most, "budget", "the budget is spent")


def open_events(state: JSON) -> dict[str, JSON]:
    """Return the events whose bit still has to be sent."""
    return {key: event for key, event in state["events"].items() if "done" not in event}


def close_event(state: JSON, event_id: str) -> None:
    """Forget the bit of an event that was answered, but not the event."""
    event = state["events"].get(event_id)
    if event is not None:
        kept = {key: event[key] for key in ("send_at", "forget_at")}
        state["events"][event_id] = {**kept, "done": True}


# --- how a device reaches the service -------------------------------------------------

TIMEOUT_SECONDS = 30.0
MOST_BYTES = 100_000
"""A decision is smaller than this; more is not read."""


class Answer(NamedTuple):
    """What came back: the HTTP status, and the JSON document or None."""

    status: int
    document: object = None


class Transport(Protocol):
    """Posts JSON to a path below the service's ``/v1/``; OSError means that no answer came."""

    def post(self, path: str, body: JSON) -> Answer:
        """Send a document and wait for the answer."""


class HttpTransport:
    """Reaches a service over HTTP, without cookies and without following redirections.

    Parameters
    ----------
    url
        Where the service is, without ``/v1``.
    key
        The key that may decide in this experiment, if the service wants one.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"url must start with https:// or http://; got {url!r}.")
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._opener = request.build_opener(_NoRedirection)

    def post(self, path: str, body: JSON) -> Answer:
        """Send a document and wait for the answer."""
        address = f"{self._url}/v1/{path}"
        data = json.dumps(body).encode()
        asked = request.Request(address, data, self._headers, method="POST")  # noqa: S310
        try:
            with self._opener.open(asked, timeout=TIMEOUT_SECONDS) as response:
                return Answer(response.status, _parsed(response.read(MOST_BYTES)))
        except HTTPError as error:
            with error:
                return Answer(error.code)
        except HTTPException as error:  # half an answer is none
            raise ConnectionError(str(error)) from error


class _NoRedirection(request.HTTPRedirectHandler):
    """Turns a redirection into an error: a bit goes where the page said, or nowhere."""

    def redirect_request(self, *_: object) -> None:
        return None


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None
