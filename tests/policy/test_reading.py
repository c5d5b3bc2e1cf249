"""What a policy says it has learned: chances, a leader, means with the noise taken into account."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bandanna as bd
from bandanna.inference import mean_interval, point
from bandanna.policy import Policy
from bandanna.policy.closing import rescaled
from bandanna.policy.codec import learned_to_dict
from bandanna.policy.facade import policy_from_dict
from bandanna.policy.transitions import batch_with_room
from bandanna.privacy import LaplaceRelease, OneBitRelease, PlainRelease
from bandanna.privacy.release import ArmTotals
from bandanna.privacy.sums import SumRelease
from tests.contracts.policies import PLAIN, PRIVATE, advise, make

MEANS = [0.7, 0.2, 0.6]
SILENT = ("phased", "ab-test", "ftpl", "thompson", "dp-klucb", "kl-ucb", "race")


def played(policy: Policy, rounds: int, advice: object = None) -> Policy:
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        decision = policy.decide(advice)
        policy.observe(decision, loss=float(rng.random() < MEANS[decision.index]))
    return policy


@pytest.mark.parametrize("name", [*PRIVATE, *PLAIN])
def test_chances_are_those_of_the_next_draw(name: str) -> None:
    """Asked before a batch opens, and told by the decision that opens it."""
    policy = make(name, seed=3)
    advice = advise(name, np.random.default_rng(1))
    played(policy, 3 * policy.batch, advice)
    while batch_with_room(policy.state) is not None:
        played(policy, 1, advice)
    before = learned_to_dict(policy.state)["learner"]
    if any(silent in name for silent in SILENT):
        with pytest.raises(bd.InputError, match="probabilities"):
            _ = policy.chances
        return
    chances = policy.chances
    assert learned_to_dict(policy.state)["learner"] == before
    assert sum(chances.values()) == pytest.approx(1.0)
    assert policy.likeliest == max(chances, key=lambda arm: chances[arm])
    decision = policy.decide(advice)
    if policy.experts is None:
        assert decision.chance == pytest.approx(chances[decision.arm])
    elif decision.chance is not None:
        assert 0.0 < decision.chance <= 1.0
    assert bd.Decision(**decision._asdict()) == decision


@pytest.mark.parametrize("algorithm", ["one-bit", "htinf", "ftpl", "ldp-exp3"])
def test_means_are_without_bias_and_intervals_hold(algorithm: str) -> None:
    """An interval misses one time in twenty at most; these bounds are far from tight."""
    policy = played(bd.PrivateBandit(["a", "b", "c"], 2.0, 3000, algorithm, seed=0), 3000)
    summary = policy.summary()
    assert policy.leader == "b"
    assert sum(row.batches for row in summary.rows) == summary.released
    for row, mean in zip(summary.rows, MEANS, strict=True):
        if row.batches > 20:
            assert row.low is not None
            assert row.high is not None
            assert row.low <= mean + 0.1
            assert row.high >= mean - 0.1
            assert 0.0 <= row.low <= row.high <= 1.0
    assert "batches released" in str(summary)


@pytest.mark.parametrize(
    "release", [OneBitRelease(1.0, 3), LaplaceRelease(1.0, 3), PlainRelease(3)]
)
def test_totals_are_right_on_average_and_intervals_hardly_ever_miss(release: SumRelease) -> None:
    """1000 times 25 batches; an interval for one in a thousand is missed at most 15 times."""
    total, missed, means = round(0.4 * 3 * 2**20), 0, []
    law = release.law()
    assert law is not None
    for _ in range(1000):
        told = ArmTotals()
        for _ in range(25):
            told = told.and_also(release.release(total), 3)
        arm = release.totals(told)
        means.append(point(arm))
        low, high = mean_interval(law, arm, alpha=0.001)
        missed += not low <= 0.4 <= high
    assert missed <= 15
    error = float(np.std(means)) / np.sqrt(len(means))
    assert abs(np.mean(means) - 0.4) < 5.5 * error + 1e-6  # a false alarm: below one in 10**7


def test_longer_batches_weigh_more() -> None:
    """Noise is on sums: with sizes 1 and 99 the mean is of rounds, and noise is there twice."""
    release = LaplaceRelease(1.0, 1, longest=99)
    told = ArmTotals().and_also(1.0, 1).and_also(0.2, 99)
    arm = release.totals(told)
    assert (arm.total, arm.terms, arm.releases) == pytest.approx((20.8, 100, 2))
    assert point(arm) == pytest.approx(0.208)


def test_bits_of_batches_that_were_not_whole_tell_less() -> None:
    """Missing slots count 1/2 in a batch, and come out of the estimate again."""
    release = OneBitRelease(1.0, 10)
    whole, half = ArmTotals(), ArmTotals()
    for bit in (1.0, 0.0, 0.0, 1.0, 0.0):
        whole = whole.and_also(bit, 10)
        half = half.and_also(rescaled(bit, 10, 5), 5)
    full, part = release.totals(whole), release.totals(half)
    assert full.total == pytest.approx(2.0)
    assert part.total == pytest.approx(2.0)
    assert part.slope == pytest.approx(full.slope / 2)
    assert full.base + full.slope * 0.5 == pytest.approx(part.base + part.slope * 0.5)


def test_what_was_told_survives_files_and_losses_are_in_their_range(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(2, 1.0, loss_range=(10, 30), seed=0)
    for _ in range(50):
        policy.observe(policy.decide(), loss=20)
    policy.save(tmp_path / "policy.json")
    loaded = bd.load(tmp_path / "policy.json")
    assert loaded.summary() == policy.summary()
    for row in loaded.summary().rows:
        assert row.low is None or row.high is None or 10 <= row.low <= row.high <= 30


def test_before_the_first_release_nothing_is_known() -> None:
    policy = bd.PrivateBandit(2, 1.0, algorithm="adaptive")
    assert policy.chances == {0: 0.5, 1: 0.5}
    assert [row.mean for row in policy.summary().rows] == [None, None]
    assert "no release yet" in str(policy.summary())
    assert policy.leader is None
    assert bd.PrivateBandit(2, 1.0, 1000, "ftpl").likeliest is None


@pytest.mark.parametrize("name", ["one-bit", "dp-klucb", "one-bit, over experts", "one-bit-exp4"])
def test_shares_are_those_of_all_decisions(name: str) -> None:
    """From decisions, which everyone sees, and from no feedback; files keep them."""
    policy, rng = make(name, seed=2), np.random.default_rng(4)
    made = [policy.decide(advise(name, rng)) for _ in range(40)]
    loaded = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
    shares = [row.share for row in policy.summary().rows]
    assert [row.share for row in loaded.summary().rows] == shares
    if name == "one-bit-exp4":
        assert set(shares) == {None}
        return
    assert sum(share or 0.0 for share in shares) == pytest.approx(1.0)
    if policy.experts is None:
        played = np.bincount([decision.index for decision in made], minlength=3) / 40
        np.testing.assert_allclose(np.array(shares, dtype=float), played)
        assert f"{played[0]:.1%} of decisions" in str(policy.summary())
