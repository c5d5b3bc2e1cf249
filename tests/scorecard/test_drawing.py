"""The page and the text of a scorecard: whole, escaped, readable by everyone."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as Tree

from bandanna.scorecard.page import nice_step
from bandanna.scorecard.text import percent
from bandanna.scorecard.view import Recommendation
from tests.scorecard.cards import CARD


def test_the_page_says_all_of_it_and_escapes() -> None:
    page = CARD.html()
    assert "<b>red" not in page
    for said in (
        "Ship blue",
        "+3.8%",
        "+0.40",
        "cannot be said",
        "1 in 100 cut",
        "63% likely",
        "basic",
    ):
        assert said in page
    body = Tree.fromstring(CARD._repr_html_())
    pictures = body.findall(".//svg")
    assert pictures
    assert all(p.get("aria-label") or p.get("aria-hidden") for p in pictures)
    assert [heading.text for heading in body.findall(".//h1")] == [
        "Ship blue: it is better than green"
    ]


def test_the_text_says_it_too() -> None:
    text = str(CARD)
    for said in ("Ship blue", "+3.8% (+2.1% to +5.4%)", "guardrail: at most 0.3 more than green"):
        assert said in text
    assert "LOOK: 1 in 100 cut." in text


def test_only_what_was_decided_is_called_sure() -> None:
    waiting = replace(CARD, recommendation=Recommendation("go on", None, "Go on", "The rule."))
    assert ">95% sure<" in CARD.html()
    assert ">needs to be 95% sure<" in waiting.html()


def test_where_no_lift_can_be_said_there_is_no_axis() -> None:
    effects = [replace(effect, lift=None) for effect in CARD.metrics[0].effects]
    page = replace(CARD, metrics=(CARD.metrics[0].with_effects(effects),), moments=(), groups=())
    assert "lift from" in CARD.html()
    assert "lift from" not in page.html()


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(CARD.to_dict()))["control"] == "green"
    quiet = replace(CARD, health=(), groups=(), moments=(), epsilon=60.0)
    assert "sure after" not in quiet.privacy
    assert "over time" not in quiet._repr_html_()


def test_numbers() -> None:
    assert [percent(x, 0.01) for x in (0.0381, -0.0001, 12.5)] == ["+3.8%", "0.0%", "+1,250.0%"]
    assert [nice_step(x) for x in (0.011, 0.3, 0.5, 7.0)] == [0.02, 0.5, 0.5, 10.0]
