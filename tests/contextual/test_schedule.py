"""When epochs end: in order, from the first that is long enough to the last round."""

from __future__ import annotations

from itertools import accumulate, pairwise

from bandanna.contextual.schedule import GROWTH, epoch_ends, epoch_length, first_end


def test_ends_grow_to_the_last_round() -> None:
    for rounds in [*range(1, 200), 10**4, 10**8]:
        for first in (1, 2, 50, rounds):
            ends = epoch_ends(rounds, first)
            assert ends[-1] == rounds
            assert all(a < b <= GROWTH * a + 1 for a, b in pairwise(ends))
            assert ends[0] >= min(first, rounds)


def test_epochs_go_on_after_the_last_planned_one() -> None:
    ends = epoch_ends(100, 10)
    lengths = [epoch_length(ends, k) for k in range(len(ends) + 4)]
    assert tuple(accumulate(lengths))[: len(ends)] == ends
    assert min(lengths) >= 1
    assert lengths[1:] == sorted(lengths[1:])
    assert epoch_length((1,), 3) >= epoch_length((1,), 2) >= 1


def test_the_first_epoch_leaves_room() -> None:
    for rounds in (1, 2, 3, 50, 10**6):
        for deviation in (0.0, 4.2, 1e9):
            assert 1 <= first_end(rounds, 10, 20, deviation, both=True) <= max(1, rounds / 4)
