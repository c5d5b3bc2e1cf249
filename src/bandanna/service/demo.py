"""A simulated population that takes part in an experiment, to show the page at work."""

from __future__ import annotations

import asyncio
import random

from bandanna.service.core import Core
from bandanna.store import ConflictError, StoreUnavailableError
from bandanna.store.contract import GoneError
from bandanna.store.unit import NewFeedback

ARMS = {"green": 0.45, "blue": 0.55, "red": 0.75}
"""How often each disappoints."""

PAUSE_SECONDS = 0.02


async def play(core: Core) -> None:
    """Make an experiment and play people against it until the service stops."""
    settings = {"arms": list(ARMS), "epsilon": 1.0, "rounds": 100_000, "deadline_seconds": 5.0}
    made, _ = await core.create("demonstration", settings)
    people = random.Random(1)  # noqa: S311
    while not core.closing.is_set():
        try:
            event = await core.decide(made[0].id)
            if people.random() < 0.9:  # some never answer
                unhappy = people.random() < list(ARMS.values())[event.arm]
                await core.reward(event.id, NewFeedback(float(unhappy)))
        except ConflictError:
            return  # it was stopped
        except (GoneError, StoreUnavailableError):
            pass  # a slow moment: the next one comes
        await asyncio.sleep(PAUSE_SECONDS)
