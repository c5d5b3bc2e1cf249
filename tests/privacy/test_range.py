"""A range bought with a part of the budget."""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd


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
