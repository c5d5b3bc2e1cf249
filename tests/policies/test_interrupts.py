"""An interrupt between any two lines of the ledger: nothing counted twice, nothing stuck."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.policies import Policy, batch, ledger, player, policy
from bandanna.privacy import estimates, release
from tests.contracts.policies import PRIVATE, advise, make

FILES = {module.__file__ for module in (batch, ledger, player, policy, estimates, release)}


def interrupt_at(line: int, action: Callable[[], object]) -> bool:
    """Run an action and raise at the given line event of the watched files; whether it did."""
    seen = 0
    raised = False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal seen, raised
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raised = True
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return raised


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("what", ["decide", "observe"])
def test_an_interrupt_anywhere_is_survived(name: str, what: str) -> None:
    """Whatever line is hit: identities differ, batches close, no loss is counted twice."""
    advice = advise(name, np.random.default_rng(0))
    make(name).decide(advice)  # compiled before anything is interrupted
    warm = make(name)
    for _ in range(warm.batch):
        warm.observe(warm.decide(advice), loss=1.0)
    line = 1
    while True:
        player = make(name)
        sums: list[Any] = []
        _watch(player, sums)
        made: list[bd.Decision] = []
        if what == "decide":
            hit = interrupt_at(line, partial(_decide, player, advice, made))
        else:
            made = [player.decide(advice)]
            hit = interrupt_at(line, partial(player.observe, made[0], loss=1.0))
            player.observe(made[0], loss=1.0)
        while len(made) < 2 * player.batch:
            made.append(player.decide(advice))
        places = [(decision.batch, decision.position) for decision in made]
        assert len(set(places)) == len(places)
        for decision in made:
            player.observe(decision, loss=1.0)
        while player.waiting:  # a round that was decided and never handed out
            for number, open_batch in list(player._ledger.open.items()):
                _fill(player, open_batch, number)
        for total, scale, rounds in sums:
            assert total <= rounds
            assert scale is None or scale > 0
        if not hit:
            return
        line += 1


def _decide(player: Policy, advice: Any, made: list[bd.Decision]) -> None:
    made.append(player.decide(advice))


def _fill(player: Policy, open_batch: Any, number: int) -> None:
    for position in list(open_batch.waiting):
        if position < len(open_batch.losses):
            arm = open_batch.arms[position]
            first = open_batch.first
            decision = bd.Decision(
                player.arms[arm], arm, first + position, number, position, player._ledger.identity
            )
            player.give_up(decision)
        else:
            del open_batch.waiting[position]


def _watch(player: Policy, sums: list[Any]) -> None:
    """Write down what every release is given, in losses, with the noise it asks for."""
    inside = player._ledger.release
    give = inside.release  # type: ignore[attr-defined]

    def spy(total: Any, size: Any = None) -> Any:
        if isinstance(total, np.ndarray):
            sums.append((0, size if total.any() else None, player.batch))
        else:
            sums.append((total / 2**20, None, player.batch))
        return give(total, size)

    object.__setattr__(inside, "release", spy)
