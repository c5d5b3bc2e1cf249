"""What certificates, cards and guarantees state fits together, in every part of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bandanna as bd
from bandanna.privacy.card import Card, make_card
from bandanna.privacy.certificate import sealed, verify
from bandanna.privacy.charges import INSIDE, charged

ROWS = {"arm": np.arange(4_000) % 2, "loss": np.arange(4_000) % 2}
LOG = bd.answer(ROWS, arm="arm", outcome="loss", epsilon=0.5)
BOUGHT = bd.private_range(range(5000), 0.5, bounds=(0, 10_000))


def started(**changes: Any) -> bd.PrivateBandit:
    options: dict[str, Any] = {"rounds": 4_000, "algorithm": "phased", "start_from": LOG}
    return bd.PrivateBandit(["0", "1"], 1.0, **options | changes)


def ranged() -> bd.PrivateBandit:
    return bd.PrivateBandit(2, 0.3, loss_range=BOUGHT.loss_range, clip=True)


def good(certificate: object) -> bool:
    return all(finding.holds for finding in verify(json.dumps(certificate)))


def changed(certificate: dict[str, Any], **entries: object) -> dict[str, Any]:
    return sealed({key: one for key, one in (certificate | entries).items() if key != "seals"})


def text_of(card: Card) -> str:
    return card.to_markdown() + "\n".join(card.participants)


# --- certificates -----------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [1.5, 2.0, 3.0, 7.0])
def test_log_and_resumed_run_add_up_inside_as_outside(stated: float) -> None:
    """1.5 was accepted inside a certificate whose epsilon outside is 2."""
    policy = started()
    policy.state.resumed = 1
    whole = policy.certificate()
    assert (whole["epsilon"], whole[INSIDE]["epsilon_with_start"]) == (2.0, 2.5)
    assert good(whole)
    inside, said = whole[INSIDE], policy.guarantee.assumptions[-1]
    assumed = [*inside["assumptions"][:-1], said.replace("2.5 in all", f"{stated:g} in all")]
    forged = changed(inside, epsilon_with_start=stated, assumptions=assumed)
    assert not good(whole | {INSIDE: forged})


def test_a_log_and_a_single_run_add_up_to_no_more_either() -> None:
    certificate = started().certificate()
    said = [text.replace("1.5 in all", "9 in all") for text in certificate["assumptions"]]
    assert good(certificate)
    assert not good(changed(certificate, epsilon_with_start=9.0, assumptions=said))


def test_epsilon_outside_is_that_inside_charged() -> None:
    whole = charged(bd.PrivateBandit(2, 0.5).certificate(), 2)
    assert good(whole)
    assert not good(whole | {"epsilon": 9.0})
    assert not good(whole | {"delta": 0.5})


def test_a_bought_range_is_neither_charged_nor_with_a_log() -> None:
    certificate = ranged().certificate(BOUGHT)
    assert good(certificate)
    assert not good(charged(certificate, 1))
    log = {"start_certificate": LOG.certificate, "epsilon_with_start": 0.8}
    assert not good(changed(certificate, **log))


@pytest.mark.parametrize("end", ["1e999", "-1e999", "1" + "0" * 400, "NaN", "Infinity"])
def test_no_number_of_a_certificate_is_endless(end: str) -> None:
    """A metric's range to 1e999 was accepted."""
    policy = bd.PrivateBandit(2, 0.5, metrics={"revenue": (0, 100)})
    certificate = policy.certificate()
    assert good(certificate)
    assumed = [text.replace("0 to 100", "0 to inf") for text in certificate["assumptions"]]
    metrics = [certificate["metrics"][0] | {"high": 12345}]
    text = json.dumps(changed(certificate, metrics=metrics, assumptions=assumed))
    for key in ("12345", '"loss_high": 1.0'):
        forged = text.replace(key, end if key == "12345" else f'"loss_high": {end}')
        assert not all(finding.holds for finding in verify(forged))


# --- cards ------------------------------------------------------------------------------------


def test_a_card_is_of_a_certificate_that_verifies() -> None:
    """The card of a forged one said that bandanna verify said yes."""
    certificate = bd.PrivateBandit(2, 0.5).certificate()
    assert "bandanna verify said yes" in text_of(make_card(certificate))
    with pytest.raises(bd.InputError, match="does not verify: epsilon"):
        make_card(changed(certificate, epsilon=0.1))
    with pytest.raises(bd.InputError, match="does not verify"):
        make_card(certificate | {"epsilon": 0.1})
    with pytest.raises(bd.InputError, match="does not verify"):
        make_card({})
    with pytest.raises(bd.InputError, match="a certificate is a dict; got NoneType"):
        make_card(None)  # type: ignore[arg-type]


def test_segments_have_a_card_each() -> None:
    segments = bd.Segments(lambda _: bd.PrivateBandit(2, 0.5), ["de", "fr"])
    with pytest.raises(bd.InputError, match="a card for each segment"):
        make_card(segments.certificate())
    assert text_of(make_card(segments["de"].certificate()))


def test_a_bought_range_is_not_said_to_be_fixed_without_looking() -> None:
    certificate = ranged().certificate(BOUGHT)
    said = text_of(make_card(certificate))
    assert "chosen privately from people's values" in said
    assert "without looking at them" not in said
    assert "without looking at them" not in json.dumps(certificate)
    fixed = ranged().certificate()
    assert "without looking at them" in text_of(make_card(fixed))
    together = BOUGHT.together(ranged().guarantee)
    assert "without looking at them" not in str(together)
    assert "chosen privately" in str(together)
    assert "known without looking at the values" in str(together)  # the bounds
    as_fixed = changed(certificate, assumptions=fixed["assumptions"])
    assert not good(as_fixed)


@pytest.mark.parametrize("protects", ["feedback", "context and feedback"])
def test_the_card_of_a_contextual_policy_is_about_epochs(protects: Any) -> None:
    features = {"age": (0.0, 99.0)}
    for per_person, shown in ((1, "one epoch a person, once"), (4, "4 epochs a person, once")):
        policy = bd.PrivateContextual(
            3, features, 1.0, 1e-6, 10_000, protects, per_person=per_person
        )
        certificate = policy.certificate()
        assert good(certificate)
        said = text_of(make_card(certificate))
        assert shown in said
        assert "slot" not in said
        assert "batch of its own" not in said
    assert "we use up to 4 answers" in said


# --- groups -----------------------------------------------------------------------------------


def test_the_sentence_about_a_log_has_the_groups_epsilon() -> None:
    promise = started().guarantee
    assert "that of the log, 0.5; who is in both has 1.5 in all" in promise.assumptions[-1]
    three = promise.for_group(3)
    assert three.epsilon == 3.0
    assert "that of the log, 1.5; who is in both has 4.5 in all" in three.assumptions[-1]
    assert "1.5 in all" not in str(three)
    six = three.for_group(2)
    assert "that of the log, 3; who is in both has 9 in all" in six.assumptions[-1]
    assert len(six.assumptions) == len(promise.assumptions)


def test_so_it_has_at_another_delta_and_after_resumptions() -> None:
    policy = started(algorithm="ab-test")
    promise = policy.guarantee
    for other in (promise.at_delta(0.01), promise.for_group(2, delta=0.01), promise.repeated(2)):
        log = 1.0 if "2 rounds" in other.protects else 0.5
        said = other.assumptions[-1].partition("both has ")[2].partition(" in all")[0]
        assert float(said) == pytest.approx(other.epsilon + log)
    policy.state.resumed = 2
    assert "who is in both has 3.5 in all" in policy.guarantee.assumptions[-1]
    assert "who is in both has 7 in all" in policy.guarantee.for_group(2).assumptions[-1]
