"""Secondary outcomes beside the main one: what all cost together, and what is proved of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna._core.streams import new_stream
from bandanna.privacy.columns import Columns
from bandanna.privacy.laplace import LaplaceRelease, laplace_scale
from bandanna.privacy.metrics import MetricsMechanism, shares_of
from bandanna.privacy.one_bit import OneBitRelease
from bandanna.privacy.plain import PlainRelease
from bandanna.privacy.release import Release, Seeded

RANGES = {"refund": (0.0, 1.0), "revenue": (-5.0, 100.0)}


def beside(outcome: Release) -> Columns:
    made = Columns.of(outcome, RANGES, 0.25)
    assert made is not None
    return made


def facts() -> dict[str, Any]:
    outcome = LaplaceRelease(0.5, 4)
    made = dict(beside(outcome).guarantee(outcome.guarantee()).facts)
    made["outcome"] = dict(made["outcome"])
    made["metrics"] = [dict(one) for one in made["metrics"]]
    return made


@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.5, 0.999])
@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
def test_shares_add_up_to_no_more_and_hardly_less(epsilon: float, count: int, share: float) -> None:
    outcome, each = shares_of(epsilon, count, share)
    together = Fraction(outcome) + count * Fraction(each)
    assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) < together <= Fraction(epsilon)
    assert count * each == pytest.approx(share * epsilon, rel=1e-12)


@pytest.mark.parametrize("outcome", [LaplaceRelease(0.5, 4), OneBitRelease(0.5, 4)])
def test_the_guarantee_has_all_parts(outcome: LaplaceRelease | OneBitRelease) -> None:
    alone = outcome.guarantee()
    found = beside(outcome).guarantee(alone)
    assert (found.epsilon, found.delta) == (1.0, 0.0)
    assert (found.protects, found.model) == (alone.protects, alone.model)
    assert found.private
    assert found.mechanism == (
        f"{alone.mechanism} (epsilon 0.5); and for each of the metrics refund, revenue discrete "
        f"Laplace noise of scale {4.0 * UNITS!r} on its sum, in units of 1/{UNITS} of its range "
        "(epsilon 0.25 each)"
    )
    assert found.assumptions == (
        *alone.assumptions,
        "metrics are in ranges fixed without looking at them: refund 0 to 1, revenue -5 to 100",
    )
    assert "add up" in found.because
    said = dict(found.facts)
    assert said["mechanism"] == "with-metrics"
    assert (said["batch"], said["units"]) == (4, UNITS)
    assert said["outcome"] == dict(alone.facts)
    assert said["outcome_epsilon"] == 0.5
    assert said["metrics"] == [
        {"name": name, "low": low, "high": high, "epsilon": 0.25, "scale": laplace_scale(0.25)}
        for name, (low, high) in RANGES.items()
    ]
    assert not list(MetricsMechanism.impossible(said))
    law = MetricsMechanism.read(said)
    proved = list(law.prove(found.epsilon))
    assert all(finding.holds for finding in proved)
    assert sum(finding.why.startswith("refund: ") for finding in proved) > 0
    assert proved[-1].why == "3 parts add up to 1"


def test_parts_that_are_not_private_promise_nothing() -> None:
    plain = PlainRelease(4).guarantee()
    found = beside(PlainRelease(4)).guarantee(plain)
    assert not found.private
    assert found.mechanism == f"{plain.mechanism}, with metrics"
    assert found.because == plain.because
    seeded = LaplaceRelease(0.5, 4).seeded(new_stream(1))
    made = beside(seeded)
    assert not made.guarantee(seeded.guarantee()).private
    assert all(isinstance(one.release, Seeded) for one in made.columns)


def test_outcomes_that_other_mechanisms_release_are_refused() -> None:
    vector = bd.PrivateExperts(3, 2, 0.5, 1e-6, 10**6, "batched-exp4").recipe.release.guarantee()
    name, made = dict(vector.facts)["mechanism"], beside(LaplaceRelease(0.5, 4))
    with pytest.raises(bd.InputError, match=f"with one-bit and Laplace releases, not with {name}"):
        made.guarantee(vector)
    with pytest.raises(bd.InputError, match="with one-bit and Laplace releases"):
        beside(LaplaceRelease(0.5, 4)).guarantee(
            replace(LaplaceRelease(0.5, 4).guarantee(), delta=1e-6)
        )


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    made = facts()
    change(made)
    return made


WRONG: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "no batch": ("batch", lambda made: made.pop("batch")),
    "batch of 0": ("batch", lambda made: made.update(batch=0)),
    "batch is a float": ("batch", lambda made: made.update(batch=4.0)),
    "units is true": ("units", lambda made: made.update(units=True)),
    "units of 0": ("units", lambda made: made.update(units=0)),
    "epsilon of 0": ("outcome_epsilon", lambda made: made.update(outcome_epsilon=0.0)),
    "epsilon too small": ("outcome_epsilon", lambda made: made.update(outcome_epsilon=9e-10)),
    "epsilon too large": ("outcome_epsilon", lambda made: made.update(outcome_epsilon=101.0)),
    "epsilon is text": ("outcome_epsilon", lambda made: made.update(outcome_epsilon="0.5")),
    "no outcome": ("outcome", lambda made: made.pop("outcome")),
    "outcome is a list": ("outcome", lambda made: made.update(outcome=[1])),
    "unknown mechanism": ("outcome", lambda made: made["outcome"].update(mechanism="gaussian")),
    "unknown sampler": ("outcome", lambda made: made["outcome"].update(sampler="dice")),
    "one entry more": ("outcome", lambda made: made["outcome"].update(more=1)),
    "one entry less": ("outcome", lambda made: made["outcome"].pop("scale")),
    "no scale at all": ("outcome", lambda made: made["outcome"].update(scale=-1.0)),
    "no metrics": ("metrics", lambda made: made.update(metrics=[])),
    "metrics are no list": ("metrics", lambda made: made.update(metrics={"a": 1})),
    "a metric is text": ("metrics", lambda made: made.update(metrics=["refund"])),
    "a key more": ("metrics", lambda made: made["metrics"][0].update(more=1)),
    "name is a number": ("metrics", lambda made: made["metrics"][0].update(name=1)),
    "end is text": ("metrics", lambda made: made["metrics"][1].update(low="0")),
    "other end is true": ("metrics", lambda made: made["metrics"][1].update(high=True)),
    "empty range": ("metrics", lambda made: made["metrics"][0].update(low=1.0)),
    "metric's epsilon of 0": ("metrics", lambda made: made["metrics"][0].update(epsilon=0)),
    "metric's scale of 0": ("metrics", lambda made: made["metrics"][0].update(scale=0.0)),
    "a name twice": ("metrics", lambda made: made["metrics"][0].update(name="revenue")),
}


@pytest.mark.parametrize("name", WRONG)
def test_entries_that_no_release_has_are_named(name: str) -> None:
    entry, change = WRONG[name]
    found = list(MetricsMechanism.impossible(changed(change)))
    assert found
    assert {one.entry for one in found} == {entry}
    assert all(one.holds is False for one in found)
    assert all(len(one.why) > 10 for one in found)


@pytest.mark.parametrize(
    "edge", [{"batch": 1}, {"units": 1}, {"outcome_epsilon": 1e-9}, {"outcome_epsilon": 100}]
)
def test_edges_are_possible(edge: dict[str, Any]) -> None:
    assert not list(MetricsMechanism.impossible(facts() | edge))


UNPROVED: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "more epsilon for the outcome": ("epsilon", lambda made: made.update(outcome_epsilon=0.6)),
    "less epsilon for the outcome": (
        "outcome_epsilon",
        lambda made: made.update(outcome_epsilon=0.4),
    ),
    "a metric less": ("epsilon", lambda made: made["metrics"].pop()),
    "less noise on a metric": ("metrics", lambda made: made["metrics"][1].update(scale=UNITS)),
    "other batches": ("outcome", lambda made: made.update(batch=5)),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_what_does_not_follow_is_not_proved(name: str) -> None:
    entry, change = UNPROVED[name]
    law = MetricsMechanism.read(changed(change))
    failed = {one.entry for one in law.prove(1.0) if not one.holds}
    assert entry in failed


def test_a_batch_is_published_once_by_arm_with_values_cut_to_the_grid() -> None:
    made = beside(PlainRelease(1))
    exact = [one._replace(release=PlainRelease(1)) for one in made.columns]
    tally = PlainRelease(4).start()
    tally.also(replace(made, columns=tuple(exact)))
    tally.add(0, None, 2, (UNITS, 0))
    tally.add(0, None, 0, (-5, 3 * UNITS))
    tally.add(UNITS, None, 2, (0, UNITS // 2))
    tally.add(UNITS, None, 2, None)  # the default loss, which has no metrics
    tally.add(UNITS, None, 2, (UNITS,))  # an interrupt kept some of them
    assert tally.publish() == 0.75
    assert tally.beside == [(0, 1, (0.0, 1.0)), (2, 2, (0.5, 0.25))]
    with pytest.raises(AssertionError):
        tally.publish()
    with pytest.raises(AssertionError):
        tally.add(0, None, 0, (0, 0))
