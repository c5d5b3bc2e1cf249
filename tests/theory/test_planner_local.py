"""Plans for people's own devices: batches of one, and nothing that sees a loss."""

from __future__ import annotations

import math

import pytest
from benchmarks.expected import expected_regret

import bandanna as bd
from bandanna.planner.plan import plan
from bandanna.spec import Problem

SIZE = Problem(arms=4, rounds=100_000, epsilon=0.5)


def test_every_private_row_is_local_and_in_batches_of_one() -> None:
    found = plan(SIZE, local=True)
    private = [row for row in found.rows if row.entry.private and row.bound is not None]
    assert {row.algorithm for row in private} >= {"one-bit", "one-bit-exp3", "one-bit-tsallis"}
    assert all((row.model, row.bound and row.bound.batch) == ("local", 1) for row in private)
    assert found.best.algorithm == "one-bit-exp3"
    assert "release='device'" in found.worlds
    assert not {"htinf", "adaptive", "dp-klucb"} & {row.algorithm for row in found.rows}


def test_local_guarantees_are_those_of_policies_that_devices_feed() -> None:
    rows = {row.algorithm: row.regret for row in plan(SIZE, local=True).rows}
    central = {row.algorithm: row.regret for row in plan(SIZE).rows}
    for name in ("one-bit", "one-bit-exp3"):
        policy = bd.PrivateBandit(4, 0.5, 100_000, name, release="device")
        assert policy.plan.own is not None
        assert math.isclose(policy.plan.own.regret, rows[name])
        assert rows[name] > central[name]  # at this epsilon a batch of two and more is better


def test_what_devices_do_not_do_is_refused() -> None:
    with pytest.raises(bd.InputError, match="leave out experts and per_person"):
        plan(SIZE.but(experts=3), local=True)
    with pytest.raises(bd.InputError, match="leave out experts and per_person"):
        plan(SIZE, per_person=3, local=True)


@pytest.mark.slow
def test_expected_regret_is_of_the_same_algorithms() -> None:
    small = SIZE.but(rounds=500)
    rows, left_out = expected_regret(small, local=True)
    planned = {row.algorithm for row in plan(small, local=True).rows}
    assert {row.algorithm for row in rows} | set(left_out) == planned
