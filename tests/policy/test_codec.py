"""One codec for files and the database: what is written is read back, and older ones too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.policy import codec
from bandanna.policy.codec import VERSION, migrated
from bandanna.policy.facade import policy_from_dict

FIRST = Path(__file__).parent / "version_1.json"
"""A file that the first version of the format wrote; once that is released it is never changed."""

KINDS: dict[str, Any] = {
    "one sum": lambda: bd.PrivateBandit(3, 1.0, batch=3, seed=1),
    "growing": lambda: bd.PrivateBandit(3, 1.0, 10_000, "dp-klucb", seed=1),
    "slots": lambda: bd.PrivateBandit(3, 1.0, batch=3, per_person=2, rounds_per_slot=2, seed=1),
    "a vector": lambda: bd.PrivateExperts(
        3, 3, 2.0, 0.0, 20, "batched-exp4", constants="ours", seed=1
    ),
    "followed": lambda: bd.PrivateExperts(3, 3, 1.0, 0.0, None, "one-bit", seed=1),
    "plain": lambda: bd.Bandit(3, batch=2, seed=1),
}

Step = tuple[str, int, float]
steps = st.lists(
    st.tuples(
        st.sampled_from(["decide", "some", "observe", "observe", "give up", "finish", "arm"]),
        st.integers(0, 4),
        st.floats(0.0, 1.0),
    ),
    max_size=40,
)


def advance(policy: bd.Policy, taken: list[Step]) -> None:
    """Take whatever steps are possible."""
    waiting: list[bd.Decision] = []
    people, advised = policy.people is not None, policy.experts is not None
    for action, which, loss in taken:
        try:
            if action in ("decide", "some"):
                person = which if people else None
                eligible = [0, 2] if action == "some" and not advised else None
                advice = [which % 3, 0, 1] if advised else None
                waiting.append(policy.decide(advice, person=person, eligible=eligible))
            elif action == "arm" and which == 0:
                policy.add_arm(f"new {len(policy.arms)}")
            elif action == "finish" and people:
                policy.finish(which)
            elif waiting:
                decision = waiting.pop(which % len(waiting))
                if action == "observe":
                    policy.observe(decision, loss=loss)
                else:
                    policy.give_up(decision)
        except (bd.InputError, bd.DecisionError):
            continue  # not possible here


def plain(policy: bd.Policy) -> Any:
    return json.loads(json.dumps(policy.to_dict()))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(steps, steps)
def test_what_is_written_is_read_back(kind: str, before: list[Step], after: list[Step]) -> None:
    """Whatever happened before, it is the same policy, and goes on as the same policy."""
    policy: bd.Policy = KINDS[kind]()
    advance(policy, before)
    written = plain(policy)
    again = policy_from_dict(written, latest=True)
    assert plain(again) == written
    assert (again.spec, again.recipe) == (policy.spec, policy.recipe)
    released = policy.released
    for one in (policy, again):
        advance(one, after)
    if policy.released == released:  # from a release on noise differs, as it must
        assert plain(again) == plain(policy)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_public_holds_no_feedback(kind: str) -> None:
    policy = KINDS[kind]()
    advance(policy, [("decide", 1, 0.0), ("observe", 0, 0.6180339), ("decide", 2, 0.0)])
    public = json.dumps(policy.to_dict(private=False))
    assert str(round(0.6180339 * 2**20)) not in public
    assert json.loads(public)["people"] in (None, {})


def test_the_first_version_is_still_read() -> None:
    """Every later version must read this file, or say in a sentence why it does not."""
    saved = json.loads(FIRST.read_text("utf-8"))
    assert saved["version"] == 1
    policy = policy_from_dict(saved)
    assert (policy.algorithm, policy.decided, policy.released) == ("one-bit", 24, 7)
    assert policy.guarantee.epsilon == 1.0
    assert policy.spec.per_person == 3
    assert policy.waiting > 0
    for _ in range(20):
        policy.observe(policy.decide(person="someone"), loss=0.5)


def test_keys_that_came_later_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = plain(KINDS["one sum"]())
    del saved["counters"]["mixed"], saved["learned"]["changed"]
    with pytest.raises(KeyError):
        policy_from_dict(saved)
    known = {"counters": {"mixed": False}, "learned": {"changed": False}}
    monkeypatch.setattr(codec, "DEFAULTS", known)
    assert policy_from_dict(saved).state.mixed is False


def test_older_versions_are_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated upgrade: version 2 renames a key, and reads what version 1 wrote."""
    saved = plain(KINDS["one sum"]())

    def rename(document: Any) -> Any:
        counters = dict(document["counters"])
        counters["decisions"] = counters.pop("rounds")
        return document | {"counters": counters}

    monkeypatch.setattr(codec, "VERSION", VERSION + 1)
    monkeypatch.setattr(codec, "MIGRATIONS", {VERSION: rename})
    found = migrated(saved)
    assert found["version"] == VERSION + 1
    assert found["counters"]["decisions"] == saved["counters"]["rounds"]


@pytest.mark.parametrize("version", [VERSION + 1, 0, None, "1", True])
def test_unknown_versions_are_refused_in_a_sentence(version: object) -> None:
    saved = plain(KINDS["one sum"]()) | {"version": version}
    with pytest.raises(bd.StateFileError, match="version") as caught:
        policy_from_dict(saved)
    assert str(caught.value).count("\n") == 0


def test_arrays_of_ten_thousand_arms_leave_counters_small() -> None:
    """What a transaction writes for a round in the middle of a batch does not grow with arms."""
    policy = bd.PrivateBandit(10_000, 1.0, algorithm="one-bit", batch=5, seed=1)
    for _ in range(12):
        policy.observe(policy.decide(), loss=float(np.float64(0.5)))
    before = policy.state.changes
    policy.observe(policy.decide(), loss=0.5)
    assert policy.state.changes == before, "neither a batch opened nor one was released"
    assert len(json.dumps(codec.counters_to_dict(policy.state))) < 1000
    assert len(json.dumps(codec.learned_to_dict(policy.state))) > 100_000
