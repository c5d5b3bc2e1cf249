"""Attacks on our own releases: where each is weakest, and whether its sampler follows its law."""

from __future__ import annotations

import numpy as np

from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.audits.attack import SIGNIFICANCE, AuditResult, Mechanism, audit
from bandanna.privacy.compiled import publish_many
from bandanna.privacy.sums import SeededRelease, SumRelease


def audit_release(
    release: SumRelease,
    *,
    draws: int = 1_000_000,
    significance: float = SIGNIFICANCE,
    exact: bool = False,
    seed: int = 0,
) -> AuditResult:
    """Attack a release where it is weakest: a batch of zeros against one with a single loss of 1.

    ``exact`` draws the noise that protects people, which takes longer.
    """

    def runs(total: int, role: int) -> Mechanism:
        if exact:
            return lambda: release.release(total)
        stream = new_stream([seed, role])
        fast = release.fast()
        return lambda count: publish_many(fast, total, release.batch, count, stream)

    promise = release.guarantee()
    if isinstance(release, SeededRelease) or not promise.private:
        raise InputError("this release promises nothing, so there is nothing to audit.")
    first, second = release.neighbours()
    return audit(
        runs(first, 0),
        runs(second, 1),
        promise.epsilon,
        draws=draws,
        significance=significance,
        delta=promise.delta,
    )


def sampler_fit(release: SumRelease, *, draws: int, exact: bool = False, seed: int = 0) -> float:
    """Return the p-value of a chi-square test of a release's sampler against its exact law.

    Tiny values (below 1e-6, say) mean that the sampler is wrong.
    """
    from scipy import stats

    total = release.batch * UNITS // 3
    if exact:
        values = np.array([release.release(total) for _ in range(draws)])
    else:
        values = publish_many(release.fast(), total, release.batch, draws, new_stream([seed, 2]))
    edges, chances = release.bins(total)
    observed = np.bincount(np.searchsorted(edges, values), minlength=chances.size)
    return float(stats.chisquare(observed, chances * draws).pvalue)
