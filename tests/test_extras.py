"""What is installed on request: named when it is missing, and not needed for anything else."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bandanna._core.extras import EXTRAS
from tests.check_package import OPTIONAL, STUDY


def without(packages: tuple[str, ...], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that cannot import some packages."""
    block = f"import sys; sys.modules.update(dict.fromkeys({packages}))\n"
    command = [sys.executable, "-c", block + code]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)


def bandanna(*arguments: str) -> str:
    return f"sys.argv = {['bandanna', *arguments]}; from bandanna.cli import main; main()"


@pytest.mark.parametrize(
    ("missing", "arguments", "said"),
    [
        (
            ("distributed",),
            ("study", "run", "study.toml", "-o", "r", "--cluster", "tcp://127.0.0.1:1"),
            "a cluster needs distributed: pip install 'bandanna[cluster]'",
        ),
        (
            ("altair",),
            ("study", "report", "r", "-o", "r.html"),
            "a chart or a report needs altair: pip install 'bandanna[report]'",
        ),
        (
            ("vl_convert",),
            ("reproduce", "regimes", "--chart", "c.svg"),
            "a chart or a report needs vl-convert-python: pip install 'bandanna[report]'",
        ),
    ],
)
def test_what_is_missing_is_named(
    missing: tuple[str, ...], arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = without(missing, bandanna(*arguments), tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"error: {said}\n"
    assert not (tmp_path / "r").exists()


def test_bandits_and_simulations_need_nothing_on_request(tmp_path: Path) -> None:
    code = """
import bandanna as bd
bandit = bd.PrivateBandit(arms=2, epsilon=0.5)
bandit.observe(bandit.decide(), loss=0.3)
results = bd.simulate(bd.PrivateBandit(2, 1.0), [[0.1, 0.9]] * 50, replicates=2)
assert "mean" in repr(results)
assert results.to_frame().height == 1
log = {"plan": ["A", "B"] * 50, "visits": [1, 0] * 50}
assert bd.answer(log, arm="plan", outcome="visits", epsilon=1.0).guarantee.epsilon == 1.0
try:
    results.plot()
except bd.BandannaError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
    done = without(
        OPTIONAL, code + bandanna("plan", "--arms=2", "--rounds=1e4", "--epsilon=1"), tmp_path
    )
    assert done.returncode == 0, done.stderr
    said = (
        "Results.plot() needs altair and jinja2 and vl-convert-python: "
        "pip install 'bandanna[report]'\n"
    )
    assert done.stdout.startswith(said)


def test_the_package_declares_what_is_asked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = {
        extra: {_module(entry) for entry in entries}
        for extra, entries in project["optional-dependencies"].items()
    }
    assert {extra: extras[extra] for extra in EXTRAS} == {
        extra: set(packages) for extra, packages in EXTRAS.items()
    }
    everything = set.union(*(extras[extra] for extra in EXTRAS))
    assert everything == set(OPTIONAL)
    assert project["optional-dependencies"]["all"] == [f"bandanna[{','.join(sorted(EXTRAS))}]"]
    assert everything.isdisjoint(_module(entry) for entry in project["dependencies"])


def _module(requirement: str) -> str:
    name = requirement.split(">", maxsplit=1)[0].split("[", maxsplit=1)[0].replace("-", "_")
    others = {
        "ibis_framework": "ibis",
        "opentelemetry_exporter_otlp_proto_http": "opentelemetry.exporter.otlp.proto.http",
        "opentelemetry_instrumentation_fastapi": "opentelemetry.instrumentation.fastapi",
        "opentelemetry_sdk": "opentelemetry.sdk",
        "openfeature_provider_ofrep": "openfeature.contrib.provider.ofrep",
        "openfeature_sdk": "openfeature.track",
        "scikit_learn": "sklearn",
        "vl_convert_python": "vl_convert",
    }
    return others.get(name, name)
