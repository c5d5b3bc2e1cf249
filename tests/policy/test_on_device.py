"""A policy that learns from bits which people's devices released."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.audits.policies import audit_policy
from bandanna.device import check_release, draw_bit, make_release, to_units
from bandanna.policy.codec import learned_to_dict
from bandanna.policy.facade import policy_from_dict
from bandanna.simulation.engine import run_streams

ARMS = 3
ALGORITHMS = ("one-bit", "one-bit-exp3", "htinf")


def policy(**options: Any) -> bd.PrivateBandit:
    chosen: dict[str, Any] = {"release": "device", "seed": 5} | options
    return bd.PrivateBandit(ARMS, 1.0, 1000, **chosen)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_it_learns_what_the_central_one_bit_learner_learns_from_the_same_bits(
    algorithm: str,
) -> None:
    """Decision by decision and bit for bit, in batches of one."""
    arms, releases, _ = run_streams(3, 0)
    central = policy(algorithm=algorithm, release="one-bit", batch=1).rehearse(arms, releases)
    again, _, _ = run_streams(3, 0)
    local = policy(algorithm=algorithm)
    local.state.stream[:] = again
    bits: list[float] = []
    central.on_release = lambda batch, released: bits.append(
        cast(float, 0.0 if released is None else released)
    )
    rng = np.random.default_rng(1)
    for _ in range(300):
        here, there = central.decide(), local.decide()
        assert here[:5] == there[:5]
        central.observe(here, loss=float(rng.random()))
        local.observe_bit(there, int(bits[-1]))
    assert learned_to_dict(central.state)["learner"] == learned_to_dict(local.state)["learner"]
    assert central.summary().rows == local.summary().rows


def test_losses_are_refused_and_bits_where_losses_are_sent() -> None:
    on_device, central = policy(), policy(release="one-bit")
    decision = on_device.decide()
    before = on_device.to_dict()
    wrongs: list[Callable[[], None]] = [
        lambda: on_device.observe(decision, loss=0.8125),
        lambda: on_device.observe(decision, reward=0.8125),
        lambda: on_device.observe_bit(decision, 2),
        lambda: on_device.observe_bit(decision, True),
        lambda: on_device.observe_bit(decision, 0.5),  # type: ignore[arg-type]
    ]
    for refused in wrongs:
        with pytest.raises(bd.InputError) as error:
            refused()
        assert "0.8125" not in str(error.value)
    assert on_device.to_dict() == before
    with pytest.raises(bd.InputError, match='release="device"'):
        central.observe_bit(central.decide(), 1)


def test_repeats_are_ignored_and_another_bit_refused() -> None:
    bandit = policy()
    first, second = bandit.decide(), bandit.decide()
    bandit.observe_bit(first, 1)
    bandit.observe_bit(first._asdict(), 1)
    with pytest.raises(bd.DecisionError, match="another value"):
        bandit.observe_bit(first, 0)
    bandit.give_up(second)
    for late in (0, 1):
        with pytest.raises(bd.DecisionError, match="given up"):
            bandit.observe_bit(second, late)
    assert (bandit.released, bandit.waiting) == (2, 0)


def test_missing_bits_are_drawn_from_the_default_loss() -> None:
    """400 at default loss 0 and epsilon 4: ones have chance 1.8%, and 60 of them below 1e-12."""
    bandit = bd.PrivateBandit(2, 4.0, 1000, release="device", default_loss=0.0, algorithm="one-bit")
    bits: list[float] = []
    bandit.on_release = lambda batch, released: bits.append(
        cast(float, -1.0 if released is None else released)
    )
    for _ in range(400):
        bandit.give_up(bandit.decide())
    assert len(bits) == 400
    assert set(bits) <= {0.0, 1.0}
    assert sum(bits) < 60


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1)), max_size=30))
def test_it_goes_on_bit_for_bit_from_a_file(script: list[tuple[bool, int]]) -> None:
    bandit = policy()
    waiting = []
    for late, bit in script:
        decision = bandit.decide()
        if late:
            waiting.append(decision)
        else:
            bandit.observe_bit(decision, bit)
    other = policy_from_dict(json.loads(json.dumps(bandit.to_dict())))
    assert other.guarantee == bandit.guarantee
    for number, decision in enumerate(waiting):
        for each in (bandit, other):
            each.observe_bit(decision, number % 2)
    for number in range(5):
        ours, theirs = bandit.decide(), other.decide()
        assert theirs == ours._replace(policy=theirs.policy)
        bandit.observe_bit(ours, number % 2)
        other.observe_bit(theirs, number % 2)


def test_it_is_saved_loaded_certified_planned_and_simulated(tmp_path: Path) -> None:
    bandit = policy()
    bandit.observe_bit(bandit.decide(), 1)
    bandit.save(tmp_path / "bandit.json")
    loaded = bd.load(tmp_path / "bandit.json", epsilon=1.0)
    assert loaded.guarantee.model == "local"
    assert loaded.guarantee.mechanism.endswith("who asked when, the arm and the bit")
    assert loaded.certificate()["mechanism"] == "device-bit"
    assert bandit.plan.own is not None
    assert bandit.plan.own.regret == bd.PrivateBandit(ARMS, 1.0, 1000, batch=1).plan.own.regret  # type: ignore[union-attr]
    losses = np.random.default_rng(0).random((200, ARMS))
    policies = {"device": bandit, "central": policy(release="one-bit", batch=1)}
    results = bd.simulate(policies, losses, replicates=3, seed=2)
    np.testing.assert_array_equal(results.regret("device"), results.regret("central"))


@pytest.mark.parametrize("exact", [False, True])
def test_the_audit_of_the_whole_policy_finds_no_more_than_is_claimed(exact: bool) -> None:
    """At significance 1e-6; the canaries alone must find at least half of epsilon."""
    found = audit_policy(policy(), batches=5000, runs=60, significance=1e-6, exact=exact)
    assert found.passed
    assert 0.5 < found.epsilon <= 1.0


def test_devices_and_policy_together_learn_the_best_arm() -> None:
    """Real devices' draws: 600 rounds at epsilon 4, losses 0 and 1.

    The best arm leads but for chances below 1e-9: of its 200 and more bits 2% are wrong.
    """
    parameters = check_release(make_release(4.0), 4.0)
    bandit = bd.PrivateBandit(ARMS, 4.0, 600, release="device")
    for _ in range(600):
        decision = bandit.decide()
        units = to_units(parameters, 0.0 if decision.index == 1 else 1.0)
        bandit.observe_bit(decision, draw_bit(parameters, units))
    assert bandit.leader == 1


def test_what_needs_losses_is_refused() -> None:
    for wrong in (
        lambda: policy(per_person=2),
        lambda: policy(batch=2),
        lambda: policy(algorithm="dp-klucb"),
        lambda: bd.PrivateExperts(3, 2, 1.0, algorithm="one-bit", release="device"),
    ):
        with pytest.raises(bd.InputError):
            wrong()
