"""The two things a learner does, dispatched on its parameters.

``draw`` and ``update`` are written once for each learner and called from everywhere: the online
object, the simulator, other learners. Compiled code picks the right pair when it is compiled,
by the type of ``params``; plain Python picks it when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bandanna.compiled import dispatches, kernel, python_source
from bandanna.streams import Stream

Draw = Callable[[Any, Any, Stream], tuple[int, float]]
Update = Callable[[Any, Any, int, float, float], None]


class Steps(NamedTuple):
    """A learner's compiled pair."""

    draw: Draw
    update: Update


_STEPS: dict[type, Steps] = {}


def register(params: type, draw: Draw, update: Update) -> None:
    """Say which steps belong to a type of parameters."""
    _STEPS[params] = Steps(draw, update)


def draw(params: Any, state: Any, stream: Stream) -> tuple[int, float]:
    """Choose an arm; returns it with its importance, the number its loss is multiplied by."""
    return _STEPS[type(params)].draw(params, state, stream)


def update(params: Any, state: Any, arm: int, importance: float, loss: float) -> None:
    """Learn from one loss of an arm, with the importance that came with its draw."""
    _STEPS[type(params)].update(params, state, arm, importance, loss)


@dispatches(draw)
def _draw_overload(params: Any, state: Any, stream: Any) -> Any:
    return python_source(_STEPS[params.instance_class].draw)


@dispatches(update)
def _update_overload(params: Any, state: Any, arm: Any, importance: Any, loss: Any) -> Any:
    return python_source(_STEPS[params.instance_class].update)


@kernel
def draw_once(params: Any, state: Any, stream: Stream) -> tuple[int, float]:
    """Make one draw, from Python."""
    return draw(params, state, stream)


@kernel
def update_once(params: Any, state: Any, arm: int, importance: float, loss: float) -> None:
    """Make one update, from Python."""
    update(params, state, arm, importance, loss)
