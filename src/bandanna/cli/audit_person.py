"""``bandanna audit --person``: one person against whole policies, with all their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bandanna._core.types import JSON

FEWEST_RUNS, MOST_RUNS, DRAWS_A_RUN = 200, 2000, 500
"""A run plays a policy through all places of a person, so there are fewer of them than draws."""

VISIT_SECONDS = 6e-5


def runs_for(draws: int) -> int:
    """Return how often a policy is played on either input."""
    return max(FEWEST_RUNS, min(MOST_RUNS, draws // DRAWS_A_RUN))


def person_seconds(draws: int, batch: int, places: Sequence[int]) -> float:
    """Guess how long the attacks on one claim take."""
    visits = sum(2 * (count + 5) * 5 * batch for count in places)
    return 1.5 + 2 * runs_for(draws) * visits * VISIT_SECONDS


def attack_person(
    release: str,
    claim: float,
    delta: float,
    places: int,
    batch: int,
    draws: int,
    seed: int,
    advance: Callable[[], None],
) -> JSON:
    """Attack a bandit through one person who has so many places, and more visits than that."""
    from bandanna.audits.people import audit_person
    from bandanna.policies import PrivateBandit

    policy = PrivateBandit(
        2, claim, release=release, batch=batch, per_person=places, delta=delta, seed=seed
    )
    found = audit_person(policy, runs=runs_for(draws), seed=seed)
    advance()
    assert found.attack is not None
    return {
        "release": release,
        "batch": batch,
        "claimed": claim,
        "delta": delta,
        "places": places,
        "place_epsilon": policy.recipe.release.guarantee().epsilon,
        "batches_changed": found.batches,
        "largest_change": found.most,
        "audited": found.attack.epsilon,
        "event": found.attack.event,
        "runs": runs_for(draws),
        "significance": found.attack.significance,
        "passed": found.passed,
    }


def print_persons(rows: list[JSON], note: str) -> None:
    """Print what one person's attacks found."""
    from bandanna.cli.tables import print_table

    print_table(
        f"Lower bounds on a person's epsilon, {rows[0]['runs']:,} runs on either input, "
        f"significance {rows[0]['significance']:g}",
        [
            "release",
            "claimed",
            "places",
            "eps a place",
            "batches changed",
            "by",
            "found",
            "verdict",
        ],
        [
            [
                row["release"],
                f"{row['claimed']:g}",
                f"{row['places']:,}",
                f"{row['place_epsilon']:.4g}",
                f"{row['batches_changed']:,}",
                f"{row['largest_change']:g}",
                f"{row['audited']:.4f}",
                "passed" if row["passed"] else "FAILED",
            ]
            for row in rows
        ],
        note,
    )
