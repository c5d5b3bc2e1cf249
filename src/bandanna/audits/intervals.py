"""Clopper and Pearson's exact confidence limits for a probability."""

from __future__ import annotations


def lower_limit(hits: int, draws: int, level: float) -> float:
    """Return what the probability is above, but for a chance of ``level``."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, draws - hits + 1, level)) if hits > 0 else 0.0


def upper_limit(hits: int, draws: int, level: float) -> float:
    """Return what the probability is below, but for a chance of ``level``."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, draws - hits, 1 - level)) if hits < draws else 1.0


def z_score(level: float) -> float:
    """Return what a standard normal variable exceeds with a chance of ``level``."""
    from scipy.special import ndtri

    return float(-ndtri(level))
