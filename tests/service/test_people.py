"""People who signed in at a proxy: who is believed, and what their roles open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import bandanna as bd
from bandanna.service.identity import read_roles
from tests.service.running import Here, service_here

ROLES = """
[everywhere]
"ann@example.com" = "owner"
"group:analysts" = "viewer"

[projects.shop]
"bob@example.com" = "editor"
"*" = "viewer"

[projects.search]
"group:search" = "owner"
"""
PROXY = "10.0.0.7"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    (tmp_path / "roles.toml").write_text(ROLES)
    given: dict[str, Any] = {"people_from": (PROXY,), "roles": tmp_path / "roles.toml"}
    with service_here(tmp_path, **given) as running:
        yield running


def ask(
    here: Here, method: str, path: str, name: str, *groups: str, peer: str = PROXY, **more: Any
) -> Any:
    """Ask through a proxy that says who it is."""
    headers = {"X-Forwarded-Email": name, "X-Forwarded-User": "ignored"}
    headers |= {"X-Forwarded-Groups": ",".join(groups)} if groups else {}
    headers |= more.pop("headers", {})
    client = TestClient(here.http.app, client=(peer, 1), raise_server_exceptions=False)
    return client.request(method, path, headers=headers, **more)


def test_headers_are_believed_from_the_address_of_the_proxy_and_from_no_other(here: Here) -> None:
    assert ask(here, "GET", "/v1/keys", "ann@example.com").status_code == 200
    for peer in ("10.0.0.8", "127.0.0.1", "::1", "203.0.113.9", "testclient"):
        refused = ask(here, "GET", "/v1/keys", "ann@example.com", peer=peer)
        assert refused.status_code == 401, peer
    forged = {"X-Forwarded-For": PROXY}
    refused = ask(here, "GET", "/v1/keys", "ann@example.com", peer="10.0.0.8", headers=forged)
    assert refused.status_code == 401, "the connection counts, not what it says of itself"
    wrong = {"Authorization": "Bearer bdn_0_0"}
    assert ask(here, "GET", "/v1/keys", "ann@example.com", headers=wrong).status_code == 401
    twice = [("X-Forwarded-Email", "eve@example.com"), ("X-Forwarded-Email", "ann@example.com")]
    client = TestClient(here.http.app, client=(PROXY, 1))
    assert client.get("/v1/keys", headers=twice).status_code == 401, "which one is it?"


def test_nobody_is_believed_where_no_proxy_is_named(tmp_path: Path) -> None:
    with service_here(tmp_path) as here:
        for peer in (PROXY, "127.0.0.1"):
            assert ask(here, "GET", "/v1/keys", "ann@example.com", peer=peer).status_code == 401
    for half in ({"people_from": (PROXY,)}, {"roles": tmp_path / "roles.toml"}):
        with pytest.raises(bd.InputError, match="together"):
            Here(tmp_path, **half)


def test_roles_open_projects(here: Here) -> None:
    made = {
        name: here.create(name=name, **({"project": name} if name != "common" else {}))
        for name in ("shop", "search", "common")
    }

    def opened(name: str, *groups: str, verb: str = "") -> set[str]:
        found = set()
        for project, experiment in made.items():
            path = f"/v1/experiments/{experiment}"
            how = ("PUT", f"{path}/arms/a") if verb else ("GET", path)
            status = ask(here, *how, name, *groups).status_code
            assert status in (200, 403, 404)
            found |= {project} if status == 200 else set()
        return found

    def listed(name: str, *groups: str) -> set[str]:
        return {one["name"] for one in ask(here, "GET", "/v1/experiments", name, *groups).json()}

    everything = set(made)
    assert opened("ann@example.com") == opened("ann@example.com", verb="edit") == everything
    assert opened("eve@example.com", "analysts") == listed("eve@example.com", "analysts")
    assert opened("eve@example.com", "analysts") == everything
    assert opened("eve@example.com", "analysts", verb="edit") == set()
    assert opened("bob@example.com") == opened("bob@example.com", verb="edit") == {"shop"}
    assert listed("bob@example.com") == {"shop"}
    assert opened("eve@example.com", "search") == {"shop", "search"}
    assert opened("eve@example.com", "search", verb="edit") == {"search"}
    assert listed("eve@example.com") == {"shop"}, "whoever signed in"


def test_what_editors_and_owners_may(here: Here) -> None:
    body = {"name": "new", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}

    def make(name: str, *groups: str, project: str | None = None) -> int:
        sent = body | {"name": f"{name} {project}", "project": project}
        return int(ask(here, "POST", "/v1/experiments", name, *groups, json=sent).status_code)

    assert make("bob@example.com", project="shop") == 201
    assert make("bob@example.com", project="search") == 403
    assert make("bob@example.com") == 403
    assert make("eve@example.com", "search", project="search") == 201
    assert make("ann@example.com") == 201
    for path in ("/v1/keys", "/v1/trail", "/metrics"):
        assert ask(here, "GET", path, "ann@example.com").status_code == 200
        assert ask(here, "GET", path, "bob@example.com").status_code == 403
        assert ask(here, "GET", path, "eve@example.com", "search").status_code == 403
    who = [one["who"] for one in here.http.get("/v1/trail").json()["entries"]]
    assert "person bob@example.com" in who
    me = ask(here, "GET", "/v1/keys/me", "ann@example.com").json()
    assert (me["name"], "manage" in me["scopes"]) == ("ann@example.com", True)


def test_a_page_of_another_origin_changes_nothing(here: Here) -> None:
    body = {"name": "new", "arms": ["a", "b"], "epsilon": 1.0, "rounds": 100}

    def make(**headers: str) -> int:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = ask(here, "POST", "/v1/experiments", "ann@example.com", json=body, headers=sent)
        return int(answer.status_code)

    assert make(Sec_Fetch_Site="cross-site") == 403
    assert make(Sec_Fetch_Site="same-site") == 403
    assert make(Origin="https://evil.example") == 403
    assert make(Origin="http://testserver") == 201


def test_roles_that_are_misspelt_are_named(tmp_path: Path) -> None:
    file = tmp_path / "roles.toml"
    for text, why in (
        ('[everywhere]\n"a" = "boss"\n', "viewer, editor or owner"),
        ('[project.x]\n"a" = "owner"\n', "'project'"),
        ("[", "cannot read"),
    ):
        file.write_text(text)
        with pytest.raises(bd.InputError, match=why):
            read_roles(file)
