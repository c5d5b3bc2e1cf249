"""Test vectors that the Python and the JavaScript device must agree on.

``python -m tests.device.vectors`` writes ``clients/device/vectors.json`` again; a test compares.
"""

from __future__ import annotations

import base64
import json
import math
import random
from typing import Any

from bandanna import signatures
from bandanna.device import (
    RefusalError,
    canonical_document,
    check_release,
    draw_bit,
    fingerprint,
    make_release,
    sign_release,
    to_units,
)
from tests.pages import ROOT

PATH = ROOT / "clients" / "device" / "vectors.json"
EPSILONS = (1e-9, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0)
PRIVATE = bytes(range(32))
"""Known to everyone: for tests alone."""

LOG_2 = math.log(2)  # a little below the logarithm
TINY = {
    "epsilon": repr(math.nextafter(LOG_2, 1)),
    "loss_low": "0",
    "loss_high": "1",
    "default_loss": "1",
    **{"a": "1", "b": "1", "denominator": "3", "units": "1", "batch": "1"},
}
"""The smallest release there is: (1 + 1)/1 is exactly exp(log 2)."""


def changed(release: dict[str, str], **entries: Any) -> dict[str, Any]:
    return {**release, **entries}


def with_a(release: dict[str, str], a: int) -> dict[str, str]:
    denominator = 2 * a + int(release["b"]) * int(release["units"])
    return changed(release, a=str(a), denominator=str(denominator))


class GivenWords:
    """Random words that are known beforehand."""

    def __init__(self, words: list[int]) -> None:
        self._words = words
        self.used = 0

    def __call__(self, count: int) -> list[int]:
        taken = self._words[self.used : self.used + count]
        assert len(taken) == count, "more words were asked for than there are"
        self.used += count
        return taken


def draws() -> list[dict[str, Any]]:
    stream = random.Random(1)
    found = []
    for release in (TINY, *map(make_release, EPSILONS)):
        parameters = check_release(release, 100.0)
        limit = parameters.denominator
        count = -(-(limit - 1).bit_length() // 32)
        for units in (0, 1, parameters.units // 3, parameters.units):
            edge = parameters.a + parameters.b * units  # the first number that gives a 0
            for first in (stream.getrandbits(32 * count), edge - 1, edge, limit):
                # Numbers from D on are thrown away, so one that counts must follow.
                spare = stream.randrange(limit)
                words = [*as_words(first, count), *as_words(spare, count)]
                given = GivenWords(words)
                case = {"release": release, "units": str(units), "words": words}
                found.append(case | {"bit": draw_bit(parameters, units, given), "used": given.used})
    return found


def as_words(number: int, count: int) -> list[int]:
    return [number >> 32 * index & 0xFFFFFFFF for index in reversed(range(count))]


def losses() -> list[dict[str, Any]]:
    stream = random.Random(2)
    found = []
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.1, 0.3), (-1e-5, 7e12)):
        release = make_release(1.0, loss_low=low, loss_high=high, default_loss=high)
        given = [low, high, low + (high - low) / 3, (low + high) / 2]
        given += [min(high, max(low, stream.uniform(low, high))) for _ in range(5)]
        parameters = check_release(release, 1.0)
        units = [str(to_units(parameters, loss)) for loss in given]
        found.append({"release": release, "losses": given, "units": units})
    return found


def checks() -> list[dict[str, Any]]:
    one = make_release(1.0)
    a = int(one["a"])
    releases: list[tuple[Any, float]] = [(TINY, 1.0), (changed(TINY, epsilon=repr(LOG_2)), 1.0)]
    for epsilon in EPSILONS:
        release = make_release(epsilon)
        smaller = repr(math.nextafter(epsilon, 0))
        releases += [(release, epsilon), (release, math.nextafter(epsilon, 0))]
        releases += [(with_a(release, int(release["a"]) - 1), epsilon)]
        releases += [(changed(release, epsilon=smaller), epsilon)]
    releases += [
        (with_a(one, a * 999 // 1000), 1.0),
        (with_a(one, a * 2), 1.0),
        (changed(one, denominator=str(int(one["denominator"]) + 1)), 1.0),
        (changed(one, batch="2"), 1.0),
        (changed(one, a=a), 1.0),
        (changed(one, a=f"0{a}"), 1.0),
        (changed(one, a=f"-{a}"), 1.0),
        (changed(one, a=f"{a}\n"), 1.0),
        (changed(one, b="0"), 1.0),
        (changed(one, b="1e3"), 1.0),
        (changed(one, epsilon="0.5"), 1.0),
        (changed(one, epsilon="1e400"), 1e300),
        (changed(one, epsilon="-1"), 1.0),
        (changed(one, epsilon="NaN"), 1.0),
        (changed(one, epsilon="1 "), 1.0),
        (changed(one, epsilon="1e-10"), 1.0),
        (changed(one, epsilon="101"), 1000.0),
        (changed(one, loss_low="1"), 1.0),
        (changed(one, loss_low="-1e308", loss_high="1e308"), 1.0),
        (changed(one, default_loss="1.5"), 1.0),
        (changed(one, units=str(2**33)), 1.0),
        ({key: value for key, value in one.items() if key != "a"}, 1.0),
        (None, 1.0),
        ("a", 1.0),
    ]
    return [
        {"release": release, "allowed": allowed, "refused": refusal(release, allowed)}
        for release, allowed in releases
    ]


def refusal(release: Any, allowed: float) -> str | None:
    try:
        check_release(release, allowed)
    except RefusalError as error:
        return error.code
    return None


def signed() -> list[dict[str, Any]]:
    found = []
    for experiment, epsilon in (("exp_1", 1.0), ("other.experiment-2", 0.1)):
        release = make_release(epsilon, loss_low=-1.0, default_loss=0.25)
        found.append(
            {
                "experiment": experiment,
                "release": release,
                "document": canonical_document(experiment, release).decode(),
                "fingerprint": fingerprint(experiment, release),
                **sign_release(PRIVATE, experiment, release),
            }
        )
    return found


def vectors() -> dict[str, Any]:
    return {
        "format": "bandanna device vectors 1",
        "public_key": base64.b64encode(signatures.public_key(PRIVATE)).decode(),
        "draws": draws(),
        "losses": losses(),
        "checks": checks(),
        "signed": signed(),
    }


def text() -> str:
    """One line for each case."""
    lines = []
    for name, value in vectors().items():
        if isinstance(value, list):
            cases = ",\n".join(f"  {json.dumps(case)}" for case in value)
            lines.append(f" {json.dumps(name)}: [\n{cases}\n ]")
        else:
            lines.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
