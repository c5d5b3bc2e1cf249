"""Saving and loading."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.policies import ALGORITHMS
from bandanna.policies.state import from_dict, to_dict
from bandanna.streams import new_stream

POLICIES = {name: bd.PrivateBandit(3, 0.5, 1000, name, seed=2) for name in ALGORITHMS} | {
    "no privacy": bd.Bandit(["x", "y"], seed=2),
    "uniform": bd.Bandit(2, "uniform", seed=2),
}


@pytest.mark.parametrize("name", POLICIES)
@settings(deadline=None, max_examples=15)
@given(before=st.integers(0, 60), late=st.sets(st.integers(0, 59)), after=st.integers(1, 40))
def test_a_loaded_policy_goes_on_bit_for_bit(
    name: str, before: int, late: set[int], after: int
) -> None:
    """Stop anywhere, with feedback outstanding; continue with the same releases scripted."""
    original = POLICIES[name].rehearse(new_stream(1), new_stream(2))
    original._release = original.recipe.release  # saved with the exact release
    waiting = []
    for t in range(before):
        decision = original.decide()
        if t in late:
            waiting.append(decision)
        else:
            original.observe(decision, loss=t % 7 / 6)
    copy = from_dict(json.loads(json.dumps(to_dict(original))))
    assert type(copy) is type(original)
    assert to_dict(copy) == to_dict(original)
    # The same noise on both sides from here on, so that only the saved state can differ.
    original._release = POLICIES[name].rehearse(new_stream(0), new_stream(3))._release
    copy._release = POLICIES[name].rehearse(new_stream(0), new_stream(3))._release
    for policy in (original, copy):
        for decision in waiting:
            policy.observe(decision, loss=0.5)
    for t in range(after):
        ours, theirs = original.decide(), copy.decide()
        assert ours == theirs
        original.observe(ours, loss=t % 5 / 4)
        copy.observe(theirs, loss=t % 5 / 4)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    for _ in range(10):
        policy.observe(policy.decide(), loss=0.75)
    policy.save(tmp_path / "policy.json")
    return tmp_path / "policy.json"


def test_the_file_is_readable_private_and_holds_no_release_randomness(saved: Path) -> None:
    text = saved.read_text()
    data = json.loads(text)
    assert data["version"] == 1
    assert data["arms"] == ["a", "b"]
    assert data["open_batches"][0]["losses"] == [round(0.75 * 2**20)]
    assert "raw feedback" in data["privacy"]
    assert len(text.splitlines()) == len(data) + 2
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert set(data["release"]) == {"name", "epsilon", "batch"}


def test_repeats_in_an_open_batch_are_still_recognised(tmp_path: Path) -> None:
    policy = bd.PrivateBandit(2, 0.5, batch=3)
    decision = policy.decide()
    policy.observe(decision, loss=0.5)
    policy.save(tmp_path / "p.json")
    loaded = bd.load(tmp_path / "p.json")
    loaded.observe(decision, loss=0.5)
    with pytest.raises(bd.DecisionError, match="another value"):
        loaded.observe(decision, loss=0.6)


@settings(deadline=None, max_examples=150)
@given(place=st.integers(0, 10_000), digit=st.integers(0, 9))
def test_a_digit_changed_anywhere_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, digit: int
) -> None:
    path = tmp_path_factory.mktemp("state") / "policy.json"
    policy = bd.PrivateBandit(["a", "b"], 0.5, batch=3, seed=1)
    policy.observe(policy.decide(), loss=0.75)
    policy.save(path)
    text = path.read_text()
    digits = [match.start() for match in re.finditer(r"[0-9]", text)]
    at = digits[place % len(digits)]
    changed = text[:at] + str(digit) + text[at + 1 :]
    path.write_text(changed)
    if changed == text:
        bd.load(path)
    else:
        with pytest.raises(bd.StateFileError):
            bd.load(path)


def test_half_a_file_is_refused(saved: Path) -> None:
    saved.write_text(saved.read_text()[:300])
    with pytest.raises(bd.StateFileError, match="damaged: not valid JSON"):
        bd.load(saved)


def test_another_version_is_refused_with_both_named(saved: Path) -> None:
    saved.write_text(saved.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(bd.StateFileError, match=r"has version 2 .* reads version 1"):
        bd.load(saved)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "something else"}'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    with pytest.raises(bd.StateFileError, match="not a saved policy"):
        bd.load(tmp_path / "other.json")


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(bd.StateFileError, match=r"cannot read .*none\.json"):
        bd.load(tmp_path / "none.json")
    with pytest.raises(bd.StateFileError, match="cannot write"):
        bd.Bandit(2).save(tmp_path / "no" / "folder.json")


def test_a_failed_save_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_text()
    monkeypatch.setattr("os.replace", _full)
    with pytest.raises(bd.StateFileError, match="No space"):
        bd.Bandit(2).save(saved)
    assert saved.read_text() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def _full(*paths: object) -> None:
    raise OSError(28, "No space left on device")
