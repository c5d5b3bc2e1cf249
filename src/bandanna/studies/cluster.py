"""A Dask cluster, by address: reached quickly or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bandanna._core.extras import need
from bandanna._core.types import BandannaError, InputError
from bandanna.version import __version__

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 4.0
"""Seconds to wait for the scheduler, and again for its first worker."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler whose workers run this version of Bandanna."""
    need("cluster", "a cluster")
    from distributed import CancelledError, Client, KilledWorker

    _probe(address)
    client = Client(address, timeout=PATIENCE, set_as_default=False)
    try:
        _check_workers(client, address)
        yield client
    except (CancelledError, KilledWorker) as error:
        raise BandannaError(
            f"the cluster at {address} was lost ({str(error).splitlines()[0]}). Finished cells "
            f"are kept; the same command goes on."
        ) from None
    finally:
        client.close(timeout=PATIENCE)


def _probe(address: str) -> None:
    """Ask who is there, first: a client waits long for something that is no scheduler."""
    from distributed.core import rpc

    async def ask() -> str:
        async with rpc(address) as server:
            return str((await server.identity())["type"])

    try:
        kind = asyncio.run(asyncio.wait_for(ask(), PATIENCE))
    except Exception as error:  # whatever answers may say anything
        kind = f"{type(error).__name__} {error}".splitlines()[0]
    if kind != "Scheduler":
        raise InputError(
            f"no Dask scheduler answers at {address!r}; it should look like tcp://host:8786 "
            f"({kind.strip()})."
        )


def _check_workers(client: Client, address: str) -> None:
    """Require a worker, and this version everywhere: others might give other numbers."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InputError(f"the scheduler at {address} has no workers; start one.") from None
    for worker, version in client.run(_version, on_error="return").items():
        if version != __version__:
            raise InputError(
                f"worker {worker} runs another Bandanna or none ({version}); here it is "
                f"{__version__}, and the numbers must not depend on who runs them."
            )


def _version() -> str:
    return __version__
