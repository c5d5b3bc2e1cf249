"""Below eps = T^-1/2: central privacy learns, local privacy cannot."""

from __future__ import annotations

from bandanna._core.types import JSON
from bandanna.environments import Bernoulli
from bandanna.policy import PrivateBandit
from bandanna.studies.figures import fit_slope
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point
from research.rates import Measured, measure


def reproduce(quick: bool) -> Reproduction:
    """Let T grow with eps = T^-power, and watch the regret as a share of uniform play's."""
    settings = frozen_settings("separation", quick)
    shares = {
        algorithm: [(rounds, _share(algorithm, rounds, settings)) for rounds in horizons]
        for algorithm, horizons in settings["horizons"].items()
    }
    power = settings["power"]
    rows, drawn = [], []
    for algorithm, points in shares.items():
        for rounds, share in points:
            low, high = share.interval
            cells = [algorithm, f"{rounds:,}", f"{rounds**-power:.2g}", f"{share.mean:.1%}"]
            rows.append([*cells, f"{share.error:.1%}"])
            drawn.append(Point("", algorithm, rounds, share.mean, max(low, 1e-3), high))
    return Reproduction(
        name="separation",
        claim=f"at eps = T^-{power:g} central regret is sublinear and local regret linear",
        headings=["algorithm", "T", "eps", "share of uniform play's regret", "s.e."],
        rows=rows,
        verdicts=[
            _central(name, points, settings["falls"])
            if name in settings["central"]
            else _local(name, points, settings["stays"])
            for name, points in shares.items()
        ],
        settings=settings,
        figure=Figure(f"eps = T^-{power:g}", "rounds T", "regret / regret of uniform play", drawn),
    )


def _share(algorithm: str, rounds: int, settings: JSON) -> Measured:
    """Measure regret as a share of the uniform player's, which is linear in T."""
    arms, gap = settings["arms"], settings["gap"]
    policy = PrivateBandit(arms, rounds ** -settings["power"], rounds, algorithm)
    runs = settings["replicates" if policy.batch > 1 else "local_replicates"]
    found = measure(policy, Bernoulli(arms, rounds, gap=gap), runs, settings["seed"])
    uniform = rounds * gap * (arms - 1) / arms
    return Measured(found.mean / uniform, found.error / uniform)


def _central(name: str, points: list[tuple[int, Measured]], falls: float) -> Verdict:
    slope = fit_slope(
        [rounds for rounds, _ in points],
        [share.mean for _, share in points],
        [share.error for _, share in points],
    )
    assert slope is not None
    first, last = points[0], points[-1]
    return Verdict(
        f"{name}: regret is sublinear, its share of T falling as a power of T",
        f"{first[1].mean:.0%} at T = {first[0]:.0e} to {last[1].mean:.0%} at {last[0]:.0e}, "
        f"exponent {slope.value:.2f}, 95% interval {slope.low:.2f} to {slope.high:.2f}",
        f"the whole interval below {falls:g}",
        slope.high < falls,
    )


def _local(name: str, points: list[tuple[int, Measured]], stays: float) -> Verdict:
    smallest = min(points, key=lambda point: point[1].mean)
    return Verdict(
        f"{name}: regret is linear, that of uniform play at every T",
        f"at least {smallest[1].mean:.1%} of it, at T = {smallest[0]:.0e}",
        f"at least {stays:.0%}",
        smallest[1].mean >= stays,
    )
