"""The vector release: what one loss can move, and that both forms have the same law."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bandanna as bd
from bandanna._core.advice import Ticket
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.privacy import VectorRelease
from bandanna.privacy.calibration import GRID
from bandanna.privacy.certificate import short_seal, verify
from bandanna.privacy.vector_sums import SeededVectorRelease, add_round_once, round_scale_once
from tests.laws import FALSE_ALARM

EXPERTS, ARMS = 6, 3
RELEASES = {
    "gaussian": VectorRelease(1.0, 1e-2, EXPERTS, ARMS, 10, 0.2),
    "pure": VectorRelease(1.0, 0.0, EXPERTS, ARMS, 10, 0.2),
    "paper": VectorRelease(1.0, 1e-6, EXPERTS, ARMS, 10, 0.2, "paper"),
}
every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES.keys())


def draw_advice(rng: np.random.Generator, spread: bool) -> np.ndarray:
    if spread:
        return np.ascontiguousarray(rng.dirichlet(np.full(ARMS, 0.3), EXPERTS).T)
    return rng.integers(0, ARMS, EXPERTS).astype(np.uint8)


def move(release: VectorRelease, advice: np.ndarray, arm: int, importance: float) -> np.ndarray:
    """Compute a second time how far a loss of 1 moves the sums, in whole numbers."""
    shares = advice[arm] if advice.ndim == 2 else (advice == arm).astype(float)
    top = importance * GRID * release.mixing / release.arms
    weights: np.ndarray = np.minimum(np.floor(top * shares + 0.5), GRID).astype(np.int64)
    return weights


@every_release
@settings(deadline=None, max_examples=60)
@given(
    st.booleans(),
    st.integers(0, ARMS - 1),
    st.floats(1.0, 15.0),
    st.integers(0, UNITS),
    st.integers(0, UNITS),
    st.integers(0, 2**32),
)
def test_one_loss_moves_the_sums_by_no_more_than_the_noise_covers(
    release: VectorRelease,
    spread: bool,
    arm: int,
    importance: float,
    one: int,
    other: int,
    seed: int,
) -> None:
    advice = draw_advice(np.random.default_rng(seed), spread)
    first, second = np.zeros(EXPERTS, dtype=np.int64), np.zeros(EXPERTS, dtype=np.int64)
    add_round_once(release.fast(), first, advice, arm, importance, one)
    add_round_once(release.fast(), second, advice, arm, importance, other)
    scale = round_scale_once(release.fast(), EXPERTS, advice, arm, importance)
    weights = move(release, advice, arm, importance)
    assert np.all(np.abs(first - second) <= weights)
    assert np.all((first >= 0) & (first <= weights))
    scale = max(scale, release.fast().least)
    moved = np.abs(first - second).astype(float)
    if release.noise.law == "gaussian":
        assert np.linalg.norm(moved) * release.noise.gaussian <= scale
    elif release.delta == 0.0:
        assert moved.sum() <= release.epsilon * scale
    else:
        assert moved.max() * release.noise.composed <= scale


@every_release
@pytest.mark.parametrize("spread", [False, True])
def test_sums_are_the_estimates_up_to_rounding(release: VectorRelease, spread: bool) -> None:
    rng = np.random.default_rng(4)
    sums, expected = np.zeros(EXPERTS, dtype=np.int64), np.zeros(EXPERTS)
    for _ in range(release.batch):
        advice, arm = draw_advice(rng, spread), int(rng.integers(0, ARMS))
        importance, loss = float(rng.uniform(1, 15)), int(rng.integers(0, UNITS + 1))
        add_round_once(release.fast(), sums, advice, arm, importance, loss)
        shares = advice[arm] if spread else (advice == arm).astype(float)
        expected += loss / UNITS * importance * shares / release.batch
    np.testing.assert_allclose(sums * release.fast().value, expected, atol=2e-8)


@every_release
def test_both_forms_have_the_same_law(release: VectorRelease) -> None:
    """Kolmogorov's test on noise in units of its scale; the exact form cannot be seeded."""
    sums = np.full(EXPERTS, 12345, dtype=np.int64)
    scale = 3.0 * max(release.fast().least, 1e6)
    seeded = SeededVectorRelease(release, new_stream(9))
    exact = np.concatenate([release.release(sums, scale) for _ in range(500)])
    fast = np.concatenate([seeded.release(sums, scale) for _ in range(500)])
    centre, unit = 12345 * release.fast().value, scale * release.fast().value
    law = stats.norm() if release.noise.law == "gaussian" else stats.laplace()
    for noise in (exact, fast):
        assert stats.kstest((noise - centre) / unit, law.cdf).pvalue > FALSE_ALARM


def test_sums_are_clamped_whatever_the_caller_does() -> None:
    release = VectorRelease(100.0, 0.0, 2, 2, 1, 1.0)
    wild = np.array([10 * GRID, -(10**17)], dtype=np.int64)
    high, low = release.release(wild, 1.0)
    assert high == pytest.approx(2.0, abs=1e-6)
    assert low == pytest.approx(0.0, abs=1e-6)


def test_saturated_noise_does_not_show_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenDP's samplers stop at the ends of 64-bit integers; a sum added there must not show."""
    release = VectorRelease(1.0, 0.0, 2, 2, 1, 1.0)
    for end in (2**63 - 1, -(2**63) + 1):
        sampler = lambda scale, gaussian, e=end: lambda zeros: [e] * len(zeros)  # noqa: E731
        monkeypatch.setattr("bandanna.privacy.noise._sampler", sampler)
        low, high = release.release(np.array([0, GRID], dtype=np.int64), 1.0)
        assert low == high


@pytest.mark.parametrize(("epsilon", "experts"), [(1e-9, 20), (1e-6, 20_000), (1e-4, 10**6)])
def test_noise_that_does_not_fit_is_refused(epsilon: float, experts: int) -> None:
    with pytest.raises(InputError, match="64-bit"):
        VectorRelease(epsilon, 0.0, experts, 2, 1, 1.0)


def test_noise_never_falls_below_what_the_grid_needs() -> None:
    release = RELEASES["gaussian"]
    noise = np.concatenate(
        [release.release(np.zeros(EXPERTS, dtype=np.int64), 0.0) for _ in range(400)]
    )
    least = release.fast().least * release.fast().value
    assert stats.kstest(noise / least, stats.norm.cdf).pvalue > FALSE_ALARM


def test_discrete_gaussian_noise_is_a_rounded_one_up_to_the_slack() -> None:
    """The ratio of the two laws, from log densities, is within the bound of the proof."""
    for sigma in (30.0, 1000.0):
        for steps in (0.0, 1.0, 10.0, 40.0):
            z = round(steps * sigma)
            discrete = -(z**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
            u = (np.arange(20_000) + 0.5) / 20_000 - 0.5
            mean = np.mean(np.exp(-(2 * z * u + u**2) / (2 * sigma**2)))
            rounded = discrete + math.log(mean)
            assert abs(discrete - rounded) <= 40.0**2 / (20 * sigma**2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "pure"])
def test_an_audit_along_the_move_does_not_refute_the_claim(name: str) -> None:
    """Sums with and without one loss of 1, seen along the direction in which they differ."""
    release = RELEASES[name]
    advice = np.array([0, 0, 0, 0, 0, 1], dtype=np.uint8)
    zero, one = np.zeros(EXPERTS, dtype=np.int64), np.zeros(EXPERTS, dtype=np.int64)
    scale = round_scale_once(release.fast(), EXPERTS, advice, 0, 5.0)
    add_round_once(release.fast(), one, advice, 0, 5.0, UNITS)
    seeded = SeededVectorRelease(release, new_stream(3))
    direction = (one - zero) / np.linalg.norm(one - zero)

    def attack(sums: np.ndarray, share: float) -> Callable[[int], np.ndarray]:
        def run(draws: int) -> np.ndarray:
            outputs = [seeded.release(sums, share * scale) for _ in range(draws)]
            return np.array(outputs) @ direction

        return run

    def audited(share: float) -> float:
        pair = attack(one, share), attack(zero, share)
        return bd.audit(*pair, release.epsilon, draws=50_000, delta=release.delta).epsilon

    assert audited(1.0) <= release.epsilon
    assert audited(0.3) > release.epsilon  # noise that is too small is caught


@every_release
def test_certificates_verify_and_forgeries_do_not(release: VectorRelease) -> None:
    policy = bd.PrivateExperts(EXPERTS, ARMS, 1.0, 1e-2, 10**6, "batched-exp4", constants="ours")
    policy._parts.release = release
    text = to_text(policy.certificate())
    assert all(finding.holds for finding in verify(text)), verify(text)

    def wrong(**change: object) -> set[str]:
        data = json.loads(text) | change
        data["seals"] = {key: short_seal(key, data[key]) for key in data if key != "seals"}
        return {finding.entry for finding in verify(to_text(data)) if not finding.holds}

    multiplier = json.loads(text)["multiplier"]
    assert wrong(multiplier=multiplier / 10) & {"epsilon", "multiplier"}
    assert wrong(epsilon=0.05) & {"epsilon", "multiplier"}
    assert "least" in wrong(least=1e-3)
    assert "model" in wrong(model="local")
    assert "experts" in wrong(experts=2.5)
    assert "delta" in wrong(delta=1.5)
    assert "units" in wrong(units=1)
    assert "batch" in wrong(batch=10**40)
    assert "multiplier" in wrong(multiplier=1e-7)
    assert "protects" in wrong(protects="everything")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mixing": 0.0}, "mixing"),
        ({"mixing": 1.5}, "mixing"),
        ({"batch": 0}, "batch"),
        ({"batch": 2**40}, "batch"),
        ({"experts": 0}, "experts"),
        ({"arms": 1}, "arms"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"preset": "best"}, "preset"),
    ],
)
def test_parameters_are_validated(change: dict[str, object], reason: str) -> None:
    good = {"epsilon": 1.0, "delta": 1e-6, "experts": 5, "arms": 2, "batch": 3, "mixing": 0.1}
    with pytest.raises(InputError, match=reason):
        VectorRelease(**(good | change))  # type: ignore[arg-type]


@every_release
def test_seeded_it_repeats_itself_and_promises_nothing(release: VectorRelease) -> None:
    sums = np.arange(EXPERTS, dtype=np.int64)
    first, second = (SeededVectorRelease(release, new_stream(1)) for _ in range(2))
    assert first.release(sums, 5.0).tolist() == second.release(sums, 5.0).tolist()
    assert not first.guarantee().private
    with pytest.raises(TypeError):
        first.to_dict()


def test_a_loss_of_nothing_adds_nothing_and_still_asks_for_noise() -> None:
    release = RELEASES["pure"]
    tally = release.start()
    assert (tally.sums is not None, tally.scale) == (True, 0.0)
    ticket = Ticket(np.zeros(EXPERTS, dtype=np.uint8), 0, 1.0)
    tally.add(0, ticket)
    assert tally.to_dict()["sums"] == [0] * EXPERTS
    assert tally.scale > 0.0
    tally.add(UNITS, ticket)
    assert min(tally.to_dict()["sums"]) > 0


SAVED = {"sums": [GRID, 0, 0, 0, 0, 0], "scale": 0.5}


def test_a_saved_batch_goes_on_as_it_was() -> None:
    release = RELEASES["pure"]
    for saved in (SAVED, {"sums": [0] * EXPERTS, "scale": 0.0}):
        tally = release.resume(saved, [1], 10)
        assert tally.to_dict() == saved
        assert tally.sums is not None
        assert tally.sums.dtype == np.int64


@pytest.mark.parametrize(
    "change",
    [
        {"sums": [GRID + 1, 0, 0, 0, 0, 0]},
        {"sums": [-1, 0, 0, 0, 0, 0]},
        {"sums": [0] * (EXPERTS - 1)},
        {"scale": 0.0},
        {"scale": -0.5},
        {"scale": math.inf},
        {"scale": math.nan},
        {"more": 1},
    ],
)
def test_impossible_saved_sums_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="impossible values"):
        RELEASES["pure"].resume(SAVED | change, [1], 10)


def test_a_saved_batch_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="batches of 10; got 9"):
        RELEASES["pure"].resume(SAVED, [1], 9)
