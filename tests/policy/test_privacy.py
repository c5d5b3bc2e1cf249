"""The learner sees releases and nothing else, and every batch is released once."""

from __future__ import annotations

import copy
import math
import os
import pickle
from types import TracebackType
from typing import Any

import pytest

import bandanna as bd
from bandanna._core.types import Guarantee
from bandanna.privacy import OneBitRelease


def spy_on(policy: bd.PrivateBandit) -> list[Any]:
    """Return a list that fills with everything the learner is told."""
    learned: list[Any] = []
    learn = policy._parts.runner.learn

    def spy(choice: int, weight: float, ticket: Any, released: Any, *more: Any) -> None:
        learned.append(released)
        learn(choice, weight, ticket, released, *more)

    policy._parts.runner.learn = spy  # type: ignore[method-assign, assignment]
    return learned


def test_losses_are_gone_once_their_batch_is_released() -> None:
    policy = bd.PrivateBandit(3, 0.5, batch=5)
    for _ in range(23):
        policy.observe(policy.decide(), loss=0.625)
    assert policy.released == 4
    assert sum(len(batch.losses) for batch in policy.state.open.values()) == 3


def test_a_learner_that_fails_does_not_bring_its_batch_back() -> None:
    """The release happened; whatever goes wrong later, the same losses are not released again."""

    class Fragile:
        def draw(self) -> int:
            return 0

        def update(self, arm: int, loss: float) -> None:
            raise RuntimeError("broken learner")

    policy: Any = bd.privatize(Fragile(), arms=2, epsilon=1.0, batch=1)
    decision = policy.decide()
    with pytest.raises(RuntimeError, match="broken learner"):
        policy.observe(decision, loss=0.5)
    policy.observe(decision, loss=0.5)  # a repeat: accepted, and nothing is released
    assert policy.released == 1


def test_a_batch_whose_release_failed_is_never_released_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody knows whether a failed release got out; a second one might be twice the epsilon."""
    policy = bd.PrivateBandit(2, 1.0, batch=1)
    decision = policy.decide()
    with monkeypatch.context() as patch:
        patch.setattr(OneBitRelease, "release", _no_entropy)
        with pytest.raises(OSError, match="no entropy"):
            policy.observe(decision, loss=0.5)
    learned = spy_on(policy)
    policy.observe(decision, loss=0.5)  # a repeat like any other
    assert learned == []
    assert policy.waiting == 0


def _no_entropy(self: object, total: int, size: int) -> float:
    raise OSError("no entropy")


def test_a_seed_repeats_arms_and_never_noise() -> None:
    """Two bandits with one seed open with the same arm; their bits are independent."""
    bits = []
    for _ in range(2):
        policy = bd.PrivateBandit(2, 0.01, batch=1, seed=4)
        bits.append(spy_on(policy))
        for _ in range(200):
            policy.observe(policy.decide(), loss=0.5)
    assert bits[0] != bits[1]  # equal with probability 2**-200


def test_rehearsals_say_that_they_protect_nobody() -> None:
    from bandanna._core.streams import new_stream

    policy = bd.PrivateBandit(2, 0.5, seed=1)
    rehearsal = policy.rehearse(new_stream(1), new_stream(2))
    assert not rehearsal.guarantee.private
    assert policy.guarantee.private


def test_a_policy_cannot_be_copied_or_pickled() -> None:
    policy = bd.PrivateBandit(2, 1.0, batch=2)
    policy.observe(policy.decide(), loss=0.5)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="released twice"):
            attempt(policy)


def test_a_forked_policy_refuses_to_go_on() -> None:
    """Workers forked around a half-filled batch would each release the same losses."""
    policy = bd.PrivateBandit(2, 1.0, batch=2)
    decision = policy.decide()
    policy.observe(decision, loss=0.5)
    child = os.fork()
    if child == 0:
        refused = 0
        for attempt in (policy.decide, lambda: policy.observe(decision, loss=0.5)):
            try:
                attempt()
            except bd.DecisionError:
                refused += 1
        os._exit(0 if refused == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    policy.decide()


def test_losses_do_not_stay_in_the_frames_of_a_failing_learner() -> None:
    class Fragile:
        def draw(self) -> int:
            return 0

        def update(self, arm: int, loss: float) -> None:
            raise RuntimeError("broken learner")

    policy = bd.privatize(Fragile(), arms=2, epsilon=1.0, batch=3)
    decisions = [policy.decide() for _ in range(3)]
    policy.observe(decisions[0], loss=0.123)
    policy.observe(decisions[1], loss=0.123)
    with pytest.raises(RuntimeError) as failure:
        policy.observe(decisions[2], loss=0.5)
    assert_no_losses(failure.tb, {0.5, 0.123, 0.746})


def test_losses_do_not_stay_in_the_frames_of_a_failing_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sampler's own frame knows the sum; it is not in the traceback."""
    policy = bd.PrivateBandit(2, 1.0, batch=2)
    monkeypatch.setattr("secrets.randbelow", _broken)
    decisions = [policy.decide() for _ in range(2)]
    policy.observe(decisions[0], loss=0.123)
    with pytest.raises(OSError, match="no entropy") as failure:
        policy.observe(decisions[1], loss=0.5)
    assert_no_losses(failure.tb, {0.5, 0.123, 0.623})


def _broken(most: int) -> int:
    raise OSError("no entropy")


def assert_no_losses(trace: TracebackType | None, losses: set[float]) -> None:
    """Look through every frame of our code for losses and sums, in their units and on the grid."""
    units = {round(loss * 2**20) for loss in losses}
    frames = 0
    while trace is not None:
        if "bandanna" in trace.tb_frame.f_code.co_filename and "tests" not in (
            trace.tb_frame.f_code.co_filename
        ):
            frames += 1
            for value in trace.tb_frame.f_locals.values():
                assert not (isinstance(value, int | float) and value in losses | units)
                kept = getattr(value, "losses", None)  # a batch's; a spec's are a kind, or None
                assert isinstance(kept, str) or not kept
                assert getattr(getattr(value, "tally", None), "_sums", None) is None
        trace = trace.tb_next
    assert frames == 1  # what was called; the others are gone


class Weak(OneBitRelease):
    """A release that stateds less than was asked for, in ways a careless check lets through."""

    stated: Guarantee

    def guarantee(self) -> Guarantee:
        return self.stated


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(math.nan, 0.0), (-1.0, 0.0), (0.5, 0.1), (0.5, 1.0), (2.0, 0.0)]
)
def test_custom_releases_must_keep_the_promise(epsilon: float, delta: float) -> None:
    release = Weak(0.5, 2)
    object.__setattr__(release, "stated", Guarantee(epsilon, delta, "", "central", "", ""))
    with pytest.raises(bd.InputError, match="weaker"):
        bd.PrivateBandit(2, 1.0, release=release)


def test_foreign_learners_come_with_an_assumption() -> None:
    class Constant:
        def draw(self) -> int:
            return 0

        def update(self, arm: int, loss: float) -> None:
            pass

    assert "had seen no private data" in str(bd.privatize(Constant(), 2, 1.0).guarantee)
    assert "had seen no private data" not in str(bd.privatize("htinf", 2, 1.0).guarantee)
