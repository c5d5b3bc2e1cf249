"""What can be said after some rounds, from nothing but what was released."""

from __future__ import annotations

from bandanna.learners.stationarity import GuardReport


def stationarity_words(seen: GuardReport | None) -> str:
    """Say in a sentence what ``stationarity`` tells; nothing where there is no guard."""
    if seen is None or not seen["guard"]:
        return ""
    tests, chance = seen["tests"], f"{seen['false_alarm']:g}"
    if not seen["alarm"]:
        return (
            f"Losses look steady: {tests:,} comparisons of an arm's releases with its earlier "
            f"ones, no alarm (a false one has probability at most {chance})."
        )
    told = seen["most_telling"]
    return (
        f"Losses change: after {told['after_rounds']:,} rounds arm {told['arm'] + 1}'s went from "
        f"{told['loss_before']:.3g} to {told['loss_then']:.3g}, beyond the "
        f"{told['difference_allowed']:.2g} that chance allows (false alarms: probability at most "
        f"{chance}); the adaptive learner plays since."
    )
