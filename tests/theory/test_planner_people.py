"""Plans that protect persons: epsilon is theirs, and each place costs its share."""

from __future__ import annotations

import pytest

import bandanna as bd
from bandanna.planner.inverse import places_for
from bandanna.planner.plan import plan
from bandanna.privacy.composition import Place, keeps, place_for
from bandanna.problem import Problem

PERSON = Problem(arms=3, rounds=10**6, epsilon=1.0, delta=1e-6)


def test_each_algorithm_is_planned_with_what_a_place_may_cost() -> None:
    found = plan(PERSON, per_person=20)
    each = place_for(1.0, 1e-6, 20)
    assert {row.problem.epsilon for row in found.rows} == {each.epsilon}
    alone = plan(3, 10**6, each.epsilon)
    assert [row.regret for row in found.rows] == [row.regret for row in alone.rows]
    assert found.to_dict()["per_person"] == 20
    assert "a person's 20" in found.why


def test_what_has_a_delta_of_its_own_gets_a_share_of_it() -> None:
    found = plan(PERSON.but(experts=8), per_person=20)
    for row in found.rows:
        each = Place(row.problem.epsilon, row.problem.delta)
        assert keeps(1.0, 1e-6, each, 20)
        assert (each.delta > 0) == (row.entry.release == "vector")


def test_the_most_places_for_a_regret() -> None:
    found = int(places_for(0.02, PERSON).value)
    assert plan(PERSON, per_person=found).best.share <= 0.02
    assert plan(PERSON, per_person=found + 1).best.share > 0.02
    with pytest.raises(bd.InputError, match="even if everyone has one"):
        places_for(0.001, PERSON)


def test_a_policy_runs_what_was_planned() -> None:
    found = plan(PERSON.but(experts=8), per_person=20)
    policy = bd.PrivateExperts(8, 3, 1.0, 1e-6, 10**6, per_person=20)
    assert policy.algorithm == found.best.algorithm
    assert policy.recipe.release.guarantee().epsilon == found.best.problem.epsilon
    assert policy.plan.best.regret == found.best.regret
