"""The scorecard over HTTP: the library's own, drawn once for each release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bandanna.service.summary import scorecard
from tests.service.running import Here, service_here

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with service_here(tmp_path_factory.mktemp("scorecard")) as running:
        yield running


def play(here: Here, experiment: str, rounds: int) -> None:
    for _ in range(rounds):
        told = here.decide(experiment)
        assert here.reward(told["event_id"], reward=float(told["arm"] == NASTY)) == 204


def card(here: Here, experiment: str, query: str = "") -> dict[str, Any]:
    answer = here.http.get(f"/v1/experiments/{experiment}/scorecard?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_it_is_the_librarys_and_every_name_is_escaped(here: Here) -> None:
    made = here.create(arms=["a", NASTY], epsilon=50.0, rounds=1000, outcome=NASTY)
    play(here, made, 120)
    found = card(here, made)
    first = found["scorecard"]["metrics"][0]
    assert (found["scorecard"]["control"], first["name"]) == ("a", NASTY)
    compared = here.http.get(
        f"/v1/experiments/{made}/compare", params={"first": "a", "second": NASTY}
    )
    (other,) = first["effects"][1:]
    same = ("difference", "low", "high")
    assert {name: other[name] for name in same} == {name: compared.json()[name] for name in same}
    assert found["html"].startswith('<section class="scorecard">')
    assert "<img" not in found["html"]
    assert "<style" not in found["html"]
    assert "&lt;img" in found["html"]
    assert here.http.get("/page/scorecard.css").text.startswith(".scorecard")
    turned = here.http.get(f"/v1/experiments/{made}/scorecard", params={"control": NASTY}).json()
    assert turned["scorecard"]["control"] == NASTY


def test_it_is_drawn_anew_for_releases_and_words_alone(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []

    def draw(*asked: Any) -> dict[str, Any]:
        drawn.append(asked)
        return scorecard(*asked)

    monkeypatch.setattr("bandanna.service.views.scorecard", draw)
    made = here.create(epsilon=50.0, algorithm="ab-test", rounds=1000)
    play(here, made, 10)
    first = card(here, made)
    for _ in range(3):
        here.decide(made)  # without feedback nothing is released
    assert card(here, made) == first
    assert len(drawn) == 1
    here.http.patch(f"/v1/experiments/{made}", json={"outcome": "revenue"})
    assert "revenue" in card(here, made)["html"]
    assert len(drawn) == 2


def test_what_it_cannot_be_about_is_refused(here: Here) -> None:
    made = here.create()
    path = f"/v1/experiments/{made}/scorecard"
    assert card(here, made)["scorecard"]["recommendation"]["action"] == "go on"
    assert here.http.get(f"{path}?control=c").status_code == 422
    assert here.http.get(f"{path}?confidence=2").status_code == 422
    context = here.create(features={"age": [18, 90]}, rounds=1000, delta=1e-6)
    answer = here.http.get(f"/v1/experiments/{context}/scorecard")
    assert answer.status_code == 422
    assert "by context" in answer.json()["detail"]
