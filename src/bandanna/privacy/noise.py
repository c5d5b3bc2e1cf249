"""Exact noise on integers; single Laplace draws are taken ahead in small blocks.

The sampler is OpenDP's: exact on 64-bit integers, fed by the operating system. Crossing into it
costs ten times more than a sample, so a block of samples is drawn at once and each is handed out
exactly once. That also takes the sampler's running time away from the moment a batch closes. The
reserve lives in the memory of one process: it is never saved, and a forked child throws its copy
away, because noise used twice can be subtracted. (A snapshot of a whole machine copies it all the
same; do not resume one twice.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache

BLOCK = 32

FARTHEST = 2**62
"""Noisy sums are cut off here; exact sums are below half of it."""

_reserve: dict[tuple[int, float], list[int]] = {}


def discrete_laplace_noise(scale: float) -> int:
    """Return a fresh integer z, drawn with probability proportional to exp(-|z| / scale)."""
    # The process is part of the key: some servers fork without telling Python.
    waiting = _reserve.setdefault((os.getpid(), scale), [])
    try:
        return waiting.pop()
    except IndexError:
        first, *rest = _sampler(scale)([0] * BLOCK)
        waiting.extend(rest)
        return int(first)


def within_reach(noisy: int) -> int:
    """Cut off a noisy sum.

    The sampler saturates at the ends of 64-bit integers, where adding a sum would show it; cut
    off well before, everything beyond is one value, whatever the sum.
    """
    return min(max(noisy, -FARTHEST), FARTHEST)


def with_noise(sums: Iterable[int], scale: float, *, gaussian: bool = False) -> list[int]:
    """Return sums, each with a fresh integer added and cut off.

    Drawn with probability proportional to exp(-|z| / scale), or to exp(-z^2 / 2 scale^2).
    """
    exact = [int(one) for one in sums]
    noise = _sampler(scale, gaussian)([0] * len(exact))
    return [within_reach(one + drawn) for one, drawn in zip(exact, noise, strict=True)]


@lru_cache(maxsize=64)
def _sampler(scale: float, gaussian: bool = False) -> Callable[[list[int]], list[int]]:
    # Loaded when first used, without OpenDP's prelude: that loads pandas, polars and scikit-learn.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    # T="i64" throughout: OpenDP's default integer has 32 bits, too few for sums in grid units.
    domain = vector_domain(atom_domain(T="i64"))
    sampler: Callable[[list[int]], list[int]] = (
        make_gaussian(domain, l2_distance(T="i64"), scale=scale)
        if gaussian
        else make_laplace(domain, l1_distance(T="i64"), scale=scale)
    )
    return sampler


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_reserve.clear)
