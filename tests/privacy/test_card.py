"""A card says what the certificate says, what people stated, and nothing else."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import bandanna as bd
from bandanna._core.types import percent_up
from bandanna.cli import app
from bandanna.privacy.card import NOT_STATED, QUESTIONS, Card, make_card, participants_text
from tests.command import bandanna

ALL = {name: f"answer about {name}" for name in QUESTIONS}


def text_of(card: Card) -> str:
    return "\n".join(
        f"{entry.name}: {entry.value}" for entries in card.entries.values() for entry in entries
    )


def test_numbers_are_the_certificates_and_the_odds_are_true() -> None:
    card = make_card(bd.PrivateBandit(2, 0.5, 1000).certificate())
    text = text_of(card)
    assert "Epsilon: 0.5\nDelta: 0\n" in text
    assert "at most 1.65 times" in text
    assert "right at most 62.3% of the time" in text
    assert "2 rounds 1, 5 rounds 2.5, 10 rounds 5" in text
    assert "an event: the feedback of one round" in text
    assert card.unanswered == QUESTIONS
    assert text.count(NOT_STATED) == len(QUESTIONS)


def test_persons_ranges_and_devices_are_said() -> None:
    person = make_card(bd.PrivateBandit(3, 1.0, 1000, per_person=20, delta=1e-6).certificate())
    assert "a person: all their feedback, in up to 20 slots" in text_of(person)
    assert ", plus 1e-06;" in text_of(person)
    assert "everything you tell us" in person.participants[0]
    found = bd.private_range(range(5000), 0.5, bounds=(0, 10_000))
    policy = bd.PrivateBandit(2, 0.3, loss_range=found.loss_range, clip=True)
    ranged = make_card(policy.certificate(found))
    assert "Epsilon with the range: 0.8" in text_of(ranged)
    assert "a range that is chosen privately" in text_of(ranged)
    assert f"at most {percent_up(math.exp(0.8) / (1 + math.exp(0.8)))}" in ranged.participants[1]
    assert "each person has one value behind the range" in text_of(ranged)
    device = bd.PrivateBandit(2, 1.0, 1000, "one-bit-exp3", batch=1, release="device")
    assert "does not leave it" in make_card(device.certificate()).participants[2]
    weak = make_card(bd.PrivateBandit(2, 8.0, 1000).certificate())
    assert "This is weak protection." in weak.participants[1]


@settings(deadline=None, max_examples=100)
@given(st.floats(1e-6, 100.0), st.sampled_from([0.0, 1e-9, 1e-3]))
def test_no_printed_share_is_too_small(epsilon: float, delta: float) -> None:
    certificate = {"epsilon": epsilon, "delta": delta, "mechanism": "laplace"}
    (shown, five) = re.findall(r"at most ([0-9.]+)% of", participants_text(certificate)[1])
    for times, text in ((1, shown), (5, five)):
        exact = 1.0 / (1.0 + math.exp(-times * epsilon))
        assert float(text) >= 100.0 * exact * (1.0 - 1e-15)


def test_answers_fill_the_registrys_tiers() -> None:
    certificate = bd.PrivateBandit(2, 0.5, 1000).certificate()
    assert make_card(certificate).tier == 0
    basic = dict.fromkeys(("curator", "use", "product", "date"), "x")
    assert make_card(certificate, basic).tier == 2
    full = make_card(certificate, ALL)
    assert full.tier == 3
    assert NOT_STATED not in text_of(full)
    assert full.unanswered == {}
    assert make_card(certificate, {"curator": "  "}).unanswered == QUESTIONS
    with pytest.raises(bd.InputError, match="unknown answers: colour"):
        make_card(certificate, {"colour": "red"})


def test_what_people_write_cannot_break_the_page() -> None:
    answers = ALL | {"curator": "<script>alert(1)</script> | a\nb"}
    card = make_card(bd.PrivateBandit(2, 0.5, 1000).certificate(), answers)
    assert "<script>" not in card.to_html()
    rows = [line for line in card.to_markdown().splitlines() if line.startswith("| Curator")]
    assert len(rows) == 1
    assert rows[0].endswith("\\| a b | stated |")
    parser = HTMLParser()
    parser.feed(card.to_html())
    assert "http" not in card.to_html()


def test_it_says_what_else_was_spent_on_these_people(tmp_path: Path) -> None:
    ledger = bd.Ledger.start(tmp_path / "people", budget=2.0)
    for epsilon in (0.5, 0.25):
        ledger.spend(epsilon, what="which plan <b>", who="ann")
    card = make_card(bd.PrivateBandit(2, 0.5).certificate(), ledger=ledger.to_dict())
    found = {entry.name: entry.value for entry in card.entries["All releases about these people"]}
    assert (found["Budget"], found["Spent"]) == ("epsilon 2", "epsilon 0.75")
    assert found["Left for one more release"] == "1.25 for everyone"
    assert "which plan &lt;b&gt;, asked by ann" in card.to_html()
    certificate = tmp_path / "certificate.json"
    certificate.write_text(json.dumps(bd.PrivateBandit(2, 0.5).certificate()))
    done = bandanna("card", str(certificate), "--ledger", str(tmp_path / "people"))
    assert "asked by ann" in done.stdout, done.stderr
    missing = bandanna("card", str(certificate), "--ledger", str(tmp_path / "none"))
    assert "there is no ledger" in missing.stderr


def test_the_command_writes_each_kind(tmp_path: Path) -> None:
    source = tmp_path / "certificate.json"
    source.write_text(json.dumps(bd.PrivateBandit(2, 0.5, 1000).certificate()))
    answers = tmp_path / "answers.toml"
    answers.write_text('curator = "A clinic"\nuse = "reminders"\n', encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["card", str(source), *arguments])
        return done.exit_code, done.output + str(done.exception or "")

    assert "| Curator | A clinic | stated |" in run("--answers", str(answers))[1]
    for kind in ("md", "html", "json"):
        code, said = run(
            "--answers", str(answers), "--set", "use=letters", "-o", f"{tmp_path}/c.{kind}"
        )
        assert code == 0
        assert "not stated: product, date" in said
        assert "letters" in (tmp_path / f"c.{kind}").read_text("utf-8")
    made = json.loads((tmp_path / "c.json").read_text("utf-8"))
    promised = {"name": "Epsilon", "value": "0.5", "source": "certificate"}
    assert promised in made["sections"]["Privacy guarantee"]
    assumed = [
        entry for entry in made["sections"]["What is not covered"] if entry["name"] == "Assumed"
    ]
    assert len(assumed) == len(json.loads(source.read_text())["assumptions"])
    assert ".md, .html or .json" in run("-o", "card.pdf")[1]
    assert "cannot write" in run("-o", str(tmp_path / "none" / "card.md"))[1]
    answers.write_text("epsilon = 0.1\n")
    assert "must be a text in quotes" in run("--answers", str(answers))[1]
    source.write_text(source.read_text().replace('"epsilon": 0.5', '"epsilon": 0.4'))
    assert "does not verify" in run()[1]
