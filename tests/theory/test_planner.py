"""Plans: what is compared, what is said about it, and the questions the other way round."""

from __future__ import annotations

import random
import time
from statistics import median

import pytest
import research.prior_work  # noqa: F401  # makes dp-exp3-lap known

import bandanna as bd
from bandanna.algorithms import ALGORITHMS, DEFAULT, algorithms
from bandanna.planner.inverse import ask, says_something_from
from bandanna.planner.plan import plan, row_of
from bandanna.spec import Losses, Problem
from tests.soak import mostly_slow


def test_plans_list_what_does_not_apply_and_never_as_a_number() -> None:
    found = plan(10, 1000, 2.0)
    reasons = {row.algorithm: row.reason for row in found.rows if row.bound is None}
    assert "epsilon up to 1" in reasons["htinf"]
    assert "do not change" in reasons["dp-klucb"]
    assert all(row["bound"] is None for row in found.to_dict()["rows"] if "reason" in row)
    assert plan(10, 10**6, 0.1).best.algorithm == "one-bit-exp3"
    assert plan(5_000, 10**12, 0.1).best.algorithm == "one-bit-tsallis"
    assert "Nothing is guaranteed" in plan(10, 500, 0.1).why
    experts = plan(5, 10**7, 0.5, experts=100, delta=1e-6)
    assert experts.best.algorithm == "one-bit-exp4"
    few = plan(50, 10**7, 0.01, experts=3)
    assert few.best.algorithm == "one-bit-exp3"


def test_a_problem_is_checked_once_and_says_what_is_wrong() -> None:
    assert plan(4, 1e5, 0.5) == plan(Problem(4, 1e5, 0.5))  # type: ignore[arg-type]
    assert bd.Problem(4, 1e5, 0.5).rounds == 100_000  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="rounds= and epsilon="):
        plan(4)
    with pytest.raises(bd.InputError, match="pass it alone"):
        plan(Problem(4, 100, 0.5), epsilon=0.1)
    with pytest.raises(bd.InputError, match="pass rounds="):
        plan(Problem(4, None, 0.5))
    with pytest.raises(bd.InputError, match="epsilon must be"):
        plan(Problem(4, 100, float("inf")))
    for wrong in ({"arms": 2.5}, {"arms": None}, {"rounds": 0}, {"epsilon": 0}, {"delta": 1}):
        with pytest.raises(bd.InputError, match=next(iter(wrong))):
            Problem(**{"arms": 3, "rounds": 10, "epsilon": 1.0, **wrong})  # type: ignore[arg-type]


def test_a_plan_tells_the_default_from_the_smallest_guarantee() -> None:
    few = plan(4, 10**5, 0.5)
    assert few.best.algorithm == "one-bit-exp3"
    assert few.default == "The default guarantees 9.3%."
    assert plan(4, 10**5, 0.5, losses="any").default == "adaptive guarantees 5.6%."
    assert "no guarantee" in plan(4, 10**5, 0.5, losses="steady").default
    assert few.why in str(few)
    assert few.default in str(few)
    assert "has no guarantee here" in plan(4, 10**5, 0.5, delay=5).default
    assert "adaptive" in plan(4, 10**5, 0.5, experts=5).default
    assert plan(4, 10**5, 0.5, experts=500).default == ""  # there the default is the best


@pytest.mark.parametrize("losses", [None, *ALGORITHMS])
def test_a_plan_shows_what_runs_beside_the_plain_test_and_no_privacy(
    losses: Losses | None,
) -> None:
    found = plan(4, 10**5, 0.5, losses=losses)
    runs = DEFAULT if losses is None else ALGORITHMS[losses][0]
    assert {row.algorithm for row in found.shown} == {runs, "ab-test", "no-privacy"}


@pytest.mark.parametrize(("arms", "rounds", "epsilon"), [(10, 20_000, 0.05), (100, 20_000, 0.5)])
def test_what_random_choice_keeps_is_no_promise(arms: int, rounds: int, epsilon: float) -> None:
    for algorithm in (None, "adaptive"):
        policy = bd.PrivateBandit(arms, epsilon, rounds, algorithm)
        assert policy.net is None
        assert "at most" not in str(policy.plan).partition("This policy")[2].partition("\n")[0]
        assert "guarantees" not in policy.plan.default


def test_changes_go_with_a_changing_world() -> None:
    few, many = (plan(4, 10**6, 0.5, losses="changing", changes=often) for often in (2, 50))
    bounds = [
        next(row.regret for row in found.rows if row.algorithm == "one-bit-exp3")
        for found in (few, many)
    ]
    assert bounds[0] < bounds[1]
    own = bd.PrivateBandit(4, 0.5, 10**6, losses="changing").plan.own
    usual = next(row for row in plan(4, 10**6, 0.5, losses="changing").rows if row == own)
    assert usual.regret > 10**5  # a short memory has no net: plans show what policies promise
    with pytest.raises(bd.InputError, match="goes with losses='changing'"):
        plan(4, 10**6, 0.5, changes=2)
    with pytest.raises(bd.InputError, match="losses must be one of"):
        plan(4, 10**6, 0.5, losses="calm")  # type: ignore[arg-type]


def test_where_each_guarantee_begins_to_say_something() -> None:
    problem = Problem(10, 1, 0.1)
    starts = {row.name: says_something_from(row, problem) for row in algorithms(with_experts=False)}
    assert starts["one-bit"] == pytest.approx(14_200, rel=0.01)
    assert starts["htinf"] == pytest.approx(5.34e6, rel=0.01)
    assert starts["dp-exp3-lap"] is None
    rng = random.Random(3)
    for row in algorithms(with_experts=False):
        start = starts[row.name]
        if start is None:
            assert row.bound is None
            continue
        later = [start, start + 1, *(rng.randint(start, 2 * start) for _ in range(60))]
        assert not any(row_of(row, problem.but(rounds=rounds)).vacuous for rounds in later)
        earlier = row_of(row, problem.but(rounds=max(1, round(start * 0.97) - 2)))
        assert earlier.vacuous
    assert says_something_from(algorithms(with_experts=False)[0], Problem(1000, 1, 1e-9)) is None


def share(problem: Problem) -> float:
    return plan(problem).best.share


def test_inverse_questions_have_sharp_answers() -> None:
    problem = Problem(10, 10**6, 0.1)
    epsilon = ask("epsilon", 0.05, problem).value
    assert share(problem.but(epsilon=epsilon)) <= 0.05 < share(problem.but(epsilon=epsilon * 0.999))
    found = ask("arms", 0.05, problem)
    assert share(found.problem) <= 0.05 < share(problem.but(arms=found.value + 1))
    advised = Problem(5, 10**6, 0.3, delta=1e-6)
    found = ask("experts", 0.03, advised)
    assert share(found.problem) <= 0.03 < share(advised.but(experts=found.value + 1))
    advised = Problem(5, 10**7, 0.3, experts=1000, delta=1e-6)
    found = ask("arms", 0.05, advised)
    assert share(found.problem) <= 0.05 < share(advised.but(arms=found.value + 1))
    assert ask("experts", 0.5, Problem(2, 10**12, 1.0)).value == 10**9
    for question, target, asked, reason in (
        ("experts", 0.05, Problem(5, 1000, 0.01), r"even for 2 experts .* the best is 0\."),
        ("epsilon", 0.001, Problem(10, 1000, 1.0), "even with hardly any privacy"),
        ("arms", 0.01, Problem(2, 1000, 0.1), "even for 2 arms"),
        ("rounds", 1e-6, Problem(10, None, 1e-6), "for any number of rounds"),
        ("rounds", 1.5, Problem(10, None, 0.1), "share of the rounds"),
        ("delta", 0.5, Problem(10, 100, 0.1), "unknown question"),
    ):
        with pytest.raises(bd.InputError, match=reason):
            ask(question, target, asked)


@pytest.mark.parametrize("seed", mostly_slow(range(12), [1, 2, 3, 4, 6, 8, 10]))
def test_from_so_many_rounds_on_means_from_there_on(seed: int) -> None:
    """Shares of the rounds are not monotone in them; the threshold holds nevertheless."""
    rng = random.Random(seed)
    experts = rng.choice([None, None, 3, 50])
    problem = Problem(rng.randint(2, 40), None, 10 ** rng.uniform(-2.5, 0.5), experts, 1e-6)
    target = 10 ** rng.uniform(-2, -0.5)
    found = ask("rounds", target, problem)
    first = int(found.value)
    assert found.words.startswith(f"From {first:,} rounds on")
    near = [first + step for step in range(60)]
    far = [rng.randint(first, 3 * first) for _ in range(60)]
    for rounds in near + far:
        assert share(problem.but(rounds=rounds)) <= target
    assert share(problem.but(rounds=max(1, round(0.98 * first) - 3))) > target


def test_a_plan_takes_milliseconds() -> None:
    plan(10, 10**6, 0.1)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        plan(10, 10**6, 0.1)
        times.append(time.perf_counter() - start)
    assert median(times) < 0.02  # 1 ms alone; the machine may be busy with other tests


def test_a_policy_knows_its_plan_and_its_own_bound() -> None:
    policy = bd.PrivateBandit(10, 0.1, 1_000_000)
    own = policy.plan.own
    assert own is not None
    assert own.algorithm == "phased-net"
    assert own.bound is not None
    assert own.bound.batch == policy.batch
    with pytest.raises(bd.InputError, match="rounds="):
        _ = bd.PrivateBandit(10, 0.1).plan


def test_a_policy_with_replaced_parts_shows_the_bound_of_what_it_runs() -> None:
    problem = Problem(10, 10**6, 0.1)
    wide = bd.PrivateBandit(10, 0.1, 10**6, batch=16).plan
    usual = next(row for row in wide.rows if row.algorithm == "one-bit")
    assert wide.own is not None
    assert wide.own.bound is not None
    assert wide.own.bound.batch == 16
    assert wide.own.regret > usual.regret
    # HTINF in other batches is tuned as in our proof, and so has our bound.
    htinf = bd.PrivateBandit(10, 0.1, 10**6, "htinf", batch=16).plan.own
    assert htinf is not None
    assert (htinf.algorithm, htinf.entry.constants) == ("htinf", "ours")
    assert htinf.regret == row_of(htinf.entry, problem, 16).regret
    for unknown in (
        bd.PrivateBandit(10, 0.1, 10**6, learner="uniform"),
        bd.PrivateBandit(10, 0.1, 10**6, "exp3", batch=16),
        bd.PrivateExperts(5, 3, 0.1, rounds=10**6, learner="uniform"),
    ):
        own = unknown.plan.own
        assert own is not None
        assert own.bound is None
        assert "no bound is known" in own.reason
        assert "no bound is known" in str(unknown.plan)
    converted = bd.PrivateExperts(5, 3, 0.1, rounds=10**6, batch=9).plan.own
    assert converted is not None
    assert converted.algorithm == "one-bit"
    assert converted.bound is not None
    assert converted.bound.batch == 9


@pytest.mark.soak
def test_expected_regret_is_below_the_guarantee() -> None:
    from benchmarks.expected import expected_regret

    problem = Problem(4, 30_000, 0.5)
    found, left_out = expected_regret(problem)
    by_name = {row.algorithm: row for row in found}
    assert {"one-bit", "htinf", "no-privacy", "exp3"} <= set(by_name)
    guaranteed = next(row for row in plan(problem).rows if row.algorithm == "one-bit")
    assert by_name["one-bit"].worst < guaranteed.share
    assert by_name["no-privacy"].typical < by_name["one-bit"].typical
    assert all(reason for reason in left_out.values())
    _, too_long = expected_regret(Problem(10, 10**9, 0.1))
    assert "too long" in too_long["ftpl"]
    short, refused = expected_regret(Problem(50, 30, 0.5))
    assert "smallest rounds" in refused["exp3"]
    assert short
