"""What the paper claims, measured: one module for each name, its settings frozen in a file."""

from __future__ import annotations

from importlib import import_module

from bandanna._core.types import InputError
from bandanna.reproduce.verdicts import Reproduction, Verdict, frozen_settings
from bandanna.simulation.progress import Progress

REPRODUCTIONS: dict[str, str] = {
    "rates": "regret grows as T^1/2, eps^-1/2 and K^1/2",
    "separation": "below eps = T^-1/2 central privacy still learns and local privacy does not",
    "bounds": "the table of upper bounds, as numbers, and no measured regret above them",
    "regimes": "which algorithm with expert advice is best where (the paper's table)",
    "conversion": "the best batch is near 1/eps",
    "one-bit": "our release has less regret than the paper's",
    "leakage": "EXP3 without noise leaks more and more (the paper's figure)",
    "people": "protecting persons who come back costs no more than protecting rounds (ours)",
    "algorithms": "which algorithm has the least regret in which world (ours)",
    "experts": "which algorithm with experts has the least regret in which world (ours)",
    "phases": "what phases lose, and against the plain A/B test (ours)",
    "local": "what privacy on the device costs, and which algorithm suits it (ours)",
    "context": "deciding by context learns, with feedback or both protected (ours)",
    "limits": "no private algorithm of a certain kind has small regret",
}
"""Names and claims; each name is a module of this package with a function ``reproduce(quick)``."""

WITHOUT_FIGURE = ("bounds", "limits")


def reproduce(name: str, *, quick: bool = False) -> Reproduction:
    """Measure one of the paper's claims.

    Parameters
    ----------
    name
        One of ``REPRODUCTIONS``.
    quick
        Run a smaller version that takes seconds instead of minutes.
    """
    seconds = expected_seconds(name, quick=quick)
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    with Progress(seconds or None, label=f"measuring {name}", gathers=True):
        result: Reproduction = module.reproduce(quick)
    return result


def expected_seconds(name: str, *, quick: bool = False) -> float:
    """Guess how long a reproduction's simulations take on one core; 0 where there are none."""
    if name not in REPRODUCTIONS:
        raise InputError(f"reproduce what? There are {', '.join(REPRODUCTIONS)}; got {name!r}.")
    return float(frozen_settings(name, quick).get("seconds", 0.0))


__all__ = [
    "REPRODUCTIONS",
    "WITHOUT_FIGURE",
    "Reproduction",
    "Verdict",
    "expected_seconds",
    "reproduce",
]
