"""Who is in a log is hidden: one person moves three sums by 1 together, and no more is told."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna.audits.attack import audit
from bandanna.counted import Counted, squares_of
from bandanna.logs import answer_counted
from bandanna.one_look import Arm, OneLook
from bandanna.privacy import presence
from bandanna.privacy.card import make_card
from bandanna.privacy.certificate import verify
from bandanna.privacy.laplace import laplace_scale
from bandanna.privacy.presence import PresenceMechanism, PresenceRelease, shares_of
from tests.command import bandanna

RUNS = int(os.environ.get("BANDANNA_RUNS", "400"))


@pytest.mark.parametrize("grid", [4, 8, 16, 32, 256, 1024])
def test_everyone_adds_as_much_on_every_grid(grid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every outcome on smaller grids, whose quarter is a whole number as the grid's is."""
    monkeypatch.setattr(presence, "UNITS", grid)
    monkeypatch.setattr(presence, "LARGEST_SQUARE", grid // 4)
    units = np.arange(grid + 1)
    added = shares_of(np.ones_like(units), units, squares_of(units, grid))
    assert (added >= 0).all()
    assert (added.sum(axis=0) == grid).all()
    assert (added[2] == units**2 // grid).all()


def test_the_mechanism_knows_its_own_noise() -> None:
    law = PresenceRelease(0.5).mechanism
    assert all(finding.holds for finding in law.check(0.5, 0.0))
    for wrong in (
        PresenceMechanism(law.batch, law.units, law.scale / 2),
        PresenceMechanism(law.batch, law.units, law.scale * 2),
        PresenceMechanism(1_000, law.units, law.scale),
        PresenceMechanism(law.batch, law.units // 2, law.scale),
    ):
        assert not all(finding.holds for finding in wrong.check(0.5, 0.0))
    assert law.batch == MAX_ROUNDS, "how many rows there are is told by nothing"


def test_what_is_released_has_the_noise_it_says() -> None:
    """Means and variances of 4,000 releases; an alarm by chance is rarer than one in a million."""
    release = PresenceRelease(1.0)
    rng = np.random.default_rng(3)
    units = rng.integers(0, UNITS + 1, 1_000)
    counted = Counted.of_rows(("A", "B", "C"), np.arange(1_000) % 2, units)
    squares: Any = counted.squares
    drawn = [release.release(counted) for _ in range(4_000)]
    for name, exact, variance in (
        ("counts", counted.counts, 6.0),
        ("sums", counted.sums / UNITS, 2.5),
        ("squares", squares / UNITS, 6.0 / 16.0),
    ):
        found: Any = np.array([getattr(one, name) for one in drawn])[..., 0]
        expected: Any = exact
        assert np.abs(found.mean(axis=0) - expected[:, 0]).max() < 5.5 * np.sqrt(variance / 4_000)
        assert np.abs(found.var(axis=0) / variance - 1.0).max() < 0.25
    assert np.array([one.counts for one in drawn])[:, 2].std() > 1.0, "nobody met C"


def integers(rng: np.random.Generator, scale: float, shape: Any) -> Any:
    stop = -np.expm1(-1.0 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


@pytest.mark.parametrize("outcome", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("exact_count", [False, True])
def test_an_attack_finds_at_most_epsilon_and_finds_an_exact_count(
    outcome: float, exact_count: bool
) -> None:
    """Somebody is there, or is not; the bound exceeds the true epsilon with chance 1e-6 at most."""
    scale, rng = laplace_scale(1.0), np.random.default_rng(7)
    units = np.array([round(outcome * UNITS)])
    there = shares_of(np.ones_like(units), units, squares_of(units))[:, 0]

    def run(exact: Any, draws: int) -> Any:
        found = (integers(rng, scale, (draws, 3)) + exact) / UNITS
        counts = np.full((draws, 1), exact.sum() / UNITS)
        return np.hstack([found, counts]) if exact_count else found

    found = audit(
        lambda draws: run(there, draws),
        lambda draws: run(0 * there, draws),
        1.0,
        draws=200_000,
        significance=1e-6,
    )
    assert found.passed is not exact_count


# --- answers ------------------------------------------------------------------------------------


def log(rows: int = 4_000) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    plan = rng.choice(["A", "B", "typo"], rows, p=[0.49, 0.5, 0.01])
    visits = (rng.random(rows) < np.where(plan == "A", 0.3, 0.4)) * 1.0
    visits[3:5] = np.nan, 1e9
    return {
        "plan": plan,
        "visits": visits,
        "who": np.arange(rows) // 2,
        "land": ["de", "fr"] * (rows // 2),
    }


ASKED: Any = {"arm": "plan", "outcome": "visits", "reward": True, "protects": "presence"}


def test_an_answer_is_certified_and_says_no_exact_number() -> None:
    given = log()
    found = bd.answer(given, **ASKED, epsilon=1.0, arms=["A", "B", "C"], by={"land": ["de", "fr"]})
    assert [arm.name for arm in found.arms] == ["A", "B", "C"], "also where nobody is"
    assert found.arms[0].low <= 0.3 <= found.arms[0].high
    assert found.differences[0].high < 0.0, "B is better than A"
    assert (found.differences[1].low, found.differences[1].high) == (-1.0, 1.0)
    assert found.arms[2].low == 0.0
    assert found.arms[2].high == 1.0
    assert "is in the log" in found.guarantee.protects
    assert "not hidden" not in str(found)
    assert all(finding.holds for finding in verify(to_text(found.certificate)))
    card = make_card(found.certificate).to_markdown()
    assert "took part, when" not in card
    said = found.to_dict()
    assert (said["mixed"], said["needed"], said["gains"], said["start"]) == (0, None, [], None)
    assert [check.name for check in found.checks()] == ["counted"]
    assert len(found.groups) == 3
    people = bd.answer(given, **ASKED, epsilon=1.0, arms=["A", "B"], person="who")
    assert abs(sum(arm.rounds for arm in people.arms) - 2_000) < 100


def test_worlds_that_differ_in_one_person_differ_in_three_sums_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without noise: whatever else is said must follow from what is released."""
    seen: list[Any] = []

    def silent(sums: list[int], scale: float) -> list[int]:
        return sums

    def exact(counts: Any, sums: Any, squares: Any) -> Any:
        seen.append(shares_of(counts, sums, squares))
        return seen[0]  # both worlds release the same numbers

    monkeypatch.setattr(presence, "with_noise", silent)
    monkeypatch.setattr(presence, "shares_of", exact)
    monkeypatch.setattr("bandanna.logs.secrets.token_hex", lambda _: "0" * 16)
    given = log(400)
    others: list[dict[str, list[Any]]] = [
        {"plan": ["A"], "visits": [0.7]},
        {"plan": ["B"], "visits": [np.nan]},
        {"plan": ["B"], "visits": [np.inf]},
        {"plan": ["nobody knows"], "visits": [0.7]},
    ]
    for more in others:
        seen.clear()
        one = {name: list(given[name]) for name in ("plan", "visits")}
        two = {name: one[name] + more[name] for name in one}
        told = [
            str(bd.answer(world, **ASKED, epsilon=1.0, arms=["A", "B"])) for world in (one, two)
        ]
        assert told[0] == told[1]
        moved = int(np.abs(seen[0] - seen[1]).sum())
        assert moved == (0 if more["plan"] == ["nobody knows"] else UNITS)


def test_a_log_that_is_empty_is_answered_like_any_other() -> None:
    given = {"plan": ["x", "y"], "visits": [0.0, 1.0]}
    found = bd.answer(given, **ASKED, epsilon=1.0, arms=["A", "B"])
    assert found.best is None
    for scale in range(20):
        nobody = np.zeros(2, dtype=np.int64)
        counted = Counted(("A", "B"), nobody, nobody, nobody)
        assert answer_counted(counted, epsilon=0.1 + scale, present=True).best is None


def test_exposures_hide_who_was_exposed() -> None:
    shown = {
        "user": [f"u{k}" for k in range(4_000)],
        "arm": ["A", "B", "A", "B", "C"] * 800,
        "at": ["2026-01-01T08:00:00"] * 4_000,
    }
    facts = {"user": ["u1", "u2"], "value": [1.0, 0.5], "at": ["2026-01-02T08:00:00"] * 2}
    source = bd.Exposures(shown, facts, unit="user", time="at", window="7d", arms=("A", "B"))
    found = bd.answer(source, arm="arm", outcome="value", epsilon=1.0, protects="presence")
    assert [abs(arm.rounds - 1_600) < 60 for arm in found.arms] == [True, True]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs the arms"),
        ({"arms": ["A"]}, "at least 2"),
        ({"arms": ["A", "A"]}, "each once"),
        ({"arms": "AB"}, "needs the arms"),
        ({"arms": ["A", "B"], "interval": "proved"}, "intervals are normal"),
        ({"arms": ["A", "B"], "binary": True}, "binary"),
        ({"arms": ["A", "B"], "protects": "outcomes"}, "goes with"),
        ({"arms": ["A", "B"], "protects": "all"}, "outcomes or presence"),
        ({"arms": ["A", "B"], "loss_range": "auto", "bounds": (0, 9)}, "range is given"),
    ],
)
def test_what_does_not_go_together_is_refused(options: Any, why: str) -> None:
    with pytest.raises(bd.InputError, match=why):
        bd.answer(log(100), **{**ASKED, "epsilon": 1.0, **options})


def test_the_command(tmp_path: Any) -> None:
    import polars

    given = {name: values for name, values in log().items() if name != "land"}
    polars.DataFrame(given).write_csv(tmp_path / "log.csv")
    command = ["answer", str(tmp_path / "log.csv"), "--arm", "plan", "--outcome", "visits"]
    command += [
        "--epsilon",
        "1",
        "--set",
        "protects=presence",
        "--set",
        "arms=A,B",
        "--reward",
        "--json",
    ]
    done = bandanna(*command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("sizes", [(100, 100), (1_000, 200), (500, 500)])
@pytest.mark.parametrize("law", ["rate", "rare", "lab", "revenue"])
def test_intervals_cover(law: str, sizes: tuple[int, int], epsilon: float) -> None:
    """95% intervals of a difference, with Poisson numbers of people.

    Measured in 2,000 runs each: 94.85% to 97.9% (``BANDANNA_RUNS=2000``). The limit here is so
    far below that it is undercut by chance less than once in a million runs of a test.
    """
    rng, hits = np.random.default_rng(11), 0
    for _ in range(RUNS):
        arms = []
        numbers: Any = rng.poisson(sizes)
        for size in numbers:
            y = outcomes(law, rng, size)
            shares = np.array([((1 - y) ** 2).sum(), (2 * y * (1 - y)).sum(), (y**2).sum()])
            none, half, whole = shares + rng.laplace(0.0, 1.0 / epsilon, 3)
            square = (none - half + whole) / 4
            arms.append(Arm(none + half + whole, half / 2 + whole, square, 1 / epsilon, 1.0, True))
        found = OneLook(tuple(arms), "normal").difference(0, 1, 0.05)
        hits += found.low <= 0.0 <= found.high
    share = hits / RUNS
    print(law, sizes, epsilon, share)
    assert share > 0.946 - 4.9 * np.sqrt(0.05 * 0.95 / RUNS)


def outcomes(law: str, rng: np.random.Generator, size: int) -> Any:
    if law == "lab":
        return np.clip(rng.normal(0.4, 0.14, size), 0.0, 1.0)
    if law == "revenue":
        spent = np.minimum(np.exp(rng.normal(3.4, 0.9, size)) / 200.0, 1.0)
        return np.where(rng.random(size) < 0.05, spent, 0.0)
    return (rng.random(size) < (0.3 if law == "rate" else 0.05)) * 1.0
