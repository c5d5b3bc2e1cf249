"""Plans that protect persons: epsilon is theirs, and each slot costs its share."""

from __future__ import annotations

import json

import pytest

import bandanna as bd
from bandanna.planner.inverse import slots_for
from bandanna.planner.plan import plan
from bandanna.privacy.composition import SlotCost, keeps, slot_for
from bandanna.spec import Problem

PERSON = Problem(arms=3, rounds=10**6, epsilon=1.0, delta=1e-6)


def test_each_algorithm_is_planned_with_what_a_slot_may_cost() -> None:
    found = plan(PERSON, per_person=20)
    each = slot_for(1.0, 1e-6, 20)
    assert {row.problem.epsilon for row in found.rows} == {each.epsilon}
    alone = plan(3, 10**6, each.epsilon)
    assert [row.regret for row in found.rows] == [row.regret for row in alone.rows]
    assert found.to_dict()["per_person"] == 20
    assert "a person's 20" in found.why


def test_what_has_a_delta_of_its_own_gets_a_share_of_it() -> None:
    found = plan(PERSON.but(experts=8), per_person=20)
    for row in found.rows:
        each = SlotCost(row.problem.epsilon, row.problem.delta)
        assert keeps(1.0, 1e-6, each, 20)
        assert (each.delta > 0) == (row.entry.release == "vector")


def test_the_most_slots_for_a_regret() -> None:
    found = int(slots_for(0.02, PERSON).value)
    assert plan(PERSON, per_person=found).best.share <= 0.02
    assert plan(PERSON, per_person=found + 1).best.share > 0.02
    with pytest.raises(bd.InputError, match="even if everyone has one"):
        slots_for(0.001, PERSON)


def test_a_policy_runs_what_was_planned() -> None:
    found = plan(PERSON.but(experts=8), per_person=20)
    policy = bd.PrivateExperts(8, 3, 1.0, 1e-6, 10**6, per_person=20)
    assert policy.algorithm == found.auto[0]
    assert policy.recipe.release.guarantee().epsilon == found.best.problem.epsilon
    assert policy.plan.best.regret == found.best.regret


def test_batches_are_no_larger_than_people_can_fill() -> None:
    """Sixty people cannot fill a batch of 219; half of them fill one although some come rarely."""
    few = PERSON.but(arms=2, rounds=60_000)
    found = plan(few, per_person=1000, people=60)
    assert all(row.bound.batch <= 30 for row in found.rows if row.bound is not None)
    assert found.best.regret == pytest.approx(11_098, rel=1e-3)
    assert plan(few, per_person=1000).best.regret == found.best.regret
    assert plan(few, per_person=1000, people=10_000).best.regret < found.best.regret
    with pytest.raises(bd.InputError, match="people= goes with per_person="):
        plan(few, people=60)


def test_the_command_caps_batches_by_people() -> None:
    from typer.testing import CliRunner

    from bandanna.cli import app

    given = "plan --set people=60 --per-person 1000 --arms 2 --epsilon 1 --delta 1e-6 --json"
    shown = json.loads(CliRunner().invoke(app, given.split()).stdout)
    best = next(row for row in shown["rows"] if row["algorithm"] == shown["best"])
    assert (best["batch"], round(best["bound"])) == (30, 11_098)
    assert "counted by slots" in shown["condition"]
