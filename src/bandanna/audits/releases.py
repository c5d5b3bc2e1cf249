"""Attacks on our own releases: where each is weakest, and whether its sampler follows its law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.audits.attack import SIGNIFICANCE, AuditResult, Mechanism, audit
from bandanna.policy import Policy
from bandanna.privacy.charges import with_start
from bandanna.privacy.laplace import LaplaceRelease
from bandanna.privacy.release import publish_many
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


def audit_start(
    policy: Policy,
    *,
    draws: int = 1_000_000,
    significance: float = SIGNIFICANCE,
    seed: int = 0,
) -> AuditResult:
    """Attack a policy that started from a log through someone who is in both.

    Their outcome is in a sum of the log and in a batch of the run, and either all are 0 or theirs
    is the largest. The attack sees both releases. What is claimed is what the certificate states
    for people in both.

    Examples
    --------
    >>> import bandanna as bd
    >>> log = {"plan": ["A", "B"] * 50, "lost": [0.0, 1.0] * 50}
    >>> found = bd.answer(log, arm="plan", outcome="lost", epsilon=0.5)
    >>> policy = bd.PrivateBandit(["A", "B"], epsilon=1.0, rounds=1000, start_from=found)
    >>> result = audit_start(policy, draws=20_000)
    >>> result.claimed, result.passed
    (1.5, True)
    """
    start, release = policy.spec.start, policy.recipe.release
    if start is None or not isinstance(release, SumRelease):
        raise InputError("this policy did not start from a log; audit_policy attacks it.")
    log = LaplaceRelease(start.epsilon, 1, longest=2).fast()
    size, own = max(release.batch, 1), release.fast()

    def runs(units: int, role: int) -> Mechanism:
        first, second = new_stream([seed, role, 0]), new_stream([seed, role, 1])

        def published(count: int) -> NDArray[np.float64]:
            of_log = publish_many(log, units, 1, count, first)
            of_run = size * publish_many(own, units, size, count, second)
            return np.stack([of_log, of_run, of_log + of_run, np.minimum(of_log, of_run)], axis=1)

        return published

    return audit(
        runs(UNITS, 0),
        runs(0, 1),
        with_start(start.epsilon, policy.guarantee.epsilon),
        draws=draws,
        significance=significance,
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
