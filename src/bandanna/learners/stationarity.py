"""Whether an arm's releases are means of draws from one law: a test that needs nothing else.

Under stationarity every release of an arm is the mean of independent draws in [0, 1] with one mean,
plus discrete Laplace noise of known scale. So each new one is compared with all earlier ones of its
arm. The test looks at released values only: it costs no privacy and no exploration.

False alarms, over a whole run of any length, at most ``alpha``. Half of it is spent on the earlier
draws, ``alpha / (2 K)`` an arm, by a bound that holds at all times at once (their number is not
fixed in advance: it depends on what was seen). The other half is spent on the new draws, the new
noise and the sum of the old noise, ``alpha / (2 K r (r + 1))`` for an arm's comparison with ``r``
earlier releases, by bounds that hold for each. Proofs: ``docs/theory/stationary.md``.
"""

from __future__ import annotations

import math

from bandanna.compiled import step

MIXED = 25.0
"""Where the bound for all times is tightest: from about four times as many draws on."""


@step
def largest_difference(
    new: float, old: float, releases: float, epsilon: float, alpha: float, arms: int
) -> float:
    """Return how far a mean of ``new`` draws may be from one of ``old``, in so many releases."""
    level = math.log(12.0 * arms * releases * (releases + 1.0) / alpha)
    draws = math.sqrt(0.5 * level / new)
    noise = level / (epsilon * new)
    spread = 0.25 * old + MIXED
    at_all_times = math.log(2.0 * arms / alpha) + 0.5 * math.log(spread / MIXED)
    old_draws = math.sqrt(2.0 * spread * at_all_times) / old
    old_noise = (2.0 * math.sqrt(releases * level) + level) / (epsilon * old)
    return draws + noise + old_draws + old_noise
