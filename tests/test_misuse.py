"""Calls that people get wrong: each is refused, or warned of, with a sentence that helps."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna._client import Client, calls
from bandanna._core.grid import UNNAMED_FEEDBACK
from bandanna.environments import Logged


def bandit(**changes: Any) -> bd.PrivateBandit:
    asked: dict[str, Any] = {"arms": ["A", "B"], "epsilon": 0.5, "rounds": 1000}
    return bd.PrivateBandit(**asked | changes)


def contextual(algorithm: str) -> bd.PrivateContextual:
    features = {"age": (0.0, 100.0)}
    return bd.PrivateContextual(["A", "B"], features, 1.0, rounds=1000, algorithm=algorithm)


# --- observe ----------------------------------------------------------------------------------


def test_feedback_without_a_name_is_refused_and_changes_nothing() -> None:
    segments = bd.Segments(lambda _: bandit(), ["de"])
    trees, linear = contextual("trees"), contextual("linear")
    decided: list[tuple[Any, bd.Decision]] = [
        (policy, policy.decide()) for policy in (bandit(), bd.Bandit(2))
    ]
    decided.append((segments, segments.decide(segment="de")))
    decided += [(policy, policy.decide({"age": 40.0})) for policy in (trees, linear)]
    for policy, decision in decided:
        with pytest.raises(bd.InputError, match=r"loss=\.\.\..*reward=\.\.\.") as caught:
            policy.observe(decision, 0.875)
        assert "0.875" not in str(caught.value)
        policy.observe(decision, reward=1.0)


def test_the_clients_refuse_it_too() -> None:
    with (
        bd.Client("http://localhost:1", "key") as client,
        pytest.raises(bd.InputError, match=r"observe\(decision, loss=\.\.\.\)"),
    ):
        client.experiment("exp_1").observe("evt_1", 1.0)  # type: ignore[arg-type]
    assert calls.UNNAMED_FEEDBACK == UNNAMED_FEEDBACK


# --- decide -----------------------------------------------------------------------------------


def test_eligible_as_a_mapping_says_which_arms_may_be_played() -> None:
    policy = bandit()
    assert {policy.decide(eligible={"A": True, "B": False}).arm for _ in range(50)} == {"A"}
    assert policy.among({"A": True, "B": np.True_}) is None
    asked: list[calls.Call] = []

    class Recording(Client):
        async def _send(self, call: calls.Call) -> calls.JSON:
            asked.append(call)
            return {"arm": "A", "event_id": "one"}

    experiment = Recording("http://localhost:1", "key").experiment("exp_1")
    experiment.decide(eligible={"A": True, "B": False})
    assert asked[0].body is not None
    assert asked[0].body["eligible"] == ["A"]


@pytest.mark.parametrize(
    ("eligible", "said"),
    [
        ({"A": 1, "B": 0}, "True or False for each arm; for 'A' it says 1"),
        ({"A": True, "C": False}, "unknown arm 'C'"),
        ({"A": False, "B": False}, "no arm is eligible"),
        ("A", "must be a list of arms"),
        ([True, False], "unknown arm True"),
    ],
)
def test_eligible_that_means_nothing_is_refused(eligible: Any, said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        bandit().decide(eligible=eligible)


@pytest.mark.parametrize(
    ("keyword", "said"),
    [
        ("context", r"no context=; .*bd\.PrivateContextual.*bd\.Segments"),
        ("segment", r"no segment=; .*bd\.Segments"),
        ("user_id", r"no user_id=; .*person="),
    ],
)
def test_decide_says_what_to_use_instead(keyword: str, said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        bandit().decide(**{keyword: "x"})  # type: ignore[arg-type]


def test_other_keywords_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'contxt'"):
        bandit().decide(contxt=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'per_persn'; did you mean 'per_person'\?"):
        bandit(per_persn=2)
    with pytest.raises(TypeError, match=r"argument 'colour'$"):
        bandit(colour=2)


# --- segments and simulation ------------------------------------------------------------------


def test_segments_need_a_policy_each() -> None:
    with pytest.raises(bd.InputError, match=r"bd\.Segments\(lambda name: .*got PrivateBandit"):
        bd.Segments(bandit(), ["de", "fr"])  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match=r"bd\.Segments\(lambda name: .*got a class\."):
        bd.Segments(bd.PrivateBandit, ["de", "fr"])  # type: ignore[arg-type]


def test_segments_are_simulated_one_at_a_time() -> None:
    segments = bd.Segments(lambda _: bandit(), ["de", "fr"])
    losses = np.tile([0.1, 0.9], (1000, 1))
    with pytest.raises(bd.InputError, match="simulate_segments"):
        bd.simulate(segments, losses)  # type: ignore[arg-type]
    assert bd.simulate(segments["de"], losses, replicates=2).rounds == 1000


def test_a_policy_made_for_other_losses_is_said_to_be() -> None:
    rng = np.random.default_rng(0)
    rows = {"arm": rng.integers(0, 2, 20_190), "visits": rng.integers(0, 21, 20_190)}
    log = Logged(rows, arm="arm", outcome="visits", loss_range=(0, 20))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bd.simulate(bandit(), log, replicates=1)
    said = [str(one.message) for one in caught]
    assert len(said) == 2
    assert "losses from 0 to 1, and these are from 0 to 20" in said[0]
    assert "loss_range=(0, 20)" in said[0]
    assert "made for 1,000 rounds and is simulated for 20,190" in said[1]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bd.simulate(bandit(rounds=20_190, loss_range=(0, 20)), log, replicates=1)


# --- what policies and guarantees say ---------------------------------------------------------


def test_algorithms_without_probabilities_say_what_to_read() -> None:
    with pytest.raises(bd.InputError, match=r"dp-klucb does not draw .* leader, answer\(\)"):
        _ = bandit(algorithm="dp-klucb").chances
    assert "dp-klucb" in str(bd.Policy.chances.__doc__)


def test_a_policy_around_a_learner_is_called_by_its_release() -> None:
    assert "<PrivateBandit one-bit around uniform:" in repr(bd.privatize("uniform", 2, 1.0))
    shown = repr(bd.privatize("uniform", 2, 1.0, release="laplace"))
    assert "<PrivateBandit laplace around uniform:" in shown


def test_guarantees_refuse_what_no_guarantee_can_be_asked() -> None:
    promise = bandit().guarantee
    with pytest.raises(bd.InputError, match="got more"):
        promise.for_group(10**400)
    with pytest.raises(bd.InputError, match="delta must be from 0 to below 1; got 'x'"):
        promise.at_delta("x")  # type: ignore[arg-type]


def test_a_range_that_noise_decides_is_not_given_without_a_word() -> None:
    with pytest.raises(bd.InputError, match=r"3 values at epsilon 0.1 cannot tell a range"):
        bd.private_range([1, 2, 3], 0.1, bounds=(0, 100))


@pytest.mark.parametrize("epsilon", [10.0, 100.0])
def test_a_guarantee_says_that_a_large_epsilon_is_weak(epsilon: float) -> None:
    assert "weak: " in str(bandit(epsilon=epsilon).guarantee)
    assert "weak: " not in str(bandit(epsilon=1.0).guarantee)


# --- logs and what is asked of them -------------------------------------------------------------

LOG = {"arm": ["a", "b"] * 50, "y": [0, 1, 1, 1] * 25}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outcomes": 5}, r"must name one column or more.*got 5"),
        ({"outcomes": {"y": 5}}, r"options of outcome 'y' must be a dict.*got 5"),
        ({"outcomes": {"y": {"limit": "x"}}}, r"limit of 'y' must be a number; got 'x'"),
        ({"outcomes": {"y": {"share": "x"}}}, r"share of 'y' must be a finite number.*got 'x'"),
        ({"shares": [0.5, 0.5]}, r"dict of arms and their shares.*got \[0\.5, 0\.5\]"),
        ({"shares": {"a": "x", "b": 1}}, r"shares must be positive numbers"),
        ({"log": [1, 2]}, r"got list\. Name its columns: pandas\.DataFrame"),
    ],
)
def test_a_comparison_says_what_is_wrong_with_it(changes: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"log": LOG, "outcomes": ["y"], "arm": "arm", "control": "a"}
    with pytest.raises(bd.InputError, match=said):
        bd.compare(**asked | {"epsilon": 1.0} | changes)


def test_files_of_another_kind_say_what_to_do(tmp_path: Path) -> None:
    rows = "é,1\nb,0\n" * 50
    told = {
        "twice.csv": ("arm,y,y\n" + rows.replace("\n", ",1\n"), "several columns named 'y'"),
        "latin.csv": ("arm,y\n" + rows, r"line 2 is not in UTF-8.*encoding='latin-1'"),
    }
    for name, (text, said) in told.items():
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1" if name == "latin.csv" else "utf-8"))
        with pytest.raises(bd.InputError, match=said):
            bd.answer(path, arm="arm", outcome="y", epsilon=1.0)
    packed = tmp_path / "packed.csv"
    packed.write_bytes(gzip.compress(told["twice.csv"][0].encode()))
    with pytest.raises(bd.InputError, match=r"compressed with gzip: .* name it packed\.csv\.gz"):
        bd.answer(packed, arm="arm", outcome="y", epsilon=1.0)


def test_what_is_no_file_and_no_list_of_segments() -> None:
    with pytest.raises(bd.InputError, match="name of a file that save wrote; got 5"):
        bd.load(5)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="names must be a list of segments; got 5"):
        bd.Segments(lambda _: bandit(), 5)  # type: ignore[arg-type]
