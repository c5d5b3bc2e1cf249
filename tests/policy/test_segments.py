"""One policy for each segment: decisions find their way back, and the weakest promise counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.privacy.certificate import together, verify
from bandanna.simulation import simulate_segments


def make(**options: Any) -> bd.Segments:
    epsilons = {"de": 0.5, "fr": 1.0}
    return bd.Segments(
        lambda name: bd.PrivateBandit(2, epsilons[str(name)], batch=1, **options), list(epsilons)
    )


def test_feedback_goes_to_the_policy_that_decided(tmp_path: Path) -> None:
    segments = make()
    decisions = [segments.decide(segment=name) for name in ("de", "fr", "fr")]
    for name in segments:
        segments[name].save(tmp_path / f"{name}.json")
    loaded = bd.Segments({name: bd.load(tmp_path / f"{name}.json") for name in segments})
    for decision in decisions:
        loaded.observe(decision, loss=0.5)
    assert {name: policy.released for name, policy in loaded.items()} == {"de": 1, "fr": 2}
    waiting = loaded.decide(segment="de")
    loaded.give_up(waiting._asdict())
    assert loaded["de"].released == 2
    with pytest.raises(bd.DecisionError, match="no segment's policy"):
        loaded.observe(bd.PrivateBandit(2, 1.0).decide(), loss=0.5)


def test_the_weakest_promise_counts() -> None:
    promise = make().guarantee
    assert (promise.epsilon, promise.delta) == (1.0, 0.0)
    assert "parallel composition" in promise.because
    assert "one segment" not in str(promise)
    persons = make(per_person=3, delta=1e-6, rounds_per_slot=1)
    assert (persons.guarantee.epsilon, persons.guarantee.delta) == (1.0, 1e-6)
    assert "each person stays in one segment" in str(persons.guarantee)
    mixed = bd.Segments({"a": bd.PrivateBandit(2, 1.0), "b": bd.Bandit(2)})
    assert not mixed.guarantee.private


def test_people_have_slots_in_their_segment() -> None:
    segments = make(per_person=1)
    decision = segments.decide(segment="de", person="a")
    segments.observe(decision, loss=0.5)
    with pytest.raises(bd.DecisionError, match="no slot"):
        segments.finish("a", segment="fr")
    segments.finish("a", segment="de")
    assert segments["de"].released == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(bd.InputError, match="unknown segment 'uk'; there are 'de', 'fr'"):
        make().decide(segment="uk")
    one = bd.PrivateBandit(2, 1.0)
    cases: list[tuple[Any, Any, str]] = [
        (lambda name: one, ["a", "b"], "of its own"),
        (lambda name: None, ["a"], "needs a policy"),
        (lambda name: one, ["a", "a"], "different names"),
        (lambda name: one, "ab", "list of segments"),
        (lambda name: one, None, "list of segments"),
        (lambda name: one, [], "at least one"),
        (lambda name: one, [1.5], "texts or whole numbers"),
        ({"a": one}, ["a"], "leave names out"),
    ]
    for policy_for, names, said in cases:
        with pytest.raises(bd.InputError, match=said):
            bd.Segments(policy_for, names)


def test_segments_tell_what_they_know_and_survive_a_file(tmp_path: Path) -> None:
    segments = make()
    for name in ("de", "fr", "fr"):
        segments.observe(segments.decide(segment=name), loss=0.5)
    waiting = segments.decide(segment="de")
    assert repr(segments) == ("<Segments: 2 (de, fr), 4 decided, 1 waiting, 3 batches released>")
    assert str(segments.summary()).startswith("de:\n  2 decided")
    assert set(segments.answer()) == {"de", "fr"}
    assert "fr" in segments._repr_html_()
    segments.save(tmp_path / "all.json")
    loaded = bd.load(tmp_path / "all.json")
    loaded.observe(waiting, loss=0.5)
    assert (loaded.decided, loaded.waiting, loaded.released) == (4, 0, 4)
    with pytest.raises(bd.StateFileError, match="resumed"):
        bd.load(tmp_path / "all.json")
    assert bd.load(tmp_path / "all.json", again=True).guarantee.epsilon == 2.0


def test_the_certificates_of_segments_are_verified_together() -> None:
    text = json.dumps(make().certificate())
    findings = verify(text)
    assert all(finding.holds for finding in findings), findings
    assert {finding.entry.partition(":")[0] for finding in findings} == {"de", "fr"}
    assert not all(finding.holds for finding in verify(text.replace("0.5", "0.4")))
    assert not all(finding.holds for finding in verify(json.dumps(together({}))))


def test_load_opens_every_kind_of_file(tmp_path: Path) -> None:
    made: dict[str, Any] = {
        "segments": bd.Segments(lambda name: bd.PrivateBandit(2, 0.5), ["de", "fr"]),
        "bandit": bd.PrivateBandit(2, 0.5),
        "context": bd.PrivateContextual(2, {"age": (18, 90)}, 0.5, 1e-6, 1000),
    }
    for name, one in made.items():
        path = tmp_path / f"{name}.json"
        one.save(path)
        with pytest.raises(bd.StateFileError, match=r"0\.1 asked for"):
            bd.load(path, epsilon=0.1)
        assert type(bd.load(path, epsilon=0.5)) is type(one)
        with pytest.raises(bd.StateFileError, match=r"epsilon 1, which promises less"):
            bd.load(path, epsilon=0.5, again=True)  # what was open may be released twice
        assert bd.load(path, epsilon=1.0, again=True).guarantee.epsilon == 1.0
        with pytest.raises(bd.BandannaError, match=r"leave (it )?out"):
            bd.load(path, learner=object(), again=True)


def test_segments_are_simulated_each_on_losses_of_its_own() -> None:
    segments = bd.Segments(lambda _: bd.PrivateBandit(2, 1.0), ["de", "fr"])
    table = np.tile([0.1, 0.9], (200, 1))
    losses = {"de": table, "fr": table[:, ::-1]}
    found = simulate_segments(segments, losses, replicates=3, seed=4)
    alone = bd.simulate(segments["de"], table, replicates=3, seed=4)
    assert (found["de"].regret("policy") == alone.regret("policy")).all()
    each = found["de"].regret("policy") + found["fr"].regret("policy")
    assert (found.regret() == each).all()
    assert "400 rounds in 2 segments" in repr(found)
    assert "fr" in found._repr_html_()
    with pytest.raises(bd.InputError, match="a dict with those of 'de', 'fr'; got ndarray"):
        simulate_segments(segments, table)  # type: ignore[arg-type]
    with pytest.raises(bd.InputError, match="losses of each segment, 'de', 'fr'; got those of"):
        simulate_segments(segments, {"de": table})


def test_arms_are_compared_in_each_segment() -> None:
    shops = bd.Segments(lambda name: bd.PrivateBandit(["A", "B"], 1.0, 200), ["de", "fr"])
    for _ in range(200):
        shops.observe(shops.decide(segment="de"), reward=0.5)
    found = shops.compare("A", "B")
    assert list(found) == ["de", "fr"]
    assert found["de"] == shops["de"].compare("A", "B")
    assert found["fr"].difference is None
    assert "fr:\n  Nothing has been released of A and B yet." in str(found)
