"""Machine code on disk: only the package's own, never stale, and never fatal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bandanna

PACKAGE = Path(bandanna.__file__).parent

SIMULATE = """
import bandanna as bd
policy = bd.privatize("uniform", arms=2, epsilon=1.0)
print(bd.simulate(policy, [[0.1, 0.9]] * 200, replicates=2).regret("policy"))
"""
REGISTER = """
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
import numpy as np
import bandanna as bd
from bandanna._core.compiled import step
from bandanna.learners import CompiledLearner
from bandanna.learners.steps import register

class OutsideParams(NamedTuple):
    arm: int

class OutsideState(NamedTuple):
    nothing: np.ndarray

@dataclass(frozen=True)
class Outside(CompiledLearner):
    arms: int = 2
    name: ClassVar[str] = "outside"
    def params(self): return OutsideParams(1)
    def start(self): return OutsideState(np.zeros(1))

@step
def draw(params, state, stream): return params.arm, 1.0

@step
def update(params, state, lesson): state.nothing[0] = lesson.loss

register(OutsideParams, draw, update)
policy = bd.privatize(Outside(), arms=2, epsilon=1.0)
print(bd.simulate(policy, [[0.1, 0.9]] * 200, replicates=2).regret("policy"))
policy.observe(policy.decide(), loss=0.5)
"""


def python(code: str, cache: Path, source: Path = PACKAGE.parent) -> str:
    """Run a program of its own in a folder of its own."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(cache: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in cache.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_learner_from_outside_leaves_no_trace(tmp_path: Path) -> None:
    """The next program does not know it, and must not fail for it."""
    module = tmp_path / "outside.py"
    module.write_text(REGISTER)
    found = python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import outside", tmp_path / "c"
    )
    assert float(found.split()[0].strip("[")) == pytest.approx(160.0, abs=0.1)
    assert files(tmp_path / "c") == {}
    first = python(SIMULATE, tmp_path / "c")
    kept = files(tmp_path / "c")
    assert len(kept) == 1
    assert not any(b"OutsideParams" in content for content in kept.values())
    assert python(SIMULATE, tmp_path / "c") == first
    assert files(tmp_path / "c") == kept


@pytest.mark.slow
def test_what_cannot_be_read_is_compiled_again(tmp_path: Path) -> None:
    first = python(SIMULATE, tmp_path)
    (path,) = tmp_path.rglob("*.nbc")
    whole = path.read_bytes()
    for damaged in (b"", b"nonsense", b"cnowhere\nNothing\n.", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        assert python(SIMULATE, tmp_path) == first
        assert path.stat().st_size == pytest.approx(len(whole), rel=0.01)


def test_an_edited_source_is_never_run_as_it_was(tmp_path: Path) -> None:
    source, cache = tmp_path / "src", tmp_path / "c"
    shutil.copytree(PACKAGE, source / "bandanna", ignore=shutil.ignore_patterns("__pycache__"))
    first = python(SIMULATE, cache, source)
    (before,) = files(cache)
    learner = source / "bandanna" / "learners" / "uniform.py"
    text = learner.read_text()
    stat = learner.stat()
    changed = text.replace("uniform(stream) *", "0.0 *")
    assert changed != text
    learner.write_text(changed)
    os.utime(learner, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # clocks are not to be trusted
    python("import bandanna.learners", cache, source)
    assert [*files(cache)] == [before]  # importing deletes nothing
    assert python(SIMULATE, cache, source) != first
    (after,) = files(cache)  # what was compiled from other sources is replaced
    assert after != before


@pytest.mark.slow
def test_editing_what_was_not_compiled_keeps_the_machine_code(tmp_path: Path) -> None:
    source, cache = tmp_path / "src", tmp_path / "c"
    shutil.copytree(PACKAGE, source / "bandanna", ignore=shutil.ignore_patterns("__pycache__"))
    first = python(SIMULATE, cache, source)
    before = files(cache)
    for edited in ("cli/plan.py", "service/routes/decisions.py", "report/charts.py", "__init__.py"):
        path = source / "bandanna" / edited
        path.write_text(path.read_text() + "\n# An edit.\n")
    assert python(SIMULATE, cache, source) == first
    assert files(cache) == before


def test_the_packages_own_steps_cannot_be_replaced() -> None:
    """Otherwise the machine code of a replaced one would be kept as ours."""
    from bandanna.learners import Uniform
    from bandanna.learners.steps import draw

    with pytest.raises(bandanna.InputError, match="UniformParams has its draw already"):
        draw.register(type(Uniform(2).params()), lambda *_: (0, 1.0))
