"""A policy's parameters are declared once, and appear everywhere."""

from __future__ import annotations

import inspect
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandanna as bd
from bandanna.spec import ExpertsOptions, Options, Spec, defaults, parameters, spec_from_dict, types
from tests.pages import ROOT

POSITIONAL = {"arms", "epsilon", "delta", "rounds", "experts", "algorithm"}

TOY = """    toy: int | None = _declare(
        _whole(1),
        "A parameter that was added by a test.",
        None,
        served=True,
        axis=Axis("toy"),
    )

    def __post_init__(self) -> None:
        declared"""

SHOW = """
import inspect, json, tempfile
from pathlib import Path
import bandanna as bd
from bandanna.service.models import NewExperiment
from bandanna.service.policies import make_policy
from bandanna.studies.schema import AXES, Setting
from bandanna.studies.study import Study
from bandanna.cli import app
from typer.testing import CliRunner

policy = bd.PrivateBandit(2, 1.0, toy=7)
path = Path(tempfile.mkdtemp()) / "policy.json"
policy.save(path)
body = {"name": "x", "arms": 2, "epsilon": 1.0, "toy": 7}
made = make_policy(NewExperiment.model_validate(body).model_dump())
cell = next(iter(Study.from_dict({
    "study": {"title": "toy", "replicates": 1},
    "grid": {"algorithm": ["one-bit"], "environment": ["bernoulli"], "epsilon": [1.0],
             "rounds": [100], "arms": [2], "toy": [7]},
}).cells)).policy()
command = ["simulate", "--arms", "2", "--rounds", "200", "--replicates", "1", "--set", "toy=7",
           "--algorithms", "one-bit", "--json"]
ran = CliRunner().invoke(app, command)
print(json.dumps({
    "constructor": "toy" in inspect.signature(bd.PrivateBandit).parameters,
    "described": "added by a test" in bd.PrivateBandit.__doc__,
    "http": "toy" in NewExperiment.model_json_schema()["properties"] and made.spec.toy,
    "study": "toy" in AXES and cell.spec.toy,
    "command": ran.exit_code == 0 and json.loads(ran.stdout)["toy"],
    "file": json.loads(path.read_text())["spec"]["toy"],
    "loaded": bd.load(path).spec.toy,
}))
"""


def test_a_parameter_is_declared_in_one_place(tmp_path: Path) -> None:
    """One field in a copy of the source: constructor, HTTP, study, command and file have it."""
    source = tmp_path / "bandanna"
    shutil.copytree(ROOT / "src" / "bandanna", source, ignore=shutil.ignore_patterns("__pycache__"))
    declaration = source / "spec.py"
    text = declaration.read_text("utf-8")
    marker = "    def __post_init__(self) -> None:\n        declared"
    assert text.count(marker + " = parameters()") == 1
    declaration.write_text(text.replace(marker + " = ", TOY + " = "), "utf-8")
    cached = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **cached}
    environment["NUMBA_DISABLE_JIT"] = "1"  # nothing here is worth compiling
    command = [sys.executable, "-c", SHOW]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found == {
        "constructor": True,
        "described": True,
        "http": 7,
        "study": 7,
        "command": 7,
        "file": 7,
        "loaded": 7,
    }


@pytest.mark.parametrize(("options", "experts"), [(Options, False), (ExpertsOptions, True)])
def test_static_types_name_what_is_declared(options: type, experts: bool) -> None:
    declared = {name for name, one in parameters().items() if one.experts or not experts}
    declared -= POSITIONAL
    hints = get_type_hints(options)
    assert declared == set(hints)
    assert hints == {name: types()[name] for name in declared}


@pytest.mark.parametrize("kind", [bd.PrivateBandit, bd.PrivateExperts, bd.Bandit, bd.Experts])
def test_constructors_describe_all_they_take(kind: type[bd.Policy]) -> None:
    assert kind.__doc__ is not None
    lines = kind.__doc__.splitlines()
    for name in inspect.signature(kind).parameters:
        assert name in lines, name


def test_unknown_keywords_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match=r"PrivateBandit\(\) got an unexpected keyword.*'bach'"):
        bd.PrivateBandit(2, 1.0, bach=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="goal"):
        bd.PrivateExperts(2, 2, 1.0, goal="answer")  # type: ignore[call-arg]


values: dict[str, st.SearchStrategy[Any]] = {
    "arms": st.integers(2, 9),
    "epsilon": st.sampled_from([0.1, 1.0, math.inf]),
    "rounds": st.none() | st.integers(1, 10**6),
    "delay": st.integers(0, 9),
    "clip": st.booleans(),
    "loss_range": st.sampled_from([(0.0, 1.0), (-2.0, 5.0)]),
    "per_person": st.none() | st.integers(1, 5),
    "learner": st.sampled_from([None, "htinf"]),
}


@settings(max_examples=50, deadline=None)
@given(st.fixed_dictionaries({}, optional=values))
def test_a_spec_survives_being_written_down(chosen: dict[str, Any]) -> None:
    spec = Spec("PrivateBandit", **chosen)
    plain = json.loads(json.dumps(spec.to_dict()))
    assert spec_from_dict(plain) == spec
    del plain["delay"]  # written before the parameter was there
    assert spec_from_dict(plain) == spec.but(delay=defaults()["delay"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": 0}, "rounds must be"),
        ({"losses": "wild"}, "losses must be one of any, changing, steady"),
        ({"loss_range": (1, 0)}, "loss_range must be a pair"),
        ({"default_loss": 2.0}, "default_loss must be"),
        ({"people": 5}, "people= goes with per_person="),
        ({"rounds_per_slot": 5}, "goes with per_person"),
        ({"arms": ["a", "a"]}, "must differ"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(bd.InputError, match=message):
        Spec("PrivateBandit", **wrong)
