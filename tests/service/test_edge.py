"""Experiments that decide at the edge: one release a phase, and reports count as documented."""

from __future__ import annotations

import base64
import json
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna.privacy.certificate import verify
from bandanna.privacy.laplace import LaplaceRelease
from tests.postgres import Postgres, needs_postgres
from tests.service.running import JSON, Copied, Here, service_here
from tests.warehouse.test_edge import edge as page_of_code

ARMS = ["control", "green", "blue"]
RATES = {"control": 0.3, "green": 0.5, "blue": 0.7}
DAY = 86_400.0


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with service_here(tmp_path) as running:
        yield running


def create(here: Here, **fields: Any) -> str:
    given: JSON = {"arms": ARMS, "decides": "edge", "phase_seconds": DAY, "deadline_seconds": DAY}
    return here.create(**{**given, "reward": True, "rounds": 1_500, **fields})


def shares(here: Here, experiment: str, before: Any = None) -> Any:
    answer = here.http.get(f"/v1/experiments/{experiment}/phase")
    assert answer.status_code == 200, answer.text
    key = base64.b64decode(here.core.signer.public)
    return page_of_code().Shares.read(answer.text, key, before)


def send(here: Here, experiment: str, lines: list[JSON]) -> JSON:
    body = "\n".join(map(json.dumps, lines))
    answer = here.http.post(f"/v1/experiments/{experiment}/feedback", content=body)
    assert answer.status_code == 200, answer.text
    found: JSON = answer.json()
    return found


def go_on(here: Here) -> None:
    """Do what is due now, as the service does every second."""
    here.http.portal.call(here.core.sweep)  # type: ignore[union-attr]


def visit(here: Here, experiment: str, people: range, seed: int = 0) -> list[JSON]:
    """Let people come: they meet what is published, and some of them buy."""
    told, rng = shares(here, experiment), random.Random(f"{seed} {people}")
    lines = []
    for number in people:
        arm = told.assign(f"u{number}")
        line: JSON = {"unit": f"u{number}", "arm": arm, "experiment": told.key}
        lines.append(line | {"value": 1.0} if rng.random() < RATES[arm] else line)
    found = send(here, experiment, lines)
    assert found == {"taken": len(lines), "refused": []}
    return lines


def state_of(here: Here, experiment: str) -> JSON:
    found: JSON = here.core.store.experiments(experiment)[0].head["course"]
    return found


def test_phases_are_published_reported_learned_from_and_answered(here: Here) -> None:
    experiment = create(here)
    before = None
    for day in range(10):
        told = shares(here, experiment, before)
        assert told.phase == day
        visit(here, experiment, range(150 * day, 150 * (day + 1)))
        before = told
        here.clock.now += DAY
        go_on(here)
    here.clock.now += DAY
    go_on(here)
    phases = state_of(here, experiment)["phases"]
    assert [sum(one["released"]["counts"].values()) for one in phases[:10]] == [150] * 10
    assert phases[9]["parts"][2] > 5_000, "the best arm has most of it"
    path = f"/v1/experiments/{experiment}"
    answer = here.http.get(f"{path}/answer").json()
    assert answer["arms"][2]["low"] <= 0.7 <= answer["arms"][2]["high"]
    card = here.http.get(f"{path}/scorecard").json()["scorecard"]
    assert card["epsilon"] == 1.0
    assert "division" in [check["name"] for check in card["health"]]
    privacy = here.http.get(f"{path}/privacy").json()
    assert privacy["guarantee"]["epsilon"] == 1.0
    assert all(finding.holds for finding in verify(to_text(privacy["certificate"])))
    shown = here.http.get(path).json()
    assert (shown["decided"], shown["observed"]) == (1_500, 1_500)
    rows = here.http.get(f"{path}/export").json()
    assert sum(row["rounds"] for row in rows) == 1_500
    results = here.http.get(f"{path}/results").json()
    assert results["rounds_released"] == 1_500
    assert here.http.get(f"{path}/live?once=true").status_code == 200
    assert here.http.get(f"{path}/audit").json()["claimed"] == 1.0
    assert np.isclose(sum(one["share"] for one in results["choices"]), 1.0)


@pytest.mark.slow
@needs_postgres
def test_it_is_the_same_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    with service_here(tmp_path, database=postgres.new_database()) as here:
        test_phases_are_published_reported_learned_from_and_answered(here)
        test_a_unit_counts_in_as_many_phases_as_allowed(here, 2)
        test_one_that_is_stopped_counts_what_is_open_and_opens_nothing(here)


def test_shares_can_be_cached_and_are_the_same_until_they_change(here: Here) -> None:
    experiment = create(here)
    path = f"/v1/experiments/{experiment}/phase"
    first = here.http.get(path)
    assert first.headers["Cache-Control"] == "public, max-age=60"
    tag = first.headers["ETag"]
    again = here.http.get(path, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    here.clock.now += DAY - 5
    assert here.http.get(path).headers["Cache-Control"] == "public, max-age=5"
    visit(here, experiment, range(1_500))
    here.clock.now += 5
    go_on(here)
    assert here.http.get(path, headers={"If-None-Match": tag}).status_code == 200
    key = here.key("reward")
    refused = here.http.get(path, headers={"Authorization": f"Bearer {key}"})
    assert refused.status_code == 403


def test_reports_are_counted_once_in_the_phase_of_their_time_and_by_their_first_value(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int | None]] = []

    def noted(self: LaplaceRelease, total: int, size: int | None = None) -> float:
        seen.append((total, size))
        return total / ((size or 1) * UNITS)

    monkeypatch.setattr(LaplaceRelease, "release", noted)
    experiment = create(here, rounds=60, reward=None, loss_range=[0, 8])
    begin = here.clock.now
    told = shares(here, experiment)
    lines = [{"unit": f"u{k}", "time": iso(begin + k)} for k in range(60)]
    here.clock.now += 100.0
    assert send(here, experiment, lines)["refused"] == []
    for _ in range(2):
        assert send(here, experiment, lines)["taken"] == 60
    with_value = [{**line, "value": 2.0} for line in lines[:40]]
    assert send(here, experiment, [*with_value, *with_value])["taken"] == 80
    repeat = [{"unit": line["unit"], "value": 8.0, "experiment": told.key} for line in lines[:40]]
    assert send(here, experiment, repeat)["refused"] == []
    clipped = [{"unit": "u59", "value": 1e300}, {"unit": "u58", "value": -5}]
    assert send(here, experiment, clipped)["refused"] == []
    here.clock.now = begin + DAY
    go_on(here)
    assert send(here, experiment, [{"unit": "next"}])["refused"] == []
    late = {"unit": "u57", "value": 4.0, "time": iso(begin + DAY - 1)}
    assert send(here, experiment, [late])["refused"] == []
    here.clock.now = begin + 2 * DAY
    (refused,) = send(here, experiment, [{**late, "unit": "u56"}])["refused"]
    assert refused["status"] == 410, "its window is over, whether it was counted or not"
    go_on(here)
    sums = seen[: len(seen) // 2]  # squares follow
    assert sum(size or 0 for _, size in sums) == 60
    assert sum(total for total, _ in sums) == (40 * 2 + 8 + 0 + 4) * UNITS // 8
    phases = state_of(here, experiment)["phases"]
    assert sum(phases[0]["released"]["counts"].values()) == 60
    by_hash = [told.assign(f"u{k}") for k in range(60)]
    assert phases[0]["released"]["counts"] == {arm: by_hash.count(arm) for arm in ARMS}


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def test_lines_that_cannot_be_used_are_refused_without_their_values(here: Here) -> None:
    experiment = create(here, metrics={"items": [0, 20]}, metrics_share=0.5)
    now, told = here.clock.now, shares(here, experiment)
    wrong = next(arm for arm in ARMS if arm != told.assign("u1"))
    value = 7.654321
    lines: list[Any] = [
        {"unit": "u0", "value": value, "metrics": {"items": 3}},
        {"unit": "u1", "value": value, "arm": wrong},
        {"unit": "u1", "value": value, "arm": told.assign("u1")},
        {"unit": "u1", "value": value, "experiment": "other-3"},
        {"unit": "u1", "value": value, "time": iso(now - 100)},
        {"unit": "u1", "value": value, "time": iso(now + 100)},
        {"unit": "u1", "value": value, "time": iso(now + 10)},
        {"unit": "u1", "value": value, "metrics": {"more": value}},
        {"unit": "u1", "values": value},
        {"unit": "", "value": value},
        {"value": value},
        {"unit": "u1", "value": f"{value}"},
        {"unit": "u1", "value": [value]},
    ]
    body = "\n".join([*map(json.dumps, lines), "", "no document", '{"unit": "u", "value": NaN}'])
    path = f"/v1/experiments/{experiment}/feedback"
    answer = here.http.post(path, content=body)
    found = answer.json()
    assert found["taken"] == 4
    refused = {one["line"]: one["status"] for one in found["refused"]}
    assert refused == {
        **{2: 422, 4: 410, 5: 410, 6: 422, 8: 422, 9: 422, 10: 422, 11: 422, 13: 422},
        **{15: 400, 16: 422},
    }
    assert "654321" not in answer.text
    assert b"654321" not in Path(here.settings.database.removeprefix("sqlite:///")).read_bytes()
    assert wrong not in answer.json()["refused"][0]["detail"]
    many = here.http.post(path, content=b'{"unit": "u"}\n' * 10_002)
    assert many.status_code == 422


def test_what_needs_a_decision_in_the_service_is_refused(here: Here) -> None:
    experiment, other = create(here), here.create(deadline_seconds=10)
    path = f"/v1/experiments/{experiment}"
    decided = here.http.post(f"{path}/decisions", json={})
    assert decided.status_code == 422
    assert "decides at the edge" in decided.json()["detail"]
    assert here.http.put(f"{path}/arms/red").status_code == 422
    assert here.http.delete(f"{path}/arms/green").status_code == 422
    block = here.http.post(f"{path}/decisions/block", json={"block_id": "b", "count": 2})
    assert block.status_code == 422
    name = here.http.get(path).json()["name"]
    flag = here.http.post(f"/ofrep/v1/evaluate/flags/{name}", json={"context": {}})
    assert flag.status_code == 400
    flags = here.http.post("/ofrep/v1/evaluate/flags", json={"context": {"targetingKey": "u"}})
    assert len(flags.json()["flags"]) == 1
    for call in ("phase", "feedback"):
        verb = "GET" if call == "phase" else "POST"
        answer = here.http.request(verb, f"/v1/experiments/{other}/{call}")
        assert answer.status_code == 422
        assert "decides in the service" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"phase_seconds": None}, "phase_seconds"),
        ({"deadline_seconds": None}, "deadline_seconds"),
        ({"segments": ["de", "fr"]}, "segments"),
        ({"batch": 10}, "batch"),
        ({"algorithm": "adaptive"}, "phased"),
        ({"privacy": "local"}, "central"),
        ({"decides": None}, "phase_seconds"),
        ({"sticky_seconds": 5}, "sticky_seconds"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(here: Here, fields: JSON, why: str) -> None:
    given: JSON = {"name": "x", "arms": ARMS, "epsilon": 1.0, "decides": "edge"}
    given |= {"phase_seconds": DAY, "deadline_seconds": DAY, **fields}
    body = {name: value for name, value in given.items() if value is not None}
    answer = here.http.post("/v1/experiments", json=body)
    assert answer.status_code == 422
    assert why in answer.json()["detail"]


def test_metrics_and_a_control_are_as_elsewhere(here: Here) -> None:
    more: JSON = {"metrics": {"items": [0, 20]}, "control": "control", "least_share": 0.3}
    experiment = create(here, **more, guardrails={"items": 1.0}, epsilon=8.0)
    for day in range(6):
        told = shares(here, experiment)
        lines: list[JSON] = []
        for k in range(200 * day, 200 * (day + 1)):
            bought = k % 3 == 0
            line: JSON = {"unit": f"u{k}", "experiment": told.key}
            lines.append(line | {"value": 1, "metrics": {"items": 6}} if bought else line)
        send(here, experiment, lines)
        here.clock.now += DAY
        go_on(here)
    results = here.http.get(f"/v1/experiments/{experiment}/results").json()
    assert results["control"] == "control"
    (items,) = results["metrics"]
    for arm in items["answer"]["arms"]:
        assert arm["low"] <= 2.0 <= arm["high"]
    assert items["guardrail"] == 1.0
    assert min(one["parts"][0] for one in state_of(here, experiment)["phases"]) >= 2_900


@pytest.mark.parametrize("slots", [1, 2])
def test_a_unit_counts_in_as_many_phases_as_allowed(here: Here, slots: int) -> None:
    experiment = create(here, per_person=slots, rounds=400)
    salts = set()
    for day in range(4):
        salts.add(shares(here, experiment)._salt)
        visit(here, experiment, range(80), day)
        here.clock.now += 7 * DAY
        go_on(here)
    here.clock.now += DAY
    go_on(here)
    phases = state_of(here, experiment)["phases"]
    counts = [sum(one["released"]["counts"].values()) for one in phases[:4]]
    assert counts == [80] * slots + [0] * (4 - slots)
    assert len(salts) == (1 if slots == 1 else 4)
    privacy = here.http.get(f"/v1/experiments/{experiment}/privacy").json()
    assert privacy["about"] == "person"
    assert privacy["guarantee"]["epsilon"] == 1.0
    assert "of one person" in privacy["guarantee"]["protects"]
    assert all(finding.holds for finding in verify(to_text(privacy["certificate"])))


def test_worlds_that_differ_in_one_unit_are_counted_alike_but_for_a_sum(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int | None]] = []

    def noted(self: LaplaceRelease, total: int, size: int | None = None) -> float:
        seen.append((total, size))
        return total / ((size or 1) * UNITS)

    monkeypatch.setattr(LaplaceRelease, "release", noted)
    monkeypatch.setattr("bandanna.store.edge_unit.seed_of", lambda *_: "salt")
    monkeypatch.setattr("bandanna.phases.course.seed_of", lambda *_: "salt")
    values: list[list[Any]] = [[None], [1e300, None, 0.0]]
    worlds = []
    for theirs in values:
        seen.clear()
        experiment = create(here, rounds=90)
        lines: list[JSON] = [{"unit": f"u{k}", "value": float(k % 2)} for k in range(90) if k != 5]
        send(here, experiment, lines + [{"unit": "u5", "value": value} for value in theirs])
        for _ in range(2):
            here.clock.now += DAY
            go_on(here)
        worlds.append((list(seen), state_of(here, experiment)["phases"][0]["released"]["counts"]))
    (one, counts), (two, others) = worlds
    assert counts == others
    assert [size for _, size in one] == [size for _, size in two]
    assert sum(abs(a - b) for (a, _), (b, _) in zip(one, two, strict=True)) == UNITS


def test_one_that_is_stopped_counts_what_is_open_and_opens_nothing(here: Here) -> None:
    experiment = create(here)
    visit(here, experiment, range(100))
    here.http.post(f"/v1/experiments/{experiment}/stop")
    go_on(here)
    assert state_of(here, experiment)["phases"][0]["until"] is not None
    here.clock.now += DAY
    go_on(here)
    assert here.http.get(f"/v1/experiments/{experiment}").json()["decided"] == 100
    (refused,) = send(here, experiment, [{"unit": "late"}])["refused"]
    assert refused["status"] == 410
    with here.core.store.transaction() as transaction:
        number = here.core.store.experiments(experiment)[0].number
        transaction.lock([number])
        assert transaction.blocks(number, 0) == [], "reports are erased when they are released"
    assert here.http.delete(f"/v1/experiments/{experiment}").status_code == 204


def test_an_arm_that_is_shipped_is_published_for_everyone(here: Here) -> None:
    experiment = create(here)
    first = shares(here, experiment)
    for _ in range(2):
        path = f"/v1/experiments/{experiment}/ship"
        assert here.http.post(path, json={"arm": "green"}).status_code == 200
        told = shares(here, experiment, first)
        assert {told.assign(f"u{k}") for k in range(50)} == {"green"}


# --- once, whatever happens ---------------------------------------------------------------------

KILLS = int(os.environ.get("BANDANNA_KILLS", "4"))


@pytest.mark.slow
def test_a_service_that_is_killed_releases_each_phase_once_and_loses_no_report(
    tmp_path: Path,
) -> None:
    """Two processes share a database: one leads, and is killed at any moment; phases last 1 s."""
    dice, pair = random.Random(3), [Copied(tmp_path) for _ in range(2)]
    for one in pair:
        one.start()
    urls, key = [one.url for one in pair], pair[0].key
    with bd.Client(urls, key, patience=60) as client:
        fields: JSON = {"decides": "edge", "phase_seconds": 0.5, "deadline_seconds": 0.5}
        made = client.create("killed", ARMS, 1.0, rounds=100_000, **fields)
        seen: dict[int, JSON] = {}
        reported, number = 0, 0
        for _ in range(KILLS):
            end = time.monotonic() + dice.uniform(0.5, 2.0)
            while time.monotonic() < end:
                lines = [{"unit": f"u{k}", "value": 1.0} for k in range(number, number + 50)]
                refused = made.report(lines)
                assert all("over" in why or "counted" in why for why in refused.values())
                reported += 50 - len(refused)
                number += 50
                seen = grown(seen, tmp_path, made.id)
            victim = dice.choice(pair)
            victim.kill()
            victim.start()
            seen = grown(seen, tmp_path, made.id)
        made.stop()
        end = time.monotonic() + 60
        while any(one["released"] is None for one in phases_of(tmp_path, made.id)):
            assert time.monotonic() < end
            time.sleep(0.1)
        seen = grown(seen, tmp_path, made.id)
        counted = sum(sum(one["counts"].values()) for one in seen.values())
        assert counted == reported
        rows = httpx.get(
            f"{urls[0]}/v1/experiments/{made.id}/export",
            headers={"Authorization": f"Bearer {key}"},
        ).json()
        pairs = [(row["batch"], row["arm"]) for row in rows]
        assert len(set(pairs)) == len(pairs)
        assert sum(row["rounds"] for row in rows) == counted
        assert made.guarantee.epsilon == 1.0
    for one in pair:
        one.stop()


def phases_of(folder: Path, experiment: str) -> list[JSON]:
    with closing(sqlite3.connect(folder / "service.db", timeout=60)) as base:
        query = "SELECT head FROM experiments WHERE id = ?"
        ((head,),) = base.execute(query, (experiment,)).fetchall()
    found: list[JSON] = json.loads(head)["course"]["phases"]
    return found


def grown(seen: dict[int, JSON], folder: Path, experiment: str) -> dict[int, JSON]:
    """Return what was released; all that was seen before is in it as it was."""
    now = {one["number"]: one["released"] for one in phases_of(folder, experiment)}
    now = {number: released for number, released in now.items() if released}
    assert {number: now[number] for number in seen} == seen
    return now
