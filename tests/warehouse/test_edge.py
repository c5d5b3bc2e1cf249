"""Others decide by what is published: unmodified SDKs, and our page of code in two languages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from growthbook import GrowthBook
from numpy.typing import NDArray

from bandanna import signatures
from bandanna._core.types import JSON
from bandanna.phases import Definition, PhasedExperiment
from bandanna.phases.payloads import PARTS, assigned, flagd, growthbook, signed
from bandanna.signatures import public_from_pem
from tests.pages import ROOT

HERE = Path(__file__).with_name("sdk")
ARMS = ("control", "green", "blue")
SHARES = [1_234, 3_766, 5_000]
UNITS = int(os.environ.get("BANDANNA_UNITS", "20000"))
KEY = signatures.make_key()
COURSE: JSON = {"name": "button", "arms": ARMS, "epsilon": 1.0, "every": "1d", "window": "1d"}
TABLES: JSON = {name: name for name in ("exposures", "facts", "unit", "arm", "time", "outcome")}
SAID = Definition(**COURSE, **TABLES)
TEXTS = {
    "growthbook": growthbook(SAID, 3, SHARES, "salt-3"),
    "flagd": flagd(SAID, 3, SHARES, "salt-3"),
    "bandanna": signed(
        SAID, 3, SHARES, "salt-3", "", "before", sign=partial(signatures.sign, KEY.private)
    ),
}


def edge() -> ModuleType:
    """Return the page of code in Python, as someone has copied it."""
    spec = spec_from_file_location("bandanna_edge", ROOT / "clients/edge/bandanna_edge.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


needs_sdks = pytest.mark.skipif(
    not ((HERE / "node_modules").is_dir() and shutil.which("node"))
    and "BANDANNA_NO_SKIPS" not in os.environ,
    reason=f"needs Node and the SDKs: npm ci --prefix {HERE.relative_to(ROOT)}",
)


@pytest.fixture(scope="module")
def by_node(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], NDArray[np.uint8]]:
    """Return which arms programs in JavaScript give to units."""
    folder = tmp_path_factory.mktemp("payloads")

    def assign(kind: str) -> NDArray[np.uint8]:
        (folder / kind).write_text(TEXTS[kind])
        command = ["node", "assign.mjs", kind, str(folder / kind), str(UNITS), KEY.public.hex()]
        done = subprocess.run(command, cwd=HERE, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return np.frombuffer(done.stdout, np.uint8) - 48

    return assign


def fits(arms: NDArray[np.uint8]) -> None:
    """Shares are those that were published, within sampling error: 5.5 standard deviations."""
    for arm, part in enumerate(SHARES):
        share = part / PARTS
        error = np.sqrt(share * (1.0 - share) / arms.size)
        assert abs(float(np.mean(arms == arm)) - share) < 5.5 * error


@needs_sdks
def test_both_sdks_of_growthbook_give_everyone_the_same_arm(
    by_node: Callable[[str], NDArray[np.uint8]],
) -> None:
    there = by_node("growthbook")
    sdk = GrowthBook(features=json.loads(TEXTS["growthbook"])["features"])
    here = []
    for number in range(UNITS):
        sdk.set_attributes({"id": f"u{number}"})
        here.append(ARMS.index(sdk.get_feature_value("button", None)))
    assert there.tolist() == here
    fits(there)


@needs_sdks
def test_flagd_gives_the_published_shares(by_node: Callable[[str], NDArray[np.uint8]]) -> None:
    fits(by_node("flagd"))


@needs_sdks
def test_our_pages_of_code_give_everyone_the_same_arm(
    by_node: Callable[[str], NDArray[np.uint8]],
) -> None:
    shares = edge().Shares.read(TEXTS["bandanna"], KEY.public)
    here = [ARMS.index(shares.assign(f"u{number}")) for number in range(UNITS)]
    assert by_node("bandanna").tolist() == here
    assert here == [assigned("salt-3", f"u{number}", SHARES) for number in range(UNITS)]
    fits(np.array(here, dtype=np.uint8))


def test_shares_that_others_signed_or_changed_are_refused() -> None:
    read = edge().Shares.read
    for text, key in (
        (TEXTS["bandanna"], signatures.make_key().public),
        (TEXTS["bandanna"].replace("5000", "5001"), KEY.public),
    ):
        with pytest.raises(InvalidSignature):
            read(text, key)


def test_a_chain_is_followed_and_exposures_are_reported_once(tmp_path: Path) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    said = Definition(
        **COURSE,
        **{**TABLES, "exposures": str(tmp_path), "facts": str(tmp_path)},
        publish="bandanna",
        to=str(tmp_path / "shares.json"),
        state=str(tmp_path / "state.json"),
    )
    experiment, read = PhasedExperiment(said), edge().Shares.read
    experiment.start(begin)
    key = public_from_pem((tmp_path / "shares.json.key.public.pem").read_bytes())
    first = (tmp_path / "shares.json").read_text()
    experiment.next(begin + timedelta(days=7))  # it waits no longer for people
    second = (tmp_path / "shares.json").read_text()
    before = read(first, key)
    found = read(second, key, before)
    with pytest.raises(ValueError, match="do not follow"):
        read(second, key, found)
    told: list[tuple[str, str, str, str]] = []
    for unit in ("a", "b", "a"):
        arm = found.assign(unit, told.append)
        assert told[-1][1] in ARMS
        assert arm in ARMS
    assert [row[0] for row in told] == ["a", "b"]
    assert {row[3] for row in told} == {"button-1"}
