"""People who signed in where their company does: a proxy in front says who they are.

A proxy such as oauth2-proxy signs people in and sends their name and groups along in headers. They
are believed from the addresses that the operator names, and from no other: from elsewhere they are
not looked at. What people may do is written down in a file, by name or group:

    [everywhere]
    "ann@example.com" = "owner"

    [projects.shop]
    "group:shop" = "editor"
    "*" = "viewer"

A viewer reads. An editor also makes and changes experiments. An owner also has keys and the trail,
everywhere; in a project owners are as editors. The service has no passwords and no sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bandanna._core.documents import read_toml
from bandanna._core.types import InputError
from bandanna.store import KeyRow

ROLES = {
    "viewer": ("read",),
    "editor": ("read", "edit"),
    "owner": ("read", "edit", "manage"),
}
"""What each opens."""

IN_PROJECT = ROLES | {"owner": ROLES["editor"]}

USER, EMAIL, GROUPS = (
    b"x-forwarded-user",
    b"x-forwarded-email",
    b"x-forwarded-groups",
)
"""Headers that oauth2-proxy sends; an address, if there is one, is the name."""

UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
ANYONE = "*"
MOST_NAME = 200


@dataclass(frozen=True)
class Roles:
    """What people may do, by name, ``group:...`` or ``*``: everywhere and in projects."""

    everywhere: Mapping[str, str] = field(default_factory=dict)
    projects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def person(self, name: str, groups: Sequence[str]) -> KeyRow:
        """Return what a person may do, as a key that is kept nowhere."""
        known = {name, ANYONE, *(f"group:{group}" for group in groups)}

        def opened(grants: Mapping[str, str], roles: Mapping[str, tuple[str, ...]]) -> set[str]:
            return {scope for who in known for scope in roles.get(grants.get(who, ""), ())}

        there = {project: opened(some, IN_PROJECT) for project, some in self.projects.items()}
        projects = {project: tuple(sorted(scopes)) for project, scopes in there.items() if scopes}
        everywhere = tuple(sorted(opened(self.everywhere, ROLES)))
        identity = f"person {name}"[:100]
        return KeyRow(identity, name, b"", everywhere, None, 0.0, projects=projects)


def read_roles(path: Path) -> Roles:
    """Read who may do what."""
    document = read_toml(path)
    everywhere, projects = document.pop("everywhere", {}), document.pop("projects", {})
    if document:
        raise InputError(f"{path} has [everywhere] and [projects.NAME]; got {min(document)!r}.")
    for where, grants in {"everywhere": everywhere, **projects}.items():
        for who, role in grants.items():
            if role not in ROLES:
                raise InputError(
                    f"a role is viewer, editor or owner; {path} gives {who!r} {role!r} in {where}."
                )
    return Roles(everywhere, projects)


def named_by(sent: Sequence[tuple[bytes, bytes]]) -> tuple[str, list[str]] | None:
    """Return the name and the groups that a proxy sent, if it sent a name, and one."""
    said = [name for name, _ in sent if name in (USER, EMAIL, GROUPS)]
    if len(set(said)) < len(said):
        return None
    headers = dict(sent)
    name = (headers.get(EMAIL) or headers.get(USER, b"")).decode("utf-8", "replace").strip()
    if not name or len(name) > MOST_NAME or not name.isprintable():
        return None
    groups = headers.get(GROUPS, b"").decode("utf-8", "replace").split(",")
    return name, [group.strip() for group in groups if group.strip()]


def from_elsewhere(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page of another origin makes a browser change something here.

    The proxy knows people by a cookie, which browsers send along whoever asks.
    """
    if method not in UNSAFE:
        return False
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    host = headers.get(b"x-forwarded-host") or headers.get(b"host", b"")
    return origin is not None and origin.partition(b"://")[2] != host
