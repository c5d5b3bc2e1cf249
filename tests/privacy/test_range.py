"""A range bought with a part of the budget."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bandanna as bd
from bandanna.cli import app
from bandanna.privacy.certificate import sealed, verify
from bandanna.privacy.range import RANGE_ENTRIES, cost_of_range, impossible_range


def test_it_holds_what_it_should_and_says_what_it_costs() -> None:
    values = np.random.default_rng(0).exponential(10.0, 20_000)
    found = bd.private_range(values, 1.0, bounds=(0, 1000), share=0.9)
    # True quantiles 0.5 and 30; an end farther off has a chance below 1e-9 by the mechanism.
    assert found.low <= 3
    assert 25 <= found.high <= 36
    assert (found.guarantee.epsilon, found.guarantee.delta) == (1.0, 0.0)
    assert "OpenDP's privacy map proves" in found.guarantee.because
    policy = bd.PrivateBandit(2, 0.5, loss_range=found.loss_range, clip=True)
    both = found.together(policy.guarantee)
    assert both.epsilon == 1.5
    assert both.private


def test_constants_have_a_range_too_and_nothing_private_is_repeated() -> None:
    found = bd.private_range([5.0] * 5000, 1.0, bounds=(0, 10))
    assert 0 <= found.low < found.high <= 10
    with pytest.raises(bd.InputError) as caught:
        bd.private_range(["secret"], 1.0, bounds=(0, 1))  # type: ignore[list-item]
    assert "secret" not in str(caught.value)
    with pytest.raises(bd.InputError, match="share"):
        bd.private_range([1.0], 1.0, bounds=(0, 1), share=1.0)


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    found = bd.private_range(range(2000), 0.5, bounds=(0, 10_000))
    policy = bd.PrivateBandit(2, 0.3, loss_range=found.loss_range, clip=True)
    return policy.certificate(found)


def test_a_certificate_says_what_the_range_cost_and_is_verified(
    certificate: dict[str, Any], tmp_path: Path
) -> None:
    assert certificate["epsilon"] == 0.3
    assert certificate["range_epsilon"] == 0.5
    assert certificate["epsilon_with_range"] == 0.8
    cost = cost_of_range(certificate["range_tail"], certificate["range_scale"])
    assert Fraction("0.4999") < cost <= Fraction("0.5")
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate, indent=2))
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0, done.output
    assert "range_epsilon: two quantiles with noise of scale" in done.output
    assert "epsilon_with_range: range and policy cost 0.8 together" in done.output


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("range_epsilon", 0.4),
        ("range_scale", 1.0),
        ("range_scale", -1.0),
        ("range_tail", 0),
        ("range_tail", 2.0),
        ("range_bound_high", 5.0),
        ("range_bound_low", "0"),
        ("range_assumptions", []),
        ("epsilon_with_range", 0.5),
        ("epsilon_with_range", None),
    ],
)
def test_what_does_not_follow_is_found(certificate: dict[str, Any], entry: str, value: Any) -> None:
    changed = {key: old for key, old in certificate.items() if key != "seals"} | {entry: value}
    findings = verify(json.dumps(sealed(changed)))
    assert not all(finding.holds for finding in findings)


@pytest.mark.parametrize("entry", RANGE_ENTRIES)
def test_no_part_of_it_can_be_left_out(certificate: dict[str, Any], entry: str) -> None:
    changed = {key: old for key, old in certificate.items() if key not in ("seals", entry)}
    assert not all(finding.holds for finding in verify(json.dumps(sealed(changed))))


def test_the_derivation_is_opendps(certificate: dict[str, Any]) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    for tail in (1, 250, 2500):
        for scale in (0.5, certificate["range_scale"], 1e4):
            made = dp.m.make_private_quantile(
                *space, dp.max_divergence(), [0.0, 1.0], tail / 10_000, scale
            )
            assert 2 * made.map(2) == pytest.approx(float(cost_of_range(tail, scale)), rel=1e-12)


def test_only_the_policys_own_range_is_certified() -> None:
    found = bd.private_range(range(2000), 0.5, bounds=(0, 10_000))
    for policy in (
        bd.PrivateBandit(2, 0.3, clip=True),
        bd.PrivateBandit(2, 0.3, loss_range=found.loss_range),
    ):
        with pytest.raises(bd.InputError, match="make the policy with loss_range= just that"):
            policy.certificate(found)


POSSIBLE: dict[str, Any] = {
    "range_epsilon": 0.5,
    "range_scale": 4.0,
    "epsilon_with_range": 1.5,
    "range_tail": 20,
    "range_bound_low": 0,
    "range_bound_high": 10.5,
}


@pytest.mark.parametrize(
    ("entry", "value", "why"),
    [
        *((name, 0.0, "above 0") for name in ("range_scale", "epsilon_with_range")),
        *((name, True, "above 0") for name in ("range_scale", "epsilon_with_range")),
        *((name, "1", "above 0") for name in ("range_scale", "epsilon_with_range")),
        *((name, float("inf"), "above 0") for name in ("range_scale", "epsilon_with_range")),
        ("range_scale", -1, "above 0"),
        ("range_epsilon", 9e-10, "from 1e-09 to 100"),
        ("range_epsilon", 100.5, "from 1e-09 to 100"),
        ("range_epsilon", -0.5, "above 0"),
        ("range_tail", 0, "from 1 to"),
        ("range_tail", 20.0, "whole number"),
        ("range_tail", True, "whole number"),
        ("range_tail", 10**9, "from 1 to"),
        ("range_bound_low", 10.5, ""),
        ("range_bound_low", "0", "must be numbers"),
        ("range_bound_high", True, "must be numbers"),
        ("range_bound_high", float("nan"), ""),
    ],
)
def test_numbers_that_no_bought_range_has_are_named(entry: str, value: Any, why: str) -> None:
    assert not list(impossible_range(POSSIBLE))
    found = list(impossible_range(POSSIBLE | {entry: value}))
    assert {one.entry for one in found} == {entry.replace("bound_high", "bound_low")}
    assert all(one.holds is False for one in found)
    assert any(why in one.why for one in found)


@pytest.mark.parametrize("edge", [1e-9, 100.0, 100])
def test_edges_of_what_a_range_may_cost_are_possible(edge: float) -> None:
    assert not list(impossible_range(POSSIBLE | {"range_epsilon": edge, "range_tail": 1}))
