"""Late feedback: the claim, exactly on small trees; the bound, by the object that runs."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.streams import new_stream
from bandanna.algorithms import algorithms, find
from bandanna.learners.exp3 import Exp3
from bandanna.planner.plan import plan, row_of
from bandanna.spec import Problem
from bandanna.theory.delay import late_cost, late_exp3, outstanding, overlaps


def expected_regret(
    losses: np.ndarray, released: list[int], rate: float, best: int
) -> tuple[float, int]:
    """Return the exact regret of EXP3 on bits over all draws and bits, and its overlaps.

    ``losses[r, i]`` is the expectation of batch r's bit; batch r is released just before batch
    ``released[r]`` begins.
    """
    batches, arms = losses.shape
    known = [[q for q in range(r) if released[q] <= r] for r in range(batches)]
    pairs = sum(r - len(known[r]) for r in range(batches))

    def further(path: list[tuple[int, float]]) -> float:
        """Regret from here on; each batch so far has its arm and what it adds to the estimate."""
        r = len(path)
        if r == batches:
            return 0.0
        estimated = np.zeros(arms)
        for q in known[r]:
            arm, estimate = path[q]
            estimated[arm] += estimate
        weights = np.exp(-rate * (estimated - estimated.min()))
        total = 0.0
        for arm, chance in enumerate(weights / weights.sum()):
            mean = losses[r, arm]
            rest = sum(
                share * further([*path, (arm, bit / chance)])
                for bit, share in ((0, 1.0 - mean), (1, mean))
                if chance * share > 1e-15
            )
            total += chance * (mean - losses[r, best] + rest)
        return total

    return further([]), pairs


@pytest.mark.parametrize("released", [[1, 2, 3, 4, 5], [3, 4, 5, 6, 7], [9, 2, 3, 4, 5], [5] * 5])
def test_the_claim_holds_on_every_small_tree(released: list[int]) -> None:
    """In order, late, out of order, and all at the end; expectations without any sampling."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for rate in (0.05, 0.4, 1.5):
        for trial in range(4):
            losses = np.eye(2)[[0] * 5] if trial == 0 else rng.integers(0, 5, (5, 2)) / 4.0
            for best in (0, 1):
                regret, pairs = expected_regret(losses, released, rate, best)
                limit = math.log(2) / rate + rate * 5 * 2 / 2 + late_cost(rate, 1.0, pairs)
                assert regret <= limit
                worst = max(worst, regret / limit)
    assert worst > 0.3  # the claim is not far from what happens


def test_the_drift_of_a_step_is_what_the_proof_says() -> None:
    """For estimates that are not negative, pathwise: what the integral is bounded by."""
    rng = np.random.default_rng(1)

    def chances(losses: np.ndarray, rate: float) -> np.ndarray:
        weights = np.exp(-rate * (losses - losses.min()))
        return np.asarray(weights / weights.sum())

    for _ in range(400):
        arms, rate = int(rng.integers(2, 6)), float(rng.choice([0.01, 0.3, 2.0]))
        known, unknown = rng.exponential(5.0, arms), rng.exponential(3.0, arms)
        played = chances(known, rate)
        arm = int(rng.integers(arms))
        estimate = np.zeros(arms)
        estimate[arm] = 1.0 / played[arm]
        drift = np.mean(
            [
                estimate
                @ (
                    chances(known + x * estimate, rate)
                    - chances(known + unknown + x * estimate, rate)
                )
                for x in np.linspace(0.0, 1.0, 41)
            ]
        )
        assert drift <= rate * estimate[arm] * played[arm] * unknown[arm] + 1e-9
        advice = rng.dirichlet(np.ones(3), arms)  # EXP4: rows are experts, all of them are moved
        mixed = played @ advice
        credit = advice[:, 0] / mixed[0]
        moved = chances(known + rng.random() * credit, rate)
        assert (moved <= math.exp(rate) * played * (1 + 1e-9)).all()


def test_overlaps_are_counted_as_they_happen() -> None:
    """A fixed delay in rounds gives so many overlaps, for every batch."""
    for batch in (1, 2, 7):
        for delay in (0, 1, 6, 7, 8, 40):
            count = 0
            for r in range(30):
                ends = [(q + 1) * batch - 1 for q in range(r)]
                count += sum(end + delay >= r * batch for end in ends)
            assert overlaps(30, outstanding(delay, batch)) == count


def test_the_bound_is_the_claim_at_the_best_rate() -> None:
    """No other rate has a smaller bound, and no delay gives the bound for feedback in order."""
    for size in [(2, 5000, 10.0), (4, 10**5, 0.5), (10, 10**6, 0.1)]:
        for delay in (1, 50, 600):
            bound = late_exp3(Problem(*size, delay=delay))
            first, second, third, batch = bound.terms.values()
            assert first == pytest.approx(second + third)
            same = late_exp3(Problem(*size, delay=delay), bound.batch)
            assert same == bound
            assert batch == bound.batch
            for other in (*range(1, 60), *range(60, 1000, 37)):
                limit = late_exp3(Problem(*size, delay=delay), other).regret
                assert limit >= 0.99 * bound.regret
        in_order = row_of(find("one-bit-exp3", with_experts=False), Problem(*size)).regret
        found = [late_exp3(Problem(*size, delay=delay)).regret for delay in (0, 1, 50, 600)]
        assert found == sorted(found)
        assert found[0] >= in_order * (1 - 1e-9)
    assert plan(4, 10**5, 0.5, delay=50).best.regret == pytest.approx(7336, abs=1)


def test_only_what_is_proved_is_planned_and_the_policy_runs_it() -> None:
    """Rows without a proof say so; the others run with the rate of their bound."""
    for problem in (Problem(4, 10**5, 0.5), Problem(4, 10**5, 0.5, experts=6, delta=1e-3)):
        late, in_order = plan(problem.but(delay=50)), plan(problem)
        with_experts = problem.with_experts
        proved = {row.algorithm for row in late.rows if row.bound is not None}
        assert proved == {row.name for row in algorithms(with_experts=with_experts) if row.late}
        assert all(
            "late" in row.reason for row in late.rows if row.bound is None and row.entry.bound
        )
        assert "50 rounds late" in str(late)
        assert "in order" in str(in_order)
        assert late.best.regret > in_order.best.regret
    policy = bd.PrivateBandit(4, 0.5, 10**5, "one-bit-exp3", delay=50)
    own = policy.plan.own
    assert own is not None
    assert own.bound == late_exp3(Problem(4, 10**5, 0.5, delay=50))
    assert own.bound.settings["learning_rate"] == policy.recipe.learner.learning_rate  # type: ignore[union-attr]
    default = bd.PrivateBandit(4, 0.5, 10**5, delay=50)
    assert default.recipe == bd.PrivateBandit(4, 0.5, 10**5).recipe
    assert default.plan.own is not None
    assert "none is proved for late feedback" in default.plan.own.reason
    with pytest.raises(bd.InputError, match="delay"):
        bd.PrivateBandit(4, 0.5, 10**5, delay=-1)


def regret_with_delay(policy: bd.PrivateBandit, delay: int, seed: int, give_up: int = 0) -> float:
    """Play the second arm right and the first wrong, feedback late; every so many given up."""
    run = policy.rehearse(new_stream(seed), new_stream(10**6 + seed))
    waiting: deque[bd.Decision] = deque()
    wrong = 0
    for t in range(5000):
        decision = run.decide()
        wrong += decision.index == 0
        waiting.append(decision)
        if len(waiting) > delay:
            old = waiting.popleft()
            if give_up and t % give_up == 0:
                run.give_up(old)
            else:
                run.observe(old, loss=float(old.index == 0))
    return float(wrong)


@pytest.mark.soak
def test_late_feedback_stays_below_its_bound_and_not_below_the_one_in_order() -> None:
    """K = 2, T = 5 000, epsilon 10, delay 600, through the object that people use.

    Means of ten runs with fixed seeds, release included: nothing is left to chance.
    """
    tuned = bd.PrivateBandit(2, 10.0, 5000, "one-bit-exp3", delay=600)
    assert tuned.plan.own is not None
    mean = np.mean([regret_with_delay(tuned, 600, seed) for seed in range(10)])
    assert mean == pytest.approx(1481.7)
    assert mean < tuned.plan.own.regret == pytest.approx(2800, abs=1)
    in_order = math.log(2) / (rate := math.sqrt(math.log(2) / 5000)) + rate * 5000
    plain = bd.PrivateBandit(2, 10.0, 5000, learner=Exp3(2, rate), batch=1)
    late = np.mean([regret_with_delay(plain, 600, seed) for seed in range(10)])
    assert late == pytest.approx(354.5)
    assert in_order < late < in_order + late_cost(rate, 1.0, overlaps(5000, 600))
    centred = bd.PrivateBandit(2, 10.0, 5000, "one-bit-exp3")
    assert centred.plan.own is not None
    usual = np.mean([regret_with_delay(centred, 600, seed) for seed in range(10)])
    assert usual == pytest.approx(323.7)
    assert usual > centred.plan.own.regret == pytest.approx(60.1, abs=0.1)
    tsallis = bd.PrivateBandit(2, 10.0, 5000, "one-bit")
    assert tsallis.plan.own is not None
    usual = np.mean([regret_with_delay(tsallis, 600, seed) for seed in range(10)])
    assert usual == pytest.approx(297.7)
    assert usual > tsallis.plan.own.regret == pytest.approx(264.3, abs=0.1)


@pytest.mark.slow
def test_giving_up_costs_at_most_its_share() -> None:
    """Every tenth round given up: at most a tenth of the rounds more."""
    policy = bd.PrivateBandit(2, 1.0, 5000, "one-bit-exp3")
    assert policy.plan.own is not None
    means = [
        np.mean([regret_with_delay(policy, 0, seed, give_up) for seed in range(10)])
        for give_up in (0, 10)
    ]
    assert means[0] < policy.plan.own.regret
    assert means[1] < policy.plan.own.regret + 500
