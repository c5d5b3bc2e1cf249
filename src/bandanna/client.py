"""The decision service as a Python object: decide and observe as on a policy of one's own."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import quote

from bandanna._core.extras import need
from bandanna._core.types import JSON, ArmName, BandannaError, DecisionError, Guarantee, InputError

if TYPE_CHECKING:
    import httpx

PASSING = (429, 500, 502, 503, 504)
"""Answers that another attempt may change."""


class ServiceError(BandannaError):
    """The service did not answer, or refused."""

    status: int | None = None
    """Of its answer, if there was one."""


class RemoteDecision(NamedTuple):
    """One choice; hand it back to ``observe``. It holds nothing private."""

    arm: ArmName
    event_id: str
    chance: float | None
    expires_at: str | None


class Client:
    """A connection to the decision service.

    Whatever fails for a while is tried again, with the same ids: nothing is decided or counted
    twice.

    Parameters
    ----------
    url
        Where the service is.
    key
        A key to it.
    patience
        Seconds for which a request is tried again.

    Examples
    --------
    >>> import bandanna as bd
    >>> client = bd.Client("http://127.0.0.1:8000", "bdn_...")
    >>> bandit = client.experiment("exp_1")
    """

    def __init__(self, url: str, key: str, *, patience: float = 30.0) -> None:
        need("client", "a client of the decision service")
        import httpx

        self._patience = patience
        headers = {"Authorization": f"Bearer {key}"}
        self._http: httpx.Client = httpx.Client(base_url=url, headers=headers, timeout=10.0)

    def experiment(self, identity: str) -> RemoteBandit:
        """Return an experiment that exists; nothing is sent yet."""
        return RemoteBandit(self, identity)

    def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> RemoteBandit:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        body = {"name": name, "arms": arms, "epsilon": epsilon} | other
        return RemoteBandit(
            self, str(self.send("POST", "/v1/experiments", body, again=False)["id"])
        )

    def reward(self, event: str, loss: float | None = None, *, reward: float | None = None) -> None:
        """Send the feedback of an event: once, in any order."""
        if (loss is None) == (reward is None):
            raise InputError("give the feedback as loss= or reward=, one of them.")
        body = {"loss": loss} if reward is None else {"reward": reward}
        self.send("POST", f"/v1/events/{quote(event, safe='')}/reward", body)

    def send(self, method: str, path: str, body: JSON | None = None, *, again: bool = True) -> JSON:
        """Send a request, again and again while that may help; returns what was answered."""
        import httpx

        until, pause = time.monotonic() + self._patience, 0.05
        while True:
            answer: httpx.Response | None = None
            trouble = "did not answer"
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                trouble = f"did not answer ({type(error).__name__})"
            if answer is not None and answer.status_code not in PASSING:
                return _content(answer)
            if not again or time.monotonic() + pause > until:
                if answer is not None:
                    return _content(answer)
                raise ServiceError(f"the service {trouble}.") from None
            time.sleep(pause * (0.5 + random.random()))  # noqa: S311
            pause = min(2 * pause, 2.0)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class RemoteBandit:
    """An experiment in the service, used like a ``PrivateBandit``."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self.id = identity
        self._path = f"/v1/experiments/{identity}"

    def decide(
        self,
        advice: object = None,
        *,
        person: str | int | None = None,
        segment: str | None = None,
        eligible: Iterable[ArmName] | None = None,
        event_id: str | None = None,
    ) -> RemoteDecision:
        """Choose an arm, among the eligible ones; the same ``event_id`` gets the same answer."""
        body: JSON = {"event_id": event_id or f"evt_{secrets.token_hex(12)}"}
        if person is not None:
            body["person"] = str(person)
        if segment is not None:
            body["segment"] = segment
        if eligible is not None:
            body["eligible"] = list(eligible)
        if advice is not None:
            body["advice"] = advice
        return RemoteDecision(**self._client.send("POST", f"{self._path}/decisions", body))

    def observe(
        self,
        decision: RemoteDecision | str,
        loss: float | None = None,
        *,
        reward: float | None = None,
    ) -> None:
        """Send the feedback of a decision, or of an event id: once, in any order."""
        event = decision if isinstance(decision, str) else decision.event_id
        self._client.reward(event, loss, reward=reward)

    def give_up(self, decision: RemoteDecision | str) -> None:
        """Count the default loss for feedback that has not come; where it has, nothing happens."""
        default = self._show()["settings"]["default_loss"]
        try:
            self.observe(decision, loss=default)
        except DecisionError:
            return

    def activate(self, decision: RemoteDecision | str) -> None:
        """Say that a deferred decision has been shown."""
        event = decision if isinstance(decision, str) else decision.event_id
        self._client.send("POST", f"/v1/events/{event}/activate")

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """The arms."""
        return tuple(self._show()["arms"])

    @property
    def decided(self) -> int:
        """Decisions made so far."""
        return int(self._show()["decided"])

    @property
    def released(self) -> int:
        """Batches released so far."""
        return int(self._show()["released"])

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one round's feedback, and why."""
        found = self._client.send("GET", f"{self._path}/privacy")["guarantee"]
        return Guarantee(**(found | {"assumptions": tuple(found["assumptions"])}))

    def certificate(self, *, segment: str | None = None) -> JSON:
        """Return the guarantee as a document that ``bandanna verify`` can check.

        With segments each has its own.
        """
        which = "" if segment is None else f"?segment={quote(segment, safe='')}"
        found: JSON | None = self._client.send("GET", f"{self._path}/privacy{which}")["certificate"]
        if found is None:
            raise InputError(
                "there is no certificate: give a segment where there are some; what was resumed "
                "from an older copy has none."
            )
        return found

    def stop(self) -> None:
        """Decide nothing more."""
        self._client.send("POST", f"{self._path}/stop")

    def _show(self) -> JSON:
        return self._client.send("GET", self._path)


def _content(answer: httpx.Response) -> JSON:
    """Return what was answered, or raise what a policy would."""
    if answer.is_success:
        found: JSON = answer.json() if answer.content else {}
        return found
    try:
        detail = str(answer.json()["detail"])
    except (ValueError, LookupError, TypeError):
        detail = f"the service answered {answer.status_code}."
    if answer.status_code in (409, 410):
        raise DecisionError(detail)
    if answer.status_code == 422:
        raise InputError(detail)
    error = ServiceError(detail)
    error.status = answer.status_code
    raise error
