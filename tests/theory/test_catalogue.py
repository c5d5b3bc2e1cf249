"""One catalogue: every row can be planned and run, promises what it says, and one can add rows."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import research.prior_work  # noqa: F401  # makes dp-exp3-lap known

import bandanna as bd
from bandanna import algorithms as catalogue
from bandanna.algorithms import Algorithm, algorithms, find, names, register
from bandanna.environments import Bernoulli
from bandanna.planner.plan import Row, plan, row_of
from bandanna.policy.facade import policy_from_dict
from bandanna.policy.parts import recipe_of
from bandanna.simulation.baselines import make_policy
from bandanna.spec import Problem
from bandanna.theory.tuning import Bound, Tuning

BANDITS = [Problem(4, 10**6, 0.5), Problem(2, 10**7, 0.03), Problem(3, 10**6, 2.0)]
ADVISED = [
    Problem(3, 10**7, 1.0, experts=4, delta=1e-2),
    Problem(3, 10**8, 0.5, experts=40, delta=1e-6),
    Problem(2, 10**6, 3.0, experts=2),
    Problem(5, 10**6, 1.0, experts=6, delta=1e-9),
]
EVERY = [
    pytest.param(entry, problem, id=f"{entry.name} {entry.constants or ''}: {problem}")
    for problems in (BANDITS, ADVISED)
    for problem in problems
    for row in algorithms(with_experts=problem.with_experts)
    for entry in row.versions
]


def _whose(entry: Algorithm) -> dict[str, Any]:
    return {} if entry.constants is None else {"constants": entry.constants}


@pytest.mark.parametrize(("entry", "problem"), EVERY)
def test_the_plan_says_what_the_policy_promises(entry: Algorithm, problem: Problem) -> None:
    """Model, delta and batch of a row are those of the policy that is made from it."""
    row = row_of(entry, problem)
    try:
        policy = make_policy(entry.name, problem, **_whose(entry))
    except bd.InputError:
        assert row.bound is None
        assert row.reason
        return
    assert policy.recipe == recipe_of(entry.tuned(problem))
    promise = policy.guarantee
    assert promise.private == entry.private
    if row.bound is not None:
        assert row.bound.batch == policy.batch
        assert (row.model, row.delta) == (promise.model, promise.delta)
    assert entry.model(policy.batch) == promise.model
    assert policy.recipe.release.name == entry.release
    if entry.private:
        assert policy.plan.own is not None
        assert policy.plan.own.bound == row.bound


def test_every_row_fits_some_problem_here() -> None:
    fits = {
        (entry.with_experts, entry.name)
        for problem in (*BANDITS, *ADVISED)
        for entry in algorithms(with_experts=problem.with_experts)
        if entry.bound is None or row_of(entry, problem).bound is not None
    }
    missing = {
        (row.with_experts, row.name)
        for adv in (False, True)
        for row in algorithms(with_experts=adv)
    }
    assert missing - fits <= {(True, "batched-exp4")}  # it needs longer horizons:
    assert row_of(find("batched-exp4", with_experts=True), Problem(2, 10**9, 1.0, 2, 1e-3)).bound


def test_names_are_told_by_needs() -> None:
    with pytest.raises(bd.InputError, match="unknown algorithm 'exp5'; there are one-bit"):
        find("exp5", with_experts=False)
    with pytest.raises(bd.InputError, match="with experts there are auto, one-bit"):
        find("exp5", with_experts=True)
    with pytest.raises(bd.InputError, match="uniform is not private"):
        bd.PrivateBandit(3, 0.5, algorithm="uniform")
    assert find("batched-exp4", with_experts=True).needs_delta
    for entry in algorithms(with_experts=False):
        if entry.private and not entry.needs_rounds:
            assert bd.PrivateBandit(3, 0.5, algorithm=entry.name).rounds is None
        elif entry.private:
            with pytest.raises(bd.InputError, match="pass rounds="):
                bd.PrivateBandit(3, 0.5, algorithm=entry.name)


def test_our_constants_run_what_their_bound_prescribes() -> None:
    for problem in (BANDITS[0], ADVISED[1]):
        ours = [row.ours for row in algorithms(with_experts=problem.with_experts) if row.ours]
        assert len(ours) >= 4
        for entry in ours:
            row = row_of(entry, problem)
            policy = make_policy(entry.name, problem, constants="ours")
            assert row.bound is not None
            learner = policy.recipe.learner.to_dict()
            for name, value in row.bound.settings.items():
                if name != "noise":
                    assert learner[name] == value


def test_a_user_meets_sixteen_names_and_all_of_the_papers() -> None:
    met = [row for adv in (False, True) for row in algorithms(with_experts=adv)]
    met = [row for row in met if not row.comparison]
    assert len({row.name for row in met}) <= 16
    papers = {row.name for row in met if row.source == "the paper"}
    assert papers == {"exp3", "ftpl", "htinf", "local-exp4", "batched-exp4"}
    with pytest.raises(bd.InputError, match=r"there are (?!.*(ldp-exp3|dp-exp3-lap|uniform))"):
        find("exp5", with_experts=False)
    for name in ("ldp-exp3", "dp-exp3-lap"):
        assert bd.PrivateBandit(3, 0.5, 10_000, name).algorithm == name


def test_constants_are_a_choice_where_there_are_two() -> None:
    paper, ours = (bd.PrivateBandit(4, 0.5, 10**6, "exp3", constants=of) for of in (None, "ours"))
    assert paper.recipe == bd.PrivateBandit(4, 0.5, 10**6, "exp3", constants="paper").recipe
    assert paper.recipe != ours.recipe
    assert policy_from_dict(ours.to_dict()).spec.constants == "ours"
    with pytest.raises(bd.InputError, match="constants= is for htinf, exp3, ftpl, which"):
        bd.PrivateBandit(4, 0.5, 10**6, "adaptive", constants="ours")
    with pytest.raises(bd.InputError, match="constants must be one of paper, ours; got 'tight'"):
        bd.PrivateBandit(4, 0.5, 10**6, "exp3", constants="tight")  # type: ignore[arg-type]
    followed = bd.PrivateExperts(3, 2, 0.5, 0.0, 10**6, "exp3", constants="ours")
    assert followed.plan.own is not None
    assert followed.plan.own.entry.constants == "ours"
    planned = {row.algorithm: row.regret for row in plan(4, 10**6, 0.5, constants="ours").rows}
    assert ours.plan.own is not None
    assert planned["exp3"] == ours.plan.own.regret


def test_pure_noise_spends_no_delta_and_a_batch_of_one_of_vectors_is_central() -> None:
    few = Problem(5, 10**6, 1.0, experts=4, delta=1e-6)
    entry = find("batched-exp4", with_experts=True, constants="ours")
    row = row_of(entry, few)
    assert row.delta == 0.0
    assert (
        bd.PrivateExperts(4, 5, 1.0, 1e-6, 10**6, "batched-exp4", constants="ours").guarantee.delta
        == 0.0
    )
    single = [
        problem
        for epsilon in (20.0, 50.0, 100.0)
        if row_of(entry, problem := Problem(2, 50, epsilon, experts=2)).bound
    ]
    batches = set()
    for problem in single:
        policy = make_policy("batched-exp4", problem, constants="ours")
        batches.add(policy.batch)
        assert row_of(entry, problem).model == policy.guarantee.model == "central"
    assert 1 in batches


def test_the_table_in_the_guide_lists_the_catalogue() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "bandits.md").read_text()
    for entry in algorithms(with_experts=False):
        row = f"| `{entry.name}` | {entry.line} | {entry.source} |"
        assert (row in guide) == (entry.private and not entry.comparison), entry.name
    experts = (Path(__file__).parents[2] / "docs" / "experts.md").read_text()
    for name in names(with_experts=True, private=True, comparison=False):
        assert f"`{name}`" in experts, name


TOY = "toy-exp3"


def toy() -> Algorithm:
    """EXP3 with a rate of its own behind bits, as someone else would add it."""

    def tune(problem: Problem, batch: int | None) -> Tuning:
        rate = 1.0 / math.sqrt(problem.horizon(TOY))
        learner = {"name": "exp3", "arms": problem.arms, "learning_rate": rate}
        release = {"name": "one-bit", "epsilon": problem.epsilon, "batch": batch or 1}
        return Tuning(learner, release)

    def bound(problem: Problem, batch: int | None) -> Bound:
        return Bound("a friend", {"everything": 1.0 * problem.horizon(TOY)}, batch or 1)

    return Algorithm(TOY, "a toy", "prior work", bound, tune, release="one-bit")


def test_an_algorithm_from_outside_takes_one_registration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(catalogue, "_ROWS", dict(catalogue._ROWS))
    register(toy())
    with pytest.raises(bd.InputError, match="already"):
        register(toy())
    planned: dict[str, Row] = {row.algorithm: row for row in plan(3, 1000, 0.5).rows}
    assert planned[TOY].model == "local"
    advised = plan(3, 1000, 0.5, experts=4)
    assert TOY in {row.algorithm for row in advised.rows}
    policy = bd.PrivateBandit(3, 0.5, 1000, TOY)
    policy.observe(policy.decide(), loss=0.5)
    assert (policy.guarantee.epsilon, policy.guarantee.model) == (0.5, "local")
    expert = make_policy(TOY, Problem(3, 1000, 0.5, experts=4))
    assert expert.recipe.learner.arms == 4
    results = bd.simulate({TOY: policy}, Bernoulli(3, 1000), replicates=2, progress=False)
    assert results.regret(TOY).shape == (2,)
    grid: dict[str, list[Any]] = {
        "algorithm": [TOY, "one-bit"],
        "environment": ["bernoulli"],
        "epsilon": [0.5],
        "arms": [3],
        "rounds": [1000],
    }
    assert len(bd.Study(grid=grid, replicates=2).cells) == 2


@pytest.mark.parametrize("release", [{"name": "plain"}, {"name": "one-bit", "epsilon": 0.6}])
def test_an_algorithm_that_promises_less_than_asked_is_refused(
    release: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "_ROWS", dict(catalogue._ROWS))

    def tune(problem: Problem, batch: int | None) -> Tuning:
        return Tuning({"name": "uniform", "arms": problem.arms}, {**release, "batch": 1})

    register(Algorithm("liar", "says it is private", "prior work", tune=tune))
    with pytest.raises(bd.InputError, match="weaker than the epsilon"):
        bd.PrivateBandit(3, 0.5, 1000, "liar")


@pytest.mark.slow
def test_an_algorithm_from_outside_is_on_the_command_line() -> None:
    code = (
        "from bandanna.algorithms import register\n"
        "from tests.theory.test_catalogue import toy\n"
        "register(toy())\n"
        "import sys; from bandanna.cli import main\n"
        "main()\n"
    )
    size = ["--arms", "3", "--rounds", "1000", "--epsilon", "0.5"]
    for command in (
        ["plan", "--all", *size],
        ["simulate", *size, "--replicates", "2", "--algorithms", TOY],
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *command],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        assert TOY in done.stdout
