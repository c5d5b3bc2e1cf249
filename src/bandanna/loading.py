"""``bd.load``: read a saved policy, contextual policy or segments."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from bandanna._core.types import JSON, InputError, StateFileError
from bandanna.policy.base import BasePolicy
from bandanna.policy.facade import policy_from_dict
from bandanna.policy.files import read_with
from bandanna.policy.segments import Segments, resume


def load(
    path: str | Path,
    *,
    epsilon: float | None = None,
    again: bool = False,
    learner: object = None,
    encoder: object = None,
) -> Any:
    """Read what ``save`` wrote; it goes on where it was, with a new identity.

    Feedback for decisions made before the file was saved is credited; for decisions made after it,
    which this policy does not know, it is refused. Returns a ``Policy``; or a
    ``PrivateContextual`` or ``Segments``, if the file holds one.

    Parameters
    ----------
    path
        The file.
    epsilon
        Refuse a file whose policy promises less than this: its checksum shows damage, and anyone
        can make one.
    again
        Load a file that has been resumed before. Whatever was open in it may then be released
        twice, and the guarantee says so.
    learner
        For a policy around another library's learner, or yours: a fresh one with the same
        settings, or the function that made it. It is told again all that was released, and
        refused unless it draws the same arms as the saved one did.
    encoder
        For a policy with context whose features were not declared: the fitted encoder it was made
        with.

    Examples
    --------
    >>> import bandanna as bd, tempfile, pathlib
    >>> bandit = bd.PrivateBandit(arms=2, epsilon=1.0, seed=1)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bandit.json"
    >>> bandit.save(path)
    >>> bd.load(path, epsilon=1.0).decide().arm == bandit.decide().arm
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file that save wrote; got {path!r}.")
    options: JSON = {"epsilon": epsilon, "again": again}
    read = partial(from_dict, learner=learner, encoder=encoder)

    def segments(data: JSON) -> Segments:
        return Segments({name: read(one) for name, one in data["segments"]})

    def go_on(source: Path, data: JSON) -> BasePolicy | Segments:
        if data.get("kind") == Segments.__name__:
            return resume(source, data, segments, **options)
        return resume(source, data, read, **options)

    return read_with(path, go_on)


def from_dict(
    data: JSON, *, latest: bool = False, learner: object = None, encoder: object = None
) -> BasePolicy:
    """Make a policy of any kind from what its ``to_dict`` returned, checking every value anew.

    ``latest`` promises that nothing was decided after ``data``: it then keeps its identity.
    """
    if data["spec"]["kind"] != "PrivateContextual":
        _refuse(encoder=encoder)
        return policy_from_dict(data, latest=latest, learner=learner)
    from bandanna.contextual import PrivateContextual  # loaded when first used

    _refuse(learner=learner)
    return PrivateContextual.from_dict(data, encoder, latest=latest)


def _refuse(**given: object) -> None:
    """Refuse what does not go with the kind of file."""
    for name, value in given.items():
        if value is not None:
            raise StateFileError(f"{name}= does not go with what this file holds; leave it out.")
