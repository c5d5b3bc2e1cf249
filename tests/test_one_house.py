"""Toys from outside the package, each by one file and one registration, are at home everywhere."""

from __future__ import annotations

import inspect
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest

from tests.command import bandanna
from tests.contracts import test_environments, test_learners, test_policies, test_releases


def run_with_toys(code: str, arguments: Sequence[str]) -> str:
    """Run code as a program that knows the toys; return what it prints."""
    import tests.toys.algorithm
    import tests.toys.environment  # noqa: F401

    printed = io.StringIO()
    with redirect_stdout(printed), patch.object(sys, "argv", ["program", *arguments]):
        exec(code, {"__name__": "program"})
    return printed.getvalue()


def command_with_toys(arguments: Sequence[str]) -> str:
    """Run the command line in a program that knows the toys; return what it prints."""
    import tests.toys.algorithm
    import tests.toys.environment  # noqa: F401

    done = bandanna(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Program:
    """Someone else's program, which knows the toys; the process of the tests never does."""

    process: ProcessPoolExecutor

    def run(self, code: str, *arguments: str) -> str:
        return self.process.submit(run_with_toys, code, arguments).result()

    def bandanna(self, *arguments: str) -> str:
        return self.process.submit(command_with_toys, arguments).result()


@pytest.fixture(scope="module")
def outside() -> Iterator[Program]:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        yield Program(process)


SUITES = {
    "learner": "from tests.toys.learner import Stay; toy = Stay(4)",
    "release": "from tests.toys.release import CautiousRelease; toy = CautiousRelease(0.5, 4)",
    "statistic": "from tests.toys.statistic import AboveRelease; toy = AboveRelease(0.5, 4)",
}


def contracts_of(module: ModuleType, argument: str) -> list[Callable[..., object]]:
    """Return the tests of a contract suite that take nothing but the thing under test."""
    return [
        function
        for name, function in vars(module).items()
        if name.startswith("test_") and list(inspect.signature(function).parameters) == [argument]
    ]


@pytest.mark.parametrize(
    ("toy", "argument", "module"),
    [
        ("learner", "learner", test_learners),
        ("release", "release", test_releases),
        ("statistic", "release", test_releases),
    ],
)
def test_toys_pass_the_contract_suites(
    outside: Program, toy: str, argument: str, module: ModuleType
) -> None:
    suite = [function.__name__ for function in contracts_of(module, argument)]
    assert len(suite) >= 5
    code = (
        f"{SUITES[toy]}\nimport {module.__name__} as suite\n"
        f"for name in {suite!r}:\n    getattr(suite, name)(toy)\n    print(name)\n"
    )
    assert outside.run(code).split() == suite


def test_the_toy_environment_passes_its_suite(outside: Program) -> None:
    code = (
        f"import {test_environments.__name__} as suite\nfrom tests.toys.environment import Turns\n"
        "suite.DETERMINISTIC['toy'] = Turns(3, suite.ROUNDS)\n"
        "suite.test_sums_add_up_and_stay_in_range('toy')\nprint('passed')\n"
    )
    assert outside.run(code).strip() == "passed"


def test_the_toy_algorithm_passes_the_suite_of_policies(outside: Program) -> None:
    code = (
        f"import inspect, {test_policies.__name__} as suite\n"
        "for label, test in vars(suite).items():\n"
        "    if label.startswith('test_') and list(inspect.signature(test).parameters) == ['name']"
        " and 'expert' not in label and 'without' not in label:\n"
        "        test('toy')\n"
        "        print(label)\n"
    )
    assert len(outside.run(code).split()) >= 6


SIZE = ("--arms", "3", "--rounds", "1000", "--epsilon", "0.5")


def test_toys_are_planned_and_simulated(outside: Program) -> None:
    planned = outside.bandanna("plan", "--all", *SIZE)
    assert re.search(r"\btoy\b[^.]* no bound here: none is proved", planned)  # or toys together
    options = ("--environment", "toy-turns", "--algorithms", "toy,one-bit", "--replicates", "2")
    rows = json.loads(outside.bandanna("simulate", *SIZE, *options, "--json"))["rows"]
    assert [row["policy"] for row in rows] == ["toy", "one-bit"]
    assert rows[0]["epsilon"] == 0.5
    assert "toy" in outside.bandanna("simulate", "--algorithms", "list")


def test_toys_are_studied_and_reported(outside: Program, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        '[study]\nreplicates = 2\n[grid]\nalgorithm = ["toy", "one-bit"]\n'
        'environment = ["toy-turns"]\n'
        "epsilon = [0.5]\narms = [3]\nrounds = [1000]\n"
    )
    results = str(tmp_path / "results")
    outside.bandanna("study", "run", str(tmp_path / "study.toml"), "-o", results, "--workers", "1")
    outside.bandanna("study", "report", results, "-o", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert "toy" in page
    assert "twice the noise" in page


def test_toys_are_certified_or_refused_with_the_reason(outside: Program, tmp_path: Path) -> None:
    code = (
        "import bandanna as bd, json, sys\n"
        "policy = bd.PrivateBandit(3, 0.5, 1000, 'toy')\n"
        "policy.observe(policy.decide(), loss=0.5)\n"
        "policy.save(sys.argv[1] + '/p.json'); bd.load(sys.argv[1] + '/p.json').decide()\n"
        "from bandanna._core.documents import to_text\n"
        "open(sys.argv[1] + '/c.json', 'w').write(to_text(policy.certificate()))\n"
        "from bandanna.audits.policies import audit_policy\n"
        "assert audit_policy(policy, batches=500, runs=100).passed\n"
    )
    outside.run(code, str(tmp_path))
    assert "yes: the guarantee follows" in outside.bandanna("verify", str(tmp_path / "c.json"))
    refused = (
        "import bandanna as bd, tests.toys.release as toys\n"
        "from unittest.mock import patch\n"
        "from bandanna.privacy.registry import MECHANISMS\n"
        "with patch.dict(MECHANISMS):\n    del MECHANISMS['toy-cautious']\n"
        "    try:\n        bd.PrivateBandit(3, 0.5, 1000, 'toy').certificate()\n"
        "    except bd.InputError as error:\n        print(error)\n"
    )
    assert "nothing to certify" in outside.run(refused)


def test_a_new_statistic_is_one_file(outside: Program, tmp_path: Path) -> None:
    """Counted, learned from, saved, certified and attacked."""
    code = (
        "import bandanna as bd, sys, tests.toys.statistic\n"
        "from bandanna._core.documents import to_text\n"
        "from bandanna.audits.policies import audit_policy\n"
        "policy = bd.PrivateBandit(2, 50.0, 1000, 'toy-above', batch=4, seed=1)\n"
        "first, again = [policy.decide() for _ in range(4)], [policy.decide() for _ in range(4)]\n"
        "for decision, loss in zip(first, (0.51, 0.6, 0.0, 0.49)):\n"
        "    policy.observe(decision, loss=loss)\n"
        "print(round(policy.state.totals[first[0].index].mean, 1))\n"
        "for decision in again[:2]:\n    policy.observe(decision, loss=0.9)\n"
        "policy.save(sys.argv[1] + '/p.json'); policy = bd.load(sys.argv[1] + '/p.json')\n"
        "for decision in again[2:]:\n    policy.observe(decision, loss=0.9)\n"
        "print(policy.released)\n"
        "open(sys.argv[1] + '/c.json', 'w').write(to_text(policy.certificate()))\n"
        "small = bd.PrivateBandit(2, 0.5, 1000, 'toy-above')\n"
        "print(audit_policy(small, batches=500, runs=100).passed)\n"
    )
    assert outside.run(code, str(tmp_path)).split() == ["0.5", "2", "True"]
    assert "yes: the guarantee follows" in outside.bandanna("verify", str(tmp_path / "c.json"))


def test_a_program_that_does_not_know_the_toys_is_not_disturbed(
    outside: Program, tmp_path: Path
) -> None:
    """Nothing of theirs is in the shared cache of compiled kernels."""
    options = ("--environment", "toy-turns", "--algorithms", "toy", "--replicates", "2")
    outside.bandanna("simulate", *SIZE, *options)
    ours = [sys.executable, "-m", "bandanna", "simulate", *SIZE, "--replicates", "2"]
    ours += ["--algorithms", "one-bit"]
    done = subprocess.run(ours, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
