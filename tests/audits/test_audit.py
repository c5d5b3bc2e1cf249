"""The audit never accuses the innocent and catches every fault we could think of."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna._core.types import InputError
from bandanna.audits.attack import NO_PROOF, audit, fewest_draws, lower_bound
from bandanna.audits.events import lowest_bit
from bandanna.audits.policies import audit_canaries, audit_policy
from bandanna.audits.releases import audit_release, sampler_fit
from bandanna.privacy import LaplaceRelease, OneBitRelease, PlainRelease, SeededRelease
from bandanna.privacy.release import publish_many
from bandanna.privacy.sums import SumRelease
from tests.soak import seeds

Runs = Callable[[int], np.ndarray]
SEEDS = seeds(usual=10, all_of_them=100)
CLAIMED = 1.0
DRAWS = 20_000


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("kind", [OneBitRelease, LaplaceRelease])
def test_a_million_draws_find_nearly_all_of_epsilon(epsilon: float, kind: type[SumRelease]) -> None:
    result = audit_release(kind(epsilon, 1), draws=1_000_000)  # type: ignore[call-arg]
    assert result.passed
    assert result.epsilon >= (0.85 if epsilon == 0.1 else 0.95) * epsilon
    assert NO_PROOF in str(result)


def test_a_million_draws_take_under_two_seconds() -> None:
    for release in (OneBitRelease(1.0, 1), LaplaceRelease(1.0, 1)):
        audit_release(release, draws=10_000)  # compiles
        start = time.perf_counter()
        audit_release(release, draws=1_000_000)
        assert time.perf_counter() - start < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("release", [OneBitRelease(1.0, 3), LaplaceRelease(1.0, 3)], ids=repr)
def test_the_noise_that_protects_people_passes(release: SumRelease) -> None:
    """A false alarm has probability 1e-4 by the audit's own rule; 1e-7 is asked for here."""
    result = audit_release(release, draws=100_000, exact=True, significance=1e-7)
    assert result.passed
    assert result.epsilon > 0.8
    assert sampler_fit(release, draws=20_000, exact=True) > 1e-6


@pytest.mark.parametrize("release", [OneBitRelease(1.0, 2), LaplaceRelease(1.0, 2)], ids=repr)
@pytest.mark.parametrize("chosen", SEEDS)
def test_honest_releases_pass_for_every_seed(release: SumRelease, chosen: range) -> None:
    for seed in chosen:
        assert audit_release(release, draws=DRAWS, seed=seed).passed
        assert sampler_fit(release, draws=DRAWS, seed=seed) > 1e-6


@pytest.mark.parametrize("algorithm", ["one-bit", "htinf"])
@pytest.mark.parametrize("chosen", SEEDS)
def test_honest_policies_pass_for_every_seed(algorithm: str, chosen: range) -> None:
    policy = bd.PrivateBandit(2, CLAIMED, algorithm=algorithm)
    for seed in chosen:
        result = audit_canaries(policy, batches=1000, significance=1e-4, seed=seed)
        assert result is not None
        assert result.passed


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["one-bit", "htinf"])
def test_a_thorough_audit_finds_most_of_epsilon(algorithm: str) -> None:
    policy = bd.PrivateBandit(2, CLAIMED, algorithm=algorithm)
    thorough = audit_policy(policy, batches=20_000)
    assert 0.85 < thorough.epsilon <= CLAIMED
    assert policy.decided == 0


# Faults, each as a function of the private input (0 or 1) and a seed.


def laplace(epsilon: float, batch: int, total: int, count: int, seed: list[int]) -> np.ndarray:
    return publish_many(
        LaplaceRelease(epsilon, batch).fast(), total, batch, count, new_stream(seed)
    )


def halved_noise(private: int, seed: int) -> Runs:
    return lambda n: laplace(2 * CLAIMED, 1, private * UNITS, n, [seed, private])


def released_twice(private: int, seed: int) -> Runs:
    return lambda n: np.stack(
        [laplace(CLAIMED, 1, private * UNITS, n, [seed, private, copy]) for copy in (0, 1)], axis=1
    )


def one_bit_released_twice(private: int, seed: int) -> Runs:
    fast, stream = OneBitRelease(CLAIMED, 1).fast(), new_stream([seed, private])
    return lambda n: publish_many(fast, private * UNITS, 1, 2 * n, stream).reshape(n, 2)


def unclamped_loss(private: int, seed: int) -> Runs:
    return lambda n: laplace(CLAIMED, 1, 3 * private * UNITS, n, [seed, private])


def partial_batch(private: int, seed: int) -> Runs:
    """Ten losses, noised as if they were fifty: the mean of 10 with noise of scale 1/50."""
    return lambda n: laplace(CLAIMED, 50, 5 * private * UNITS, n, [seed, private])


def no_noise(private: int, seed: int) -> Runs:
    return lambda n: np.full(n, float(private))


def float_laplace(private: int, seed: int) -> Runs:
    rng = np.random.default_rng([seed, private])
    return lambda n: private + rng.laplace(0.0, 10.0, n)


def forked_noise(private: int, seed: int) -> Runs:
    """Two processes with the same noise: one released a public batch, one the private one."""

    def runs(n: int) -> np.ndarray:
        ours = laplace(CLAIMED, 1, private * UNITS, n, [seed, private])
        theirs = laplace(CLAIMED, 1, 0, n, [seed, private])
        return np.stack([ours, theirs], axis=1)

    return runs


def noise_used_again(private: int, seed: int) -> Runs:
    """Nine outputs; the noise of the second is used again for the eighth, which is public."""

    def runs(n: int) -> np.ndarray:
        outputs = np.stack(
            [laplace(CLAIMED, 1, 0, n, [seed, private, index]) for index in range(9)], axis=1
        )
        outputs[:, 7] = outputs[:, 1]
        outputs[:, 1] += private
        return outputs

    return runs


def spread_over_many(private: int, seed: int) -> Runs:
    """Fifteen outputs, each with noise for the claim, and the private value in every one."""
    return lambda n: laplace(CLAIMED, 1, private * UNITS, 15 * n, [seed, private]).reshape(n, 15)


FAULTS = {
    "halved noise": (halved_noise, CLAIMED, 1.7),
    "released twice": (released_twice, CLAIMED, 1.6),
    "one bit released twice": (one_bit_released_twice, CLAIMED, 1.7),
    "unclamped loss of 3": (unclamped_loss, CLAIMED, 2.4),
    "partial batch at the full scale": (partial_batch, CLAIMED, 3.0),
    "no noise": (no_noise, CLAIMED, 4.0),
    "float Laplace": (float_laplace, 0.1, 1.0),
    "noise repeated by a fork": (forked_noise, CLAIMED, 4.0),
    "noise used again later": (noise_used_again, CLAIMED, 4.0),
    "a little in each of many outputs": (spread_over_many, CLAIMED, 3.0),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("chosen", SEEDS)
def test_every_fault_is_caught_for_every_seed(name: str, chosen: range) -> None:
    fault, claimed, at_least = FAULTS[name]
    for seed in chosen:
        result = audit(fault(1, seed), fault(0, seed), claimed, draws=DRAWS)
        assert not result.passed, (seed, result)
        assert "FAILED" in str(result)
        assert result.epsilon > at_least


def test_outputs_may_be_texts_numbers_or_sequences_one_at_a_time() -> None:
    rng = np.random.default_rng(1)
    words = audit(
        lambda: "yes" if rng.random() < 0.9 else "no",
        lambda: "yes" if rng.random() < 0.1 else "no",
        claimed_epsilon=0.5,
        draws=5000,
    )
    assert not words.passed
    assert "yes" in words.event or "no" in words.event
    assert abs(words.first_share - words.second_share) > 0.7


def test_a_delta_is_allowed_for() -> None:
    """A mechanism that shows the input once in a hundred runs is (0, 0.01)-private."""
    rng = np.random.default_rng(2)

    def leaky(private: int) -> Runs:
        return lambda n: np.where(rng.random(n) < 0.01, private + 5, rng.integers(0, 2, n))

    assert not audit(leaky(0), leaky(1), 0.5, draws=100_000).passed
    assert audit(leaky(0), leaky(1), 0.5, draws=100_000, delta=0.012).passed


def test_lower_bound_is_clopper_pearson() -> None:
    from scipy import stats

    low = stats.binomtest(600, 1000).proportion_ci(1 - 1e-4, "exact").low
    high = stats.binomtest(200, 1000).proportion_ci(1 - 1e-4, "exact").high
    assert lower_bound(600, 200, 1000, 1e-4, 0.0) == pytest.approx(math.log(low / high))
    assert lower_bound(0, 5, 1000, 1e-4, 0.0) == -math.inf
    assert lower_bound(1000, 1000, 1000, 1e-4, 0.0) <= 0.0


def test_too_few_draws_say_so() -> None:
    needed = fewest_draws(1.0, 1e-4)
    with pytest.raises(InputError, match=f"use at least {needed}"):
        audit(no_noise(0, 0), no_noise(1, 0), 1.0, draws=needed - 1)
    assert not audit(no_noise(0, 0), no_noise(1, 0), 1.0, draws=needed).passed


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: audit(no_noise(0, 0), no_noise(1, 0), -1.0), "claimed_epsilon"),
        (lambda: audit(no_noise(0, 0), no_noise(1, 0), 1.0, significance=0.9), "significance"),
        (lambda: audit(lambda n: np.zeros(3), no_noise(1, 0), 1.0), "one output for each"),
        (lambda: audit(lambda n: np.zeros((n, 2)), no_noise(1, 0), 1.0), "different shapes"),
        (lambda: audit_release(PlainRelease()), "promises nothing"),
        (lambda: audit_release(SeededRelease(OneBitRelease(1.0, 1), new_stream(0))), "promises"),
        (lambda: audit_policy(bd.Bandit(2)), "nothing to audit"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        call()


def test_lowest_bits_of_floats() -> None:
    values = np.array([0.0, 1.0, 0.5, 3.0, 0.1, -0.25, 2.0**-60])
    exponents = [0, 0, -1, 0, math.frexp(0.1)[1] - 52, -2, -60]
    assert lowest_bit(values).tolist() == exponents


def test_mixed_outputs_do_not_accuse_the_innocent() -> None:
    """A rare text must not change how the numbers around it are compared."""
    for seed in range(20):
        rng = np.random.default_rng(seed)

        def honest(rng: np.random.Generator = rng) -> object:
            return "none" if rng.random() < 1 / 2000 else int(rng.integers(2))

        assert audit(honest, honest, 1.0, draws=2000).passed
    small = np.random.default_rng(1).integers(0, 256, (20_000, 2))
    assert audit(
        lambda n: small[:n].astype(np.uint8), lambda n: small[:n], 0.5, draws=20_000
    ).passed


def test_a_nan_does_not_blind_the_audit() -> None:
    rng = np.random.default_rng(3)

    def runs(centre: float) -> Runs:
        def draw(n: int) -> np.ndarray:
            values = rng.normal(centre, 1.0, (n, 2)).round()
            values[0, 0] = np.nan
            values[1, 1] = np.inf
            return values

        return draw

    assert not audit(runs(0), runs(100), 1.0, draws=5000).passed
    nan = audit(lambda n: np.full(n, np.nan), np.zeros, 1.0, draws=5000)
    assert not nan.passed
    assert "not a number" in nan.event or "0.0" in nan.event


def test_sequences_of_one_are_looked_at_closely() -> None:
    one, other = (lambda n, p=p: float_laplace(p, 1)(n)[:, None] for p in (1, 0))
    assert not audit(one, other, 0.1, draws=DRAWS).passed


@pytest.mark.parametrize(
    "outputs",
    [
        lambda: np.random.default_rng().bytes(8).hex(),
        lambda: int.from_bytes(np.random.default_rng().bytes(7), "big"),
        lambda: (True, False),
    ],
)
def test_any_allowed_output_can_be_audited(outputs: Callable[[], object]) -> None:
    assert audit(outputs, outputs, 1.0, draws=2000).passed


@pytest.mark.parametrize("output", [None, 1j, (), [[1, 2]], {"a": 1}])
def test_other_outputs_are_refused(output: object) -> None:
    with pytest.raises(InputError):
        audit(lambda: output, lambda: output, 1.0, draws=2000)


def test_epsilons_beyond_any_audit_are_refused() -> None:
    with pytest.raises(InputError, match="above 30"):
        audit(no_noise(0, 0), no_noise(1, 0), 800.0)
