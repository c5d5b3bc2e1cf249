"""The release of contextual policies: what one person moves, and certificates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna.privacy.calibration import SLACK, gaussian_delta, gaussian_multiplier
from bandanna.privacy.certificate import sealed, verify
from bandanna.privacy.epoch_sums import (
    Counts,
    EpochRelease,
    SeededEpochs,
    Statistics,
    count_once,
    new_counts,
    square_pairs,
)
from bandanna.privacy.epochs import (
    BOTH_MOVE,
    GRID,
    PRODUCT_UNITS,
    SUM_UNITS,
    EpochGaussian,
    EpochLaplace,
    Protects,
    laplace_move,
    person_entries,
)
from bandanna.privacy.mechanism import Finding, Numerics

FEATURES, ARMS = 4, 3
number = st.floats(-1e6, 1e6)
vector = st.lists(number, min_size=FEATURES, max_size=FEATURES)
person = st.tuples(vector, st.integers(0, ARMS - 1), st.integers(0, UNITS))


def counted(one: tuple[list[float], int, int], transform: np.ndarray, *, both: bool) -> Counts:
    counts = new_counts(transform, ARMS)
    phi, arm, loss = one
    count_once(np.array(phi), arm, loss, both, counts)
    return counts


def whole(array: np.ndarray) -> list[int]:
    return [int(value) for value in array.ravel()]


@settings(max_examples=300, deadline=None)
@given(person, person, st.lists(number, min_size=16, max_size=16))
def test_a_replaced_person_moves_products_and_sums_by_the_bound(
    one: tuple[list[float], int, int], two: tuple[list[float], int, int], entries: list[float]
) -> None:
    transform = np.array(entries).reshape(4, 4)
    first, second = (counted(each, transform, both=True) for each in (one, two))
    twice = np.where(square_pairs(FEATURES), 1, 2)
    moved = 0
    for a in range(ARMS):
        for i, pair in enumerate(whole(first.products[a] - second.products[a])):
            moved += int(twice[i]) * pair * pair * UNITS**2  # in units of sums, exactly
        moved += sum(value * value * GRID**2 for value in whole(first.sums[a] - second.sums[a]))
    # (9 sqrt(2) / 8)^2 = 81 / 32
    assert 32 * moved <= 81 * (PRODUCT_UNITS * UNITS) ** 2
    total = sum(abs(v) for v in whole(first.products - second.products)) * UNITS
    total += sum(abs(v) for v in whole(first.sums - second.sums)) * GRID
    assert total <= laplace_move(FEATURES, both=True) * PRODUCT_UNITS * UNITS


@settings(max_examples=200, deadline=None)
@given(person, st.integers(0, UNITS), st.lists(number, min_size=16, max_size=16))
def test_an_outcome_moves_sums_by_one(
    one: tuple[list[float], int, int], other: int, entries: list[float]
) -> None:
    transform = np.array(entries).reshape(4, 4)
    first = counted(one, transform, both=False)
    second = counted((*one[:2], other), transform, both=False)
    assert (first.products == second.products).all()
    moved = whole(first.sums - second.sums)
    assert sum(value * value for value in moved) <= SUM_UNITS**2
    assert sum(map(abs, moved)) <= laplace_move(FEATURES, both=False) * SUM_UNITS


def test_the_bound_is_nearly_reached() -> None:
    """Two people in the same arm at the angle of the proof: cosine 1/8, outcomes opposite."""
    angle = math.acos(1 / 8)
    first = counted(([1.0, 0, 0, 0], 0, 0), np.eye(4), both=True)
    second = counted(([math.cos(angle), math.sin(angle), 0, 0], 0, UNITS), np.eye(4), both=True)
    pairs = (first.products - second.products) / PRODUCT_UNITS
    twice = np.where(square_pairs(FEATURES), 1, 2)
    square = (pairs**2 * twice).sum() + (((first.sums - second.sums) / SUM_UNITS) ** 2).sum()
    assert BOTH_MOVE**2 * 0.999 < square <= BOTH_MOVE**2


@pytest.mark.parametrize("protects", ["feedback", "context and feedback"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_certificates_are_verified_and_changes_found(protects: Protects, delta: float) -> None:
    policy = bd.PrivateContextual(3, {"age": (0, 99)}, 0.5, delta, 5_000, protects)
    certificate = policy.certificate()
    findings = verify(json.dumps(certificate))
    assert findings
    assert all(finding.holds for finding in findings), findings
    for entry, factor in (("epsilon", 0.9), ("sums", 0.99), ("squares", 0.9), ("multiplier", 0.9)):
        wrong = {key: value for key, value in certificate.items() if key != "seals"}
        wrong[entry] *= factor
        assert not all(finding.holds for finding in verify(json.dumps(sealed(wrong)))), entry
    for entry, text in (("protects", "everything"), ("assumptions", []), ("because", "so")):
        wrong = {key: value for key, value in certificate.items() if key != "seals"}
        wrong[entry] = text
        assert not all(finding.holds for finding in verify(json.dumps(sealed(wrong)))), entry


def test_a_certificate_cannot_claim_the_other_promise() -> None:
    mine = bd.PrivateContextual(3, {"age": (0, 99)}, 0.5, 1e-6, 5_000).certificate()
    both = bd.PrivateContextual(
        3, {"age": (0, 99)}, 0.5, 1e-6, 5_000, "context and feedback"
    ).certificate()
    wrong = {key: value for key, value in mine.items() if key != "seals"}
    for entry in ("protects", "assumptions", "because", "mechanism"):
        wrong[entry] = both[entry]
    assert not all(finding.holds for finding in verify(json.dumps(sealed(wrong))))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_forms_have_the_right_spread(delta: float) -> None:
    """Standard deviations of exact and seeded noise; wrong by chance with probability 1e-6."""
    release = EpochRelease("context and feedback", 1.0, delta, arms=20, features=12)
    nothing = Statistics(np.zeros((20, 78), dtype=np.int64), np.zeros((20, 12), dtype=np.int64))
    square = square_pairs(12)
    for form in (release, SeededEpochs(release, new_stream(1))):
        noisy = [form.release(nothing) for _ in range(20)]
        sums = np.concatenate([one.sums.ravel() for one in noisy]) / SUM_UNITS
        squares = np.concatenate([one.products[:, square].ravel() for one in noisy])
        products = np.concatenate([one.products[:, ~square].ravel() for one in noisy])
        # 4,800 numbers at least: the mean square is within 5 deviations, kurtosis 6 at most
        margin = 5 * math.sqrt(5 / 4800)
        assert abs((sums**2).mean() / release.scale**2 - 1) < margin
        assert abs(((squares / PRODUCT_UNITS) ** 2).mean() / release.product_scale**2 - 1) < margin
        less = 2.0 if delta else 1.0
        found = less * ((products / PRODUCT_UNITS) ** 2).mean()
        assert abs(found / release.product_scale**2 - 1) < margin


def test_refusals() -> None:
    with pytest.raises(bd.InputError, match="context and feedback"):
        EpochRelease("everything", 1.0, 1e-6, 2, 2)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="epsilon"):
        EpochRelease("feedback", 0.0, 1e-6, 2, 2)


def test_how_many_numbers_an_epoch_releases() -> None:
    assert person_entries(3, 4, both=False) == 3 * 4
    assert person_entries(3, 4, both=True) == 3 * (4 + 10)


def gaussian(multiplier: float) -> EpochGaussian:
    return EpochGaussian(100, GRID, ARMS, FEATURES, 1, multiplier, 1.0, 1.0, 1.0)


def laplace(multiplier: float) -> EpochLaplace:
    return EpochLaplace(100, GRID, ARMS, FEATURES, 1, multiplier, 1.0, 1.0, 1.0)


def proved(findings: Iterator[Finding]) -> list[tuple[str, bool]]:
    listed = list(findings)
    assert all(finding.why for finding in listed)
    return [(finding.entry, finding.holds) for finding in listed]


def multiplier_at(epsilon: float, delta: float) -> float:
    """Return the noise at which the exact curve passes through a point."""
    return float(brentq(lambda m: gaussian_delta(epsilon, m) / delta - 1.0, 0.5, 50.0, xtol=1e-14))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-4)])
def test_gaussian_noise_is_what_epsilon_and_delta_ask_for_within_the_slack(
    epsilon: float, delta: float
) -> None:
    """Noise on integers needs a millionth of both, and what uses it for epsilon is refused."""
    own = gaussian_multiplier(epsilon, delta)
    agreed = [("epsilon", True), ("epsilon", True)]
    assert proved(gaussian(own).prove(epsilon, delta)) == agreed
    assert proved(gaussian(1.01 * own).prove(epsilon, delta)) == [*agreed, ("multiplier", False)]
    part = 1.0 - 0.5 * SLACK
    for too_small in (
        multiplier_at(epsilon * (1.0 - SLACK), delta * part),
        multiplier_at(epsilon * part, delta * (1.0 - SLACK)),
    ):
        assert own * (1.0 - 1e-4) < too_small < own
        assert proved(gaussian(too_small).prove(epsilon, delta)) == [("epsilon", False)]


def test_losses_of_epochs_compose() -> None:
    numerics = Numerics.fit_for(0.5)
    for rounds in (1, 2, 3):
        found = gaussian(5.0).loss(0.5, rounds, numerics).get_delta_for_epsilon(0.5)
        assert found == pytest.approx(gaussian_delta(0.5, 5.0 / math.sqrt(rounds)), rel=1e-2)
        pure = laplace(2.0).loss(0.5, rounds, numerics).get_epsilon_for_delta(1e-9)
        assert pure == pytest.approx(0.5 * rounds, rel=1e-2)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 3.0, 0.1])
def test_laplace_noise_is_what_epsilon_asks_for(epsilon: float) -> None:
    own = 1.0 / epsilon
    agreed = [("multiplier", True), ("delta", True)]
    assert proved(laplace(own).prove(epsilon, 0.0)) == agreed
    assert proved(laplace(own).prove(epsilon, 1e-6)) == [("multiplier", True), ("delta", False)]
    larger = proved(laplace(1.01 * own).prove(epsilon, 0.0))
    assert larger == [("multiplier", True), ("multiplier", False), ("delta", True)]
    for smaller in (0.99, 1.0 - 2.0**-49):
        findings = proved(laplace(smaller * own).prove(epsilon, 0.0))
        assert findings == [("multiplier", False), ("delta", True)]
