"""A client of Bandanna's decision service, for programs that wait and for programs that do not.

This folder imports nothing but httpx and the standard library. The library has it as
``bandanna.client``, with the library's own errors and guarantees; ``clients/python`` builds the
same files as a package of their own, ``bandanna-client``::

    from bandanna_client import Client

    with Client("http://127.0.0.1:8000", "bdn_...") as client:
        bandit = client.experiment("exp_1f0c9a")
        decision = bandit.decide()
        bandit.observe(decision, reward=1.0)
"""

from .block import AsyncBlock, Block
from .calls import ClientError, Decision, DecisionError, Errors, Guarantee, InputError, ServiceError
from .client import AsyncClient, AsyncExperiment, Client, Experiment

__all__ = [
    "AsyncBlock",
    "AsyncClient",
    "AsyncExperiment",
    "Block",
    "Client",
    "ClientError",
    "Decision",
    "DecisionError",
    "Errors",
    "Experiment",
    "Guarantee",
    "InputError",
    "ServiceError",
]
