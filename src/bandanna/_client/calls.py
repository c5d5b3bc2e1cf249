"""What is sent to the service and what its answers mean, without sending anything."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any, NamedTuple

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


def decision(answer: JSON) -> Decision:
    """Read a decision; fields that are not known here are left out."""
    return Decision(**{name: answer[name] for name in Decision._fields if name in answer})


def guarantee(answer: JSON) -> Guarantee:
    """Read a guarantee; fields that are not known here are left out."""
    promise = answer["guarantee"] | {"assumptions": tuple(answer["guarantee"]["assumptions"])}
    known = Guarantee.__dataclass_fields__
    return Guarantee(**{name: value for name, value in promise.items() if name in known})


UNNAMED_FEEDBACK = (
    "give the feedback by name: observe(decision, loss=...) or observe(decision, reward=...). "
    "A number alone does not say whether more of it is better."
)


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
