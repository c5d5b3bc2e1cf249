"""Methods that wait, made of those that are awaited."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

Asynchronous = TypeVar("Asynchronous")
P = ParamSpec("P")
T = TypeVar("T")


def at_once(coroutine: Coroutine[object, None, T]) -> T:
    """Run what never waits for an event loop, and return its answer."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
    raise RuntimeError("it waits for an event loop; ask through AsyncClient.")


def waiting(
    method: Callable[Concatenate[Asynchronous, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[object, P], T]:
    """Return a method with the same parameters and answer that is not awaited."""

    @wraps(method)
    def waits(self: object, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return at_once(method(cast(Asynchronous, self), *args, **kwargs))

    return waits
