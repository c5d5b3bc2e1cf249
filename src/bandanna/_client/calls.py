"""What is sent to the service and what its answers mean, without sending anything."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

JSON = dict[str, Any]

PASSING = (429, 500, 502, 503, 504)
"""Answers that another attempt may change."""

MOST_LINES = 5_000
"""Feedback that is sent in one request."""

LONGEST_PAUSE = 2.0
"""Seconds between two attempts, unless the service asks for more."""


class ClientError(Exception):
    """Anything that went wrong; the message says what, and never repeats feedback."""


class ServiceError(ClientError):
    """The service did not answer, or refused."""

    status: int | None = None
    """The status code of the response, if there was one."""


class InputError(ClientError, ValueError):
    """A value that cannot be used. Nothing was changed."""


class DecisionError(ClientError):
    """Feedback that does not belong to a waiting decision. Nothing was changed."""


class Errors(NamedTuple):
    """The classes that a client raises."""

    service: type[Exception] = ServiceError
    decision: type[Exception] = DecisionError
    input: type[Exception] = InputError


class Decision(NamedTuple):
    """One choice; hand it back to ``observe``. It holds nothing private."""

    arm: str | int
    event_id: str
    chance: float | None = None
    """The probability with which the arm was drawn, where it is known."""
    expires_at: str | None = None
    release: JSON | None = None
    """With local privacy: the numbers that the person's device draws its bit by."""
    signature: str | None = None
    key_id: str | None = None


@dataclass(frozen=True)
class Guarantee:
    """What the service promises about feedback, and why."""

    epsilon: float
    delta: float
    protects: str
    model: str
    mechanism: str
    because: str
    assumptions: tuple[str, ...] = ()


class Call(NamedTuple):
    """A request."""

    method: str
    path: str
    body: JSON | None = None
    again: bool = True
    """Whether it may be sent again when it is not known whether it arrived."""
    headers: dict[str, str] | None = None
    lines: list[JSON] | None = None
    """In place of a body: documents, one a line."""

    @property
    def content(self) -> bytes | None:
        """What is sent where it is no single document."""
        return (
            None if self.lines is None else b"\n".join(json.dumps(x).encode() for x in self.lines)
        )


class Attempts:
    """How often a call may still be sent, and how long to wait before.

    Parameters
    ----------
    patience
        Seconds after which a call is not sent again.
    now
        The time at which the first attempt begins.
    """

    def __init__(self, patience: float, now: float) -> None:
        self._until = now + patience
        self._pause = 0.05
        self._moved = 0

    def elsewhere(self, servers: int) -> bool:
        """Whether another server should be asked at once: not when all were."""
        self._moved += 1
        return self._moved % servers != 0

    def pause(self, now: float, asked: str | None = None) -> float | None:
        """Return how many seconds to wait before the next attempt; None if there is none.

        ``asked`` is what the service's ``Retry-After`` says.
        """
        pause = self._pause * (0.5 + random.random())  # noqa: S311
        if asked is not None and asked.isdecimal():
            pause = max(pause, float(asked))
        self._pause = min(2.0 * self._pause, LONGEST_PAUSE)
        return pause if now + pause <= self._until else None


def create(name: str, arms: int | list[str], epsilon: float, other: JSON) -> Call:
    """Make an experiment, under a key that makes repeats harmless."""
    body = {"name": name, "arms": arms, "epsilon": epsilon} | other
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    return Call("POST", "/v1/experiments", body, headers=headers)


def decide(
    path: str,
    advice: object,
    person: str | int | None,
    segment: str | None,
    eligible: Iterable[str | int] | Mapping[str | int, bool] | None,
    context: Mapping[str, object] | None,
    event_id: str | None,
    before: float | None = None,
) -> Call:
    """Ask for a decision, under an id that makes repeats harmless."""
    body: JSON = {"event_id": event_id or f"evt_{secrets.token_hex(12)}"}
    if person is not None:
        body["person"] = str(person)
    if segment is not None:
        body["segment"] = segment
    if eligible is not None:
        if isinstance(eligible, Mapping):
            eligible = [arm for arm, may in eligible.items() if may]
        body["eligible"] = list(eligible)
    if context is not None:
        body["context"] = dict(context)
    if before is not None:
        body["before"] = before
    if advice is not None:
        body["advice"] = advice
    return Call("POST", f"{path}/decisions", body)


def decision(answer: JSON) -> Decision:
    """Read a decision; fields that are not known here are left out."""
    return Decision(**{name: answer[name] for name in Decision._fields if name in answer})


UNNAMED_FEEDBACK = (
    "give the feedback by name: observe(decision, loss=...) or observe(decision, reward=...). "
    "A number alone does not say whether more of it is better."
)


def reward(
    event: str,
    loss: float | None,
    reward: float | None,
    errors: Errors,
    path: str = "/v1",
    metrics: Mapping[str, float] | None = None,
) -> Call:
    """Send the feedback of an event, in the experiment of a path or in the only one that has it."""
    if (loss is None) == (reward is None):
        raise errors.input("give the feedback as loss= or reward=, one of them.")
    body: JSON = {"loss": loss} if reward is None else {"reward": reward}
    if metrics is not None:
        body["metrics"] = dict(metrics)
    return Call("POST", f"{path}/events/{quote(event, safe='')}/reward", body)


def reward_lines(
    path: str, rewards: Mapping[str, float], losses: Mapping[str, float]
) -> list[Call]:
    """Send feedback in bulk, some thousand lines at a time."""
    rows = [{"event_id": event, "reward": value} for event, value in rewards.items()]
    rows += [{"event_id": event, "loss": value} for event, value in losses.items()]
    return [
        Call("POST", f"{path}/rewards", lines=rows[k : k + MOST_LINES])
        for k in range(0, len(rows), MOST_LINES)
    ]


def report_lines(path: str, lines: Iterable[Mapping[str, object]]) -> list[Call]:
    """Report in bulk, some thousand lines at a time."""
    rows = [dict(line) for line in lines]
    return [
        Call("POST", f"{path}/feedback", lines=rows[k : k + MOST_LINES])
        for k in range(0, len(rows), MOST_LINES)
    ]


def refused_reports(answer: JSON, before: int) -> dict[int, str]:
    """Read the answer to reports: what was refused, by place, after so many lines before them."""
    return {before + one["line"] - 1: one["detail"] for one in answer["refused"]}


def verdicts(answer: JSON) -> dict[str, str]:
    """Read the answer to feedback in bulk: what was refused, by event."""
    return {one["event_id"]: one["detail"] for one in answer["lines"] if one["status"] != 204}


def about_event(path: str, decision: Decision | str, verb: str) -> Call:
    """Say something about an event that has no content."""
    return Call("POST", f"{path}/events/{quote(event_of(decision), safe='')}/{verb}")


def privacy(path: str, segment: str | None = None) -> Call:
    """Ask what is promised."""
    return Call("GET", f"{path}/privacy{_which(segment)}")


def answer(path: str, confidence: float, segment: str | None = None) -> Call:
    """Ask which arm is best."""
    asked = f"{path}/answer?confidence={confidence}"
    return Call("GET", asked if segment is None else f"{asked}&segment={quote(segment, safe='')}")


def results(path: str, segment: str | None = None) -> Call:
    """Ask what was learned."""
    return Call("GET", f"{path}/results{_which(segment)}")


def _which(segment: str | None) -> str:
    return "" if segment is None else f"?segment={quote(segment, safe='')}"


def certificate(answer: JSON, errors: Errors) -> JSON:
    """Read a certificate, if there is one."""
    document: JSON | None = answer["certificate"]
    if document is None:
        raise errors.input("there is no certificate of all segments together: give a segment.")
    return document


def guarantee(answer: JSON) -> Guarantee:
    """Read a guarantee; fields that are not known here are left out."""
    promise = answer["guarantee"] | {"assumptions": tuple(answer["guarantee"]["assumptions"])}
    known = Guarantee.__dataclass_fields__
    return Guarantee(**{name: value for name, value in promise.items() if name in known})


def event_of(decision: Decision | str) -> str:
    """Return the id that feedback is sent to."""
    return decision if isinstance(decision, str) else decision.event_id


def refusal(status: int, detail: str | None, errors: Errors) -> Exception:
    """Return the error that an answer stands for."""
    text = detail or f"the service answered {status}."
    if status in (409, 410):
        return errors.decision(text)
    if status == 422:
        return errors.input(text)
    error = errors.service(text)
    error.status = status  # type: ignore[attr-defined]
    return error
