"""Functions for compiled code that are dispatched on the type of their first argument.

Learners, releases, environments and plays each do a few things: a learner draws and updates, a
release publishes. Callers write ``draw(params, ...)``; compiled code picks the step when it is
compiled, by the type of ``params``, and inlines it; plain Python picks it when it is called. So
one engine serves all, and a new kind is a file and a registration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar, cast

from bandanna._core.compiled import dispatches, python_source
from bandanna._core.kernel_cache import note_step
from bandanna._core.types import InputError

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Dispatched(Protocol[P, R_co]):
    """A function with a register of what to call for which type."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the step that belongs to the type of the first argument."""

    def register(self, kind: type, step: Callable[..., object]) -> None:
        """Say which step belongs to a type, a named tuple."""


class NumbaType(Protocol):
    """How Numba sees a named tuple."""

    instance_class: type


def dispatched(stub: Callable[P, R]) -> Dispatched[P, R]:
    """Make a function that is written once for each type; the stub gives its name and meaning."""
    steps: dict[type, Callable[..., object]] = {}

    def find(kind: type) -> Callable[..., object]:
        if kind not in steps:
            raise TypeError(f"no {stub.__name__} is registered for {kind.__name__}")
        return steps[kind]

    @functools.wraps(stub)
    def chosen(*args: object) -> object:
        return find(type(args[0]))(*args)

    @dispatches(chosen)
    def choose(*types: NumbaType) -> Callable[..., object]:
        return python_source(find(types[0].instance_class))

    def register(kind: type, step: Callable[..., object]) -> None:
        # Machine code on disk is found by types: one type, one step.
        if steps.setdefault(kind, step) is not step:
            raise InputError(f"{kind.__name__} has its {stub.__name__} already.")
        note_step(kind, step)

    chosen.register = register  # type: ignore[attr-defined]
    return cast(Dispatched[P, R], chosen)
