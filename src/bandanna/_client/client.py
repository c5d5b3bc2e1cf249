"""The connection to the service: one for ``async`` programs, and one that waits for its answers.

What is asked and what the answers mean is written once, for ``async``. ``Client`` and
``Experiment`` have the same methods, which wait: what is awaited in them has its answer by then.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Never, Self
from urllib.parse import quote, urlencode

from . import calls
from .block import DEFAULT_COUNT, AsyncBlock, Block, Stock
from .calls import JSON, MOST_LINES, PASSING, Attempts, Call, Decision, Errors, Guarantee
from .waiting import at_once, waiting

if TYPE_CHECKING:
    import httpx

OK, UNAVAILABLE = 204, 503
TIMEOUT = 10.0
"""Seconds for one attempt."""


class _Connection:
    """What both clients have in common."""

    errors: ClassVar[Errors] = Errors()

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        import httpx  # loaded when first used

        self._lost = httpx.TransportError
        self._patience = patience
        self._servers = deque([url] if isinstance(url, str) else url)
        """Where the service is; the first is asked."""
        if not self._servers:
            raise self.errors.input("give an address of the service, such as http://host:8000.")
        self._headers = {"Authorization": f"Bearer {key}"}
        self._settings: JSON = {"headers": self._headers, "timeout": TIMEOUT}

    async def _request(self, request: JSON) -> httpx.Response:
        """Send a request once."""
        raise NotImplementedError

    async def _rest(self, seconds: float) -> None:
        """Let some time pass."""
        raise NotImplementedError

    async def _send(self, call: Call) -> JSON:
        """Send a call, again and again while that may help."""
        attempts = Attempts(self._patience, time.monotonic())
        while True:
            answer, trouble = None, ""
            try:
                answer = await self._request(
                    {
                        "method": call.method,
                        "url": f"{self._servers[0].rstrip('/')}{call.path}",
                        "json": call.body,
                        "content": call.content,
                        "headers": call.headers,
                    }
                )
            except self._lost as error:
                trouble = type(error).__name__
            pause = self._pause(attempts, call, answer)
            if pause is None:
                return self._ended(answer, trouble)
            await self._rest(pause)

    async def _make(self, name: str, arms: object, epsilon: float, **other: object) -> str:
        """Make an experiment, under a key that makes repeats harmless; returns its id."""
        body = {"name": name, "arms": arms, "epsilon": epsilon} | other
        again = {"Idempotency-Key": secrets.token_hex(16)}
        made = await self._send(Call("POST", "/v1/experiments", body, headers=again))
        return str(made["id"])

    def _feedback(
        self,
        event: str,
        loss: float | None,
        reward: float | None,
        path: str = "/v1",
        metrics: Mapping[str, float] | None = None,
    ) -> Call:
        """Return the feedback of an event, of an experiment's path or the only one that has it."""
        if (loss is None) == (reward is None):
            raise self.errors.input("give the feedback as loss= or reward=, one of them.")
        body: JSON = {"loss": loss} if reward is None else {"reward": reward}
        if metrics is not None:
            body["metrics"] = dict(metrics)
        return Call("POST", f"{path}/events/{quote(event, safe='')}/reward", body)

    def _read(self, answer: httpx.Response) -> JSON:
        """Return what was answered, or raise what a policy would."""
        if answer.is_success:
            if answer.headers.get("Content-Type", "").startswith("application/x-ndjson"):
                return {"lines": [json.loads(line) for line in answer.text.splitlines()]}
            body: JSON = answer.json() if answer.content else {}
            return body
        try:
            detail = str(answer.json()["detail"])
        except (ValueError, LookupError, TypeError):
            detail = None
        raise calls.refusal(answer.status_code, detail, self.errors)

    def _pause(self, attempts: Attempts, call: Call, answer: httpx.Response | None) -> float | None:
        """Return how long to wait before the next attempt; None where this answer stands."""
        if answer is not None and answer.status_code not in PASSING:
            return None
        if answer is None or answer.status_code == UNAVAILABLE:
            self._servers.rotate(-1)  # another process may lead now
            if call.again and attempts.elsewhere(len(self._servers)):
                return 0.0
        asked = None if answer is None else answer.headers.get("Retry-After")
        return attempts.pause(time.monotonic(), asked) if call.again else None

    def _ended(self, answer: httpx.Response | None, trouble: str) -> JSON:
        """Return the last answer; without any, say that the service is not there."""
        if answer is None:
            raise self.errors.service(f"the service did not answer ({trouble}).") from None
        return self._read(answer)


class AsyncClient(_Connection):
    """A connection to the decision service for ``async`` programs.

    The same as ``Client``, with methods that are awaited.

    Parameters
    ----------
    url
        Where the service is: an address, or those of a process that leads and of its stand-bys.
    key
        A key to it.
    patience
        Seconds for which a request is tried again.
    """

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        super().__init__(url, key, patience=patience)
        import httpx

        self._http = httpx.AsyncClient(**self._settings)

    async def _request(self, request: JSON) -> httpx.Response:
        return await self._http.request(**request)

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def run(self, call: Call) -> JSON:
        """Send a call, again and again while that may help."""
        return await self._send(call)

    def experiment(self, identity: str) -> AsyncExperiment:
        """Return an experiment that exists; nothing is sent yet."""
        return AsyncExperiment(self, identity)

    async def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> AsyncExperiment:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment(await self._make(name, arms, epsilon, **other))

    async def reward(
        self, event: str, *, loss: float | None = None, reward: float | None = None
    ) -> None:
        """Send the feedback of an event: once, in any order."""
        await self._send(self._feedback(event, loss, reward))

    async def send(
        self, method: str, path: str, body: JSON | None = None, *, again: bool = True
    ) -> JSON:
        """Send a request to any path of the service; returns what was answered."""
        return await self._send(Call(method, path, body, again))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Client(_Connection):
    """A connection to the decision service.

    Requests that fail are retried for a while, with the same ids, so that nothing is decided or
    counted twice. A client may be shared by threads.

    Parameters
    ----------
    url
        Where the service is: an address, or those of a process that leads and of its stand-bys.
    key
        A key to it.
    patience
        Seconds for which a request is tried again.
    """

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        super().__init__(url, key, patience=patience)
        import httpx

        self._http = httpx.Client(**self._settings)

    async def _request(self, request: JSON) -> httpx.Response:
        return self._http.request(**request)

    async def _rest(self, seconds: float) -> None:
        time.sleep(seconds)

    run = waiting(_Connection._send)
    reward = waiting(AsyncClient.reward)
    send = waiting(AsyncClient.send)

    def experiment(self, identity: str) -> Experiment:
        """Return an experiment that exists; nothing is sent yet."""
        return Experiment(self, identity)

    def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> Experiment:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment(at_once(self._make(name, arms, epsilon, **other)))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Experiment:
    """How an experiment is asked."""

    def __init__(self, client: _Connection, identity: str) -> None:
        self._client = client
        self.id = identity
        self._path = f"/v1/experiments/{identity}"

    async def _ask(self, call: Call) -> JSON:
        return await self._client._send(call)

    async def _get(self, what: str, **query: object) -> JSON:
        asked = urlencode({name: value for name, value in query.items() if value is not None})
        return await self._ask(Call("GET", f"{self._path}/{what}{asked and '?'}{asked}"))

    async def _say(self, decision: Decision | str, verb: str) -> None:
        """Say something about an event that has no content."""
        event = quote(_event_of(decision), safe="")
        await self._ask(Call("POST", f"{self._path}/events/{event}/{verb}"))

    async def _ask_in_bulk(self, what: str, rows: list[JSON]) -> AsyncIterator[tuple[int, JSON]]:
        """Send documents, some thousand at a time; yields where each part begins, and answers."""
        for begin in range(0, len(rows), MOST_LINES):
            some = rows[begin : begin + MOST_LINES]
            yield begin, await self._ask(Call("POST", f"{self._path}/{what}", lines=some))


class AsyncExperiment(_Experiment):
    """An experiment in the service, for ``async`` programs."""

    async def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        segment: str | None = None,
        eligible: Iterable[str | int] | Mapping[str | int, bool] | None = None,
        context: Mapping[str, object] | None = None,
        before: float | None = None,
        event_id: str | None = None,
    ) -> Decision:
        """Choose an arm, among the eligible ones; the same ``event_id`` gets the same answer.

        ``context`` is what is known of the person, where the experiment has features; ``before``
        the number that is subtracted from the outcome, where it has ``adjust``.
        """
        if isinstance(eligible, Mapping):
            eligible = [arm for arm, may in eligible.items() if may]
        asked = {
            "event_id": event_id or f"evt_{secrets.token_hex(12)}",  # it makes repeats harmless
            "person": None if person is None else str(person),
            "segment": segment,
            "eligible": None if eligible is None else list(eligible),
            "context": None if context is None else dict(context),
            "before": before,
            "advice": advice,
        }
        body = {name: value for name, value in asked.items() if value is not None}
        return calls.decision(await self._ask(Call("POST", f"{self._path}/decisions", body)))

    def block(
        self,
        count: int = DEFAULT_COUNT,
        *,
        segment: str | None = None,
        eligible: Iterable[str | int] | None = None,
    ) -> AsyncBlock:
        """Return decisions that are fetched ``count`` at a time and used without a round trip.

        Feedback is sent as usual. The experiment needs ``deadline_seconds``.
        """
        return AsyncBlock(Stock(self._ask, self._path, count, segment, eligible))

    async def observe(
        self,
        decision: Decision | str,
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Send the feedback of a decision, or of an event id: once, in any order.

        ``metrics`` are further outcomes, where the experiment has some.
        """
        if unnamed:
            raise self._client.errors.input(calls.UNNAMED_FEEDBACK)
        event = _event_of(decision)
        await self._ask(self._client._feedback(event, loss, reward, self._path, metrics))

    async def observe_all(
        self,
        rewards: Mapping[str, float] | None = None,
        *,
        losses: Mapping[str, float] | None = None,
    ) -> dict[str, str]:
        """Send the feedback of many events, by their ids; returns what was refused, and why.

        Every event is treated as if it was sent alone: the others count.
        """
        rows = [{"event_id": event, "reward": value} for event, value in (rewards or {}).items()]
        rows += [{"event_id": event, "loss": value} for event, value in (losses or {}).items()]
        refused: dict[str, str] = {}
        async for _, answer in self._ask_in_bulk("rewards", rows):
            lines = [one for one in answer["lines"] if one["status"] != OK]
            refused |= {one["event_id"]: one["detail"] for one in lines}
        return refused

    async def report(self, lines: Iterable[Mapping[str, object]]) -> dict[int, str]:
        """Report units that met an arm, where decisions are made at the edge.

        A line is such as ``{"unit": "u17", "value": 1.0, "experiment": "exp_1-3"}``. Returns the
        places of lines that were refused, and why. The same lines may be sent again.
        """
        refused: dict[int, str] = {}
        async for begin, answer in self._ask_in_bulk("feedback", list(map(dict, lines))):
            refused |= {begin + one["line"] - 1: one["detail"] for one in answer["refused"]}
        return refused

    async def give_up(self, decision: Decision | str) -> None:
        """Count the default loss for feedback that has not come; where it has, nothing happens."""
        await self._say(decision, "give-up")

    async def activate(self, decision: Decision | str) -> None:
        """Say that a deferred decision has been shown."""
        await self._say(decision, "activate")

    async def guarantee(self) -> Guarantee:
        """Return what is promised about feedback, and why."""
        return calls.guarantee(await self._get("privacy"))

    async def certificate(self, *, segment: str | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        With segments each has its own.
        """
        document: JSON | None = (await self._get("privacy", segment=segment))["certificate"]
        if document is None:
            why = "there is no certificate of all segments together: give a segment."
            raise self._client.errors.input(why)
        return document

    async def answer(self, confidence: float = 0.95, *, segment: str | None = None) -> JSON:
        """Return which arm is best, if that can be said, and what is known of each."""
        return await self._get("answer", confidence=confidence, segment=segment)

    async def results(self, *, segment: str | None = None) -> JSON:
        """Return what was learned: shares, means with intervals, the regret bound."""
        return await self._get("results", segment=segment)

    async def show(self) -> JSON:
        """Return the experiment as the service describes it: arms, counts, settings."""
        return await self._ask(Call("GET", self._path))

    async def stop(self) -> None:
        """Decide nothing more."""
        await self._ask(Call("POST", f"{self._path}/stop"))


class Experiment(_Experiment):
    """An experiment in the service, used like a ``PrivateBandit``."""

    decide = waiting(AsyncExperiment.decide)
    observe = waiting(AsyncExperiment.observe)
    observe_all = waiting(AsyncExperiment.observe_all)
    report = waiting(AsyncExperiment.report)
    give_up = waiting(AsyncExperiment.give_up)
    activate = waiting(AsyncExperiment.activate)
    certificate = waiting(AsyncExperiment.certificate)
    answer = waiting(AsyncExperiment.answer)
    results = waiting(AsyncExperiment.results)
    show = waiting(AsyncExperiment.show)
    stop = waiting(AsyncExperiment.stop)

    def block(
        self,
        count: int = DEFAULT_COUNT,
        *,
        segment: str | None = None,
        eligible: Iterable[str | int] | None = None,
    ) -> Block:
        """Return decisions that are fetched ``count`` at a time and used without a round trip.

        Feedback is sent as usual. The experiment needs ``deadline_seconds``.
        """
        return Block(Stock(self._ask, self._path, count, segment, eligible))

    @property
    def arms(self) -> tuple[str | int, ...]:
        """The arms."""
        return tuple(self.show()["arms"])

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return int(self.show()["decided"])

    @property
    def released(self) -> int:
        """Batches released so far."""
        return int(self.show()["released"])

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about feedback, and why."""
        return calls.guarantee(at_once(self._get("privacy")))


def _event_of(decision: Decision | str) -> str:
    return decision if isinstance(decision, str) else decision.event_id
