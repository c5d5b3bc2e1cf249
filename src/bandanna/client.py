"""The decision service as a Python object, with the same ``decide`` and ``observe`` as a policy.

The client itself is in ``bandanna._client``, which is also a package of its own,
``bandanna-client``, for programs that need nothing else of the library. Here it raises the
library's errors and returns its guarantees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from bandanna._client import AsyncClient as _AsyncClient
from bandanna._client import AsyncExperiment as _AsyncExperiment
from bandanna._client import Client as _Client
from bandanna._client import Decision as RemoteDecision
from bandanna._client import Errors, Experiment
from bandanna._client.waiting import at_once
from bandanna._core.extras import need
from bandanna._core.types import JSON, BandannaError, DecisionError, Guarantee, InputError

__all__ = ["AsyncClient", "Client", "RemoteBandit", "RemoteDecision", "ServiceError"]


class ServiceError(BandannaError):
    """The service did not answer, or refused."""

    status: int | None = None
    """The status code of the response, if there was one."""


ERRORS = Errors(ServiceError, DecisionError, InputError)


class RemoteBandit(Experiment):
    """An experiment in the service, used like a ``PrivateBandit``."""

    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """What is promised about feedback, and why."""
        return _guarantee(at_once(self._get("privacy")))


class Client(_Client):
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

    Examples
    --------
    >>> import bandanna as bd
    >>> client = bd.Client("http://127.0.0.1:8000", "bdn_...")
    >>> bandit = client.experiment("exp_1")
    """

    errors: ClassVar[Errors] = ERRORS

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        need("client", "a client of the decision service")
        super().__init__(url, key, patience=patience)

    def experiment(self, identity: str) -> RemoteBandit:
        """Return an experiment that exists; nothing is sent yet."""
        return RemoteBandit(self, identity)

    def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> RemoteBandit:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment(super().create(name, arms, epsilon, **other).id)


class AsyncRemoteBandit(_AsyncExperiment):
    """An experiment in the service, for ``async`` programs."""

    async def guarantee(self) -> Guarantee:  # type: ignore[override]
        """Return what is promised about feedback, and why."""
        return _guarantee(await self._get("privacy"))


class AsyncClient(_AsyncClient):
    """A connection to the decision service for ``async`` programs.

    The same as ``Client``, with methods that are awaited.

    Examples
    --------
    >>> import bandanna as bd
    >>> async def choose() -> str:
    ...     async with bd.AsyncClient("http://127.0.0.1:8000", "bdn_...") as client:
    ...         return (await client.experiment("exp_1").decide()).arm
    """

    errors: ClassVar[Errors] = ERRORS

    def __init__(self, url: str | Sequence[str], key: str, *, patience: float = 30.0) -> None:
        need("client", "a client of the decision service")
        super().__init__(url, key, patience=patience)

    def experiment(self, identity: str) -> AsyncRemoteBandit:
        """Return an experiment that exists; nothing is sent yet."""
        return AsyncRemoteBandit(self, identity)

    async def create(
        self, name: str, arms: int | list[str], epsilon: float, **other: object
    ) -> AsyncRemoteBandit:
        """Make an experiment; ``other`` are the further fields of ``POST /v1/experiments``."""
        return self.experiment((await super().create(name, arms, epsilon, **other)).id)


def _guarantee(answer: JSON) -> Guarantee:
    promise = answer["guarantee"]
    return Guarantee(**(promise | {"assumptions": tuple(promise["assumptions"])}))
