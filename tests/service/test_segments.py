"""Segments: one policy each, one promise together, durable as everything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bandanna.policy.segments import ONE_SEGMENT
from bandanna.privacy.certificate import verify
from tests.service.running import Here, service_here

SEGMENTS = ["de", "fr"]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def test_each_segment_has_a_policy_of_its_own(here: Here) -> None:
    experiment = here.create(segments=SEGMENTS, algorithm="exp3", rounds=1000)
    for k in range(3):
        here.decide(experiment, event_id=f"de-{k}", segment="de")
        assert here.reward(f"de-{k}", loss=0.5) == 204
    here.decide(experiment, event_id="fr", segment="fr")
    base = f"/v1/experiments/{experiment}"
    shown = here.http.get(base).json()
    counts = (shown["decided"], shown["observed"], shown["released"])
    assert counts == (4, 3, 3)
    assert shown["segments"]["de"] == {"decided": 3, "observed": 3, "released": 3}
    assert shown["segments"]["fr"] == {"decided": 1, "observed": 0, "released": 0}
    assert [one["id"] for one in here.http.get("/v1/experiments").json()] == [experiment]
    rows = here.http.get(f"{base}/export").json()
    assert [(row["segment"], row["batch"]) for row in rows] == [("de", 0), ("de", 1), ("de", 2)]
    table = here.http.get(f"{base}/export?format=csv").text
    assert table.splitlines()[0] == "segment,batch,arm,rounds,released,released_at"
    assert here.http.get(f"{base}/results?segment=de").json()["batches_released"] == 3
    assert here.http.get(f"{base}/results?segment=fr").json()["batches_released"] == 0
    assert '"batches_released": 3' in here.http.get(f"{base}/live?once=1&segment=de").text
    assert here.http.get(f"{base}/audit").json()["claimed"] == 1.0
    assert here.http.post(f"{base}/stop").status_code == 204
    for segment in SEGMENTS:
        answer = here.http.post(f"{base}/decisions", json={"segment": segment})
        assert answer.status_code == 409


def test_the_same_id_gets_the_same_answer_whatever_the_segment(here: Here) -> None:
    experiment = here.create(segments=SEGMENTS)
    first = here.decide(experiment, event_id="one", segment="de")
    assert here.decide(experiment, event_id="one", segment="fr") == first
    assert here.http.get(f"/v1/experiments/{experiment}").json()["decided"] == 1


def test_disjoint_people_cost_no_more_and_the_promise_says_what_holds_otherwise(
    here: Here,
) -> None:
    people = {"per_person": 2, "rounds_per_slot": 1, "epsilon": 0.5, "rounds": 10_000}
    experiment = here.create(segments=SEGMENTS, **people)
    promise = here.http.get(f"/v1/experiments/{experiment}/privacy").json()
    assert promise["guarantee"]["epsilon"] == 0.5
    assert ONE_SEGMENT in promise["guarantee"]["assumptions"]
    assert "parallel composition" in promise["in_words"]
    assert promise["certificate"] is None
    one = here.http.get(f"/v1/experiments/{experiment}/privacy?segment=fr").json()
    assert one["certificate"]["epsilon"] == 0.5
    assert here.decide(experiment, person="ann", segment="de")["arm"] in ("a", "b")
    ledger = here.http.get(f"/v1/experiments/{experiment}/privacy").json()["ledger"]
    assert ledger["decided"] == 1


def test_segments_survive_a_restart_and_a_copy_put_back_is_charged(tmp_path: Path) -> None:
    with service_here(tmp_path) as first:
        experiment = first.create(segments=SEGMENTS)
        told = first.decide(experiment, event_id="one", segment="fr")
        first.core.store.backup(tmp_path / "copy.db")
    with service_here(tmp_path) as second:
        assert second.decide(experiment, event_id="one", segment="fr") == told
        shown = second.http.get(f"/v1/experiments/{experiment}").json()
        assert (shown["segments"]["fr"]["decided"], shown["segments"]["de"]["decided"]) == (1, 0)
    (tmp_path / "copy.db").rename(tmp_path / "here.db")
    with service_here(tmp_path, accept_restored=True) as third:
        assert third.core.charged == [experiment]
        for which in ("", "?segment=de", "?segment=fr"):
            promise = third.http.get(f"/v1/experiments/{experiment}/privacy{which}").json()
            assert promise["guarantee"]["epsilon"] == 2.0
            certificate = promise["certificate"]
            assert (certificate is None) == (which == "")
            if certificate is not None:
                assert (certificate["epsilon"], certificate["resumed"]) == (2.0, 1)
                assert all(finding.holds for finding in verify(json.dumps(certificate)))


def test_segments_that_cannot_be_are_refused(here: Here) -> None:
    plain, parted = here.create(), here.create(segments=SEGMENTS)
    for experiment, segment, why in (
        (plain, "de", "has no segments"),
        (parted, "es", "unknown segment 'es'"),
        (parted, None, "give a segment; there are 'de', 'fr'"),
    ):
        body = {} if segment is None else {"segment": segment}
        answer = here.http.post(f"/v1/experiments/{experiment}/decisions", json=body)
        assert (answer.status_code, why in answer.text) == (422, True)
    assert here.http.get(f"/v1/experiments/{parted}/results").status_code == 422
    whole: dict[str, object] = {"name": "x", "arms": 2, "epsilon": 1}
    for bad in (["de", "de"], [], [""], "de", [1]):
        answer = here.http.post("/v1/experiments", json=whole | {"segments": bad})
        assert answer.status_code == 422, bad
    assert len(here.http.get("/v1/experiments").json()) == 2


def test_a_flag_is_evaluated_in_the_segment_of_its_context(here: Here) -> None:
    experiment = here.create(segments=SEGMENTS)
    path = "/ofrep/v1/evaluate/flags"
    body = {"context": {"targetingKey": "ann", "segment": "fr"}}
    assert here.http.post(f"{path}/{experiment}", json=body).status_code == 200
    missing = here.http.post(f"{path}/{experiment}", json={"context": {}})
    assert (missing.status_code, missing.json()["errorCode"]) == (400, "INVALID_CONTEXT")
    assert len(here.http.post(path, json=body).json()["flags"]) == 1
    body["context"]["segment"] = "es"
    assert here.http.post(path, json=body).json()["flags"] == []
    shown = here.http.get(f"/v1/experiments/{experiment}").json()
    assert (shown["segments"]["fr"]["decided"], shown["segments"]["de"]["decided"]) == (1, 0)
