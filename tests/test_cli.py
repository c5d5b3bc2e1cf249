"""The command line, as a whole program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import bandanna

QUICK = ("simulate", "--rounds", "2e3", "--replicates", "5", "--arms", "3")


def test_the_table_shows_every_algorithm() -> None:
    done = bandanna(*QUICK, "--algorithms", "one-bit,htinf,ldp-exp3,no-privacy")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in ("one-bit", "htinf", "ldp-exp3", "no privacy (", "eps 0.1 central", "2,000 rounds"):
        assert text in done.stdout
    assert "best fixed arm in expectation" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 120


def test_json_is_json_and_repeats_itself() -> None:
    arguments = (*QUICK, "--algorithms", "one-bit,uniform", "--json", "--set", "seed=4")
    first, second = bandanna(*arguments), bandanna(*arguments)
    assert first.stdout == second.stdout
    data = json.loads(first.stdout)
    assert [row["policy"] for row in data["rows"]] == ["one-bit", "uniform"]
    assert data["rows"][0]["epsilon"] == 0.1
    assert data["rows"][1]["epsilon"] is None
    assert data["rounds"] == 2000


def test_one_run_has_no_error_bar_and_the_json_says_null() -> None:
    done = bandanna(*QUICK, "--replicates", "1", "--algorithms", "one-bit", "--json")
    assert json.loads(done.stdout, parse_constant=_refuse)["rows"][0]["standard_error"] is None


def test_metrics_and_guardrails_are_rehearsed() -> None:
    size = ("--rounds", "2000", "--replicates", "2", "--arms", "3", "--epsilon", "20")
    about = ("control=0", "metrics.refund=0,1", "guardrails.refund=0.1")
    given = [word for text in about for word in ("--set", text)]
    asked = ("simulate", *size, *given, "--algorithms", "phased", "--json")
    done = bandanna(*asked, "--set", "metric_means.refund=0,0,1")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["metrics"] == {"refund": [0.0, 1.0]}
    assert data["rows"][0]["retired"] == 1.0
    assert data["rows"][0]["wrongly_retired"] == 0.0
    for wrong, reason in (("refund", "NAME=VALUE"), ("metric_means.x=1,1,1", "no policy has")):
        done = bandanna(*asked, "--set", "metric_means.refund=0,0,1", "--set", wrong)
        assert done.returncode == 2
        assert reason in done.stderr


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_output_that_cannot_be_written_is_an_error_not_a_traceback() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bandanna", "plan", "--arms", "4", "--rounds", "1e5"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_environments_with_their_own_number_of_arms() -> None:
    arguments = ("simulate", "--environment", "trial", "--rounds", "500", "--replicates", "3")
    done = bandanna(*arguments, "--algorithms", "one-bit", "--json")
    assert json.loads(done.stdout)["arms"] == 4


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--epsilon", "-1"), "epsilon must be a finite number above 0"),
        (("--epsilon", "nan"), "epsilon must be"),
        (("--rounds", "2.5"), "--rounds must be a whole number"),
        (("--rounds", "many"), "'many'"),
        (("--rounds", "1e13"), "from 1 to 1e+12"),
        (("--epsilon", "1e5"), "from 1e-09 to 100"),
        (("--arms", "1000000000"), "at most 1e"),
        (("--replicates", "1e12", "--algorithms", "one-bit"), "fewer"),
        (("--arms", "1"), "arms must be a whole number, at least 2"),
        (("--arms", "1.5"), "--arms must be a whole number"),
        (("--algorithms", "magic"), "there are one-bit"),
        (("--algorithms", ","), "names none"),
        (("--environment", "mars"), "there are bernoulli"),
        (("--environment", "trial", "--arms", "3"), "has 4 arms"),
        (("--replicates", "0"), "replicates"),
        (("--set", "seed=-3"), "seed"),
        (("--rounds", "20", "--algorithms", "exp3", "--arms", "9"), "smallest rounds that works"),
    ],
)
def test_mistakes_get_a_sentence(arguments: tuple[str, ...], reason: str) -> None:
    done = bandanna("simulate", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_options_are_refused_by_the_parser() -> None:
    done = bandanna("simulate", "--armz", "3")
    assert done.returncode == 2
    assert "--armz" in done.stderr
    assert "Traceback" not in done.stderr


def test_version() -> None:
    import bandanna as package

    assert bandanna("--version").stdout == f"bandanna {package.__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from bandanna.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'numba', 'polars', 'altair', 'opendp', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_plan_loads_no_numpy() -> None:
    code = (
        "import sys\nfrom bandanna.cli import app\n"
        "try: app(['plan', '--arms', '10', '--rounds', '1e6', '--epsilon', '0.1', '--json'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'numba', 'polars', 'altair'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, bandanna; print('numpy' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_audit_attacks_and_draws_a_chart(tmp_path: Path) -> None:
    chart = tmp_path / "audit.svg"
    done = bandanna("audit", "--epsilon", "1", "--draws", "5e4", "--chart", str(chart))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("passed") == 2
    assert "Passing proves nothing" in done.stdout
    assert chart.exists()


@pytest.mark.slow
def test_audit_attacks_through_a_person(tmp_path: Path) -> None:
    chart = tmp_path / "audit.svg"
    asked = ("--epsilon", "1,2", "--person", "1,3", "--release", "one-bit", "--draws", "1e5")
    done = bandanna("audit", *asked, "--chart", str(chart), "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [(row["slots"], row["claimed"]) for row in rows] == [(1, 1), (1, 2), (3, 1), (3, 2)]
    assert all(row["audited"] <= row["claimed"] and row["passed"] for row in rows)
    assert all(row["batches_changed"] == row["slots"] for row in rows)
    assert max(row["audited"] for row in rows) > 0.5
    assert chart.exists()
    shown = bandanna("audit", "--epsilon", "1", "--person", "2", "--draws", "1e5")
    assert shown.stdout.count("passed") == 2
    assert "a person's epsilon" in shown.stdout


def test_audit_as_json() -> None:
    arguments = ("--epsilon", "0.5,1", "--release", "laplace", "--draws", "5e4", "--json")
    done = bandanna("audit", *arguments)
    rows = json.loads(done.stdout)["rows"]
    assert [row["claimed"] for row in rows] == [0.5, 1.0]
    assert all(0 < row["audited"] <= row["claimed"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("audit", "--draws", "50", "--epsilon", "2"), "use at least"),
        (("audit", "--epsilon", "x"), "numbers separated by commas"),
        (("audit", "--epsilon", "-1"), "epsilon must be"),
        (("audit", "--release", "magic"), "one-bit, laplace or all"),
        (("audit", "--batch", "0"), "batch"),
        (("audit", "--person", "0"), "--person must be a whole number"),
        (("audit", "--delta", "1e-6"), "goes with --person"),
        (("reproduce", "nothing"), "There are rates, separation"),
        (("reproduce",), "There are rates, separation"),
        (("reproduce", "limits", "--quick", "--chart", "x.svg"), "no figure"),
        (("reproduce", "regimes", "--quick", "--chart", "map.gif"), ".html, .svg"),
        (("verify", "/nowhere/at/all"), "cannot read"),
    ],
)
def test_mistakes_with_the_other_commands(arguments: tuple[str, ...], reason: str) -> None:
    done = bandanna(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr


def test_plan_answers_forwards_and_backwards() -> None:
    done = bandanna("plan", "--arms", "10", "--rounds", "1e6", "--epsilon", "0.1", "--all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("one-bit-exp3 has the smallest guaranteed regret, 3.0%")
    assert "(tau/s) sqrt(n K log(K) / 2)" in done.stdout
    assert "learning rate to run it with" in done.stdout
    inverse = bandanna("plan", "--arms", "10", "--epsilon", "0.1", "--regret", "0.02")
    assert inverse.stdout.startswith("From 2,")
    budget = bandanna("plan", "--arms", "10", "--rounds", "1e6", "--regret", "0.05")
    assert budget.stdout.startswith("From epsilon 0.036")
    question = ("--rounds", "1e6", "--epsilon", "1", "--regret", "0.05", "--json")
    data = json.loads(bandanna("plan", *question).stdout)
    assert data["best"] == "one-bit-tsallis"  # for many arms
    keys = {"algorithm", "batch", "bound", "share", "vacuous", "model", "delta"}
    assert set(data["rows"][0]) >= keys
    experts = ("--arms", "5", "--experts", "100", "--rounds", "1e7", "--epsilon", "0.5")
    assert "one-bit-exp4" in bandanna("plan", *experts, "--delta", "1e-6").stdout


def test_plan_answers_for_experts() -> None:
    size = ("--rounds", "1e6", "--epsilon", "0.3", "--regret", "0.03")
    done = bandanna("plan", "--arms", "5", "--experts", "most", *size)
    assert done.stdout.startswith("Up to 2,900 experts, regret of at most 0.03"), done.stderr
    easy = ("--rounds", "1e12", "--epsilon", "1", "--regret", "0.5")
    done = bandanna("plan", "--arms", "2", "--experts", "most", *easy)
    assert done.stdout.startswith("Up to 1,000,000,000 experts and more"), done.stderr
    done = bandanna("plan", "--experts", "50", *size)
    assert done.stdout.startswith("Up to 10 arms"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--arms", "10"), "needs --rounds, --epsilon"),
        (("--arms", "10", "--regret", "0.1"), "exactly one"),
        (("--arms", "10", "--rounds", "1e3", "--regret", "0.001"), "hardly any privacy"),
        (("--arms", "10", "--rounds", "1e3", "--epsilon", "0"), "epsilon"),
        (("--arms", "10", "--rounds", "1e3", "--epsilon", "1e-200"), "from 1e-09 to 100"),
        (("--arms", "10", "--rounds", "1e3", "--epsilon", "1000"), "from 1e-09 to 100"),
        (("--arms", "10", "--rounds", "1e3", "--epsilon", "1", "--delta", "2"), "delta"),
        (("--arms", "10", "--rounds", "1e3", "--epsilon", "1", "--experts", "most"), "--regret"),
        (("--arms", "10", "--rounds", "1e3", "--epsilon", "1", "--experts", "1"), "experts"),
    ],
)
def test_plans_that_cannot_be_made(arguments: tuple[str, ...], reason: str) -> None:
    done = bandanna("plan", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert reason in done.stderr


def test_set_reaches_what_has_no_option() -> None:
    size = ("--arms", "3", "--rounds", "1e4", "--epsilon", "0.5")
    late = json.loads(bandanna("plan", *size, "--set", "delay=50", "--json").stdout)
    assert late["delay"] == 50
    published, ours = (
        json.loads(bandanna("plan", *size, "--set", f"constants={whose}", "--json").stdout)["rows"]
        for whose in ("paper", "ours")
    )
    regret = [
        next(row["bound"] for row in rows if row["algorithm"] == "exp3")
        for rows in (published, ours)
    ]
    assert regret[1] < regret[0]
    played = ("simulate", *size[:4], "--replicates", "2", "--algorithms", "one-bit", "--json")
    row = json.loads(bandanna(*played, "--set", "batch=7").stdout)["rows"][0]
    assert row["batch"] == 7
    for wrong, reason in (
        ("dealy=5", "did you mean delay?"),
        ("delay", "NAME=VALUE"),
        ("delay=soon", "whole number"),
        ("losses=calm", "losses must be one of"),
    ):
        done = bandanna("plan", *size, "--set", wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr


@pytest.mark.parametrize("option", ["local=true", "losses=changing changes=3", "constants=ours"])
def test_what_a_question_asked_backwards_does_not_know_is_refused(option: str) -> None:
    further = [part for one in option.split() for part in ("--set", one)]
    asked = ("plan", "--arms", "4", "--epsilon", "0.5", "--regret", "0.05")
    done = bandanna(*asked, *further)
    assert (done.returncode, done.stdout) == (2, "")
    name = option.rsplit(maxsplit=1)[-1].partition("=")[0]
    assert f"{name} cannot be used with --regret" in done.stderr
