"""A release from outside the package: one file, one registration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

import pytest
from research.accounting import tight_epsilon

import bandanna as bd
from bandanna._core.documents import to_text
from bandanna._core.grid import UNITS
from bandanna._core.types import Guarantee, InputError
from bandanna.audits.policies import audit_policy
from bandanna.privacy import RELEASES, LaplaceRelease
from bandanna.privacy.certificate import verify
from bandanna.privacy.laplace import LaplaceMechanism, laplace_scale
from bandanna.privacy.mechanism import Finding
from bandanna.privacy.registry import MECHANISMS, register


@dataclass(frozen=True)
class WideMechanism(LaplaceMechanism):
    """Laplace noise of twice the scale that is needed."""

    name: ClassVar[str] = "wide"

    def prove(self, epsilon: float) -> Iterator[Finding]:
        holds = 2 * self.units <= Fraction(epsilon) * Fraction(self.scale)
        yield Finding("epsilon", holds, "2 units / scale <= epsilon")


@dataclass(frozen=True)
class WideRelease(LaplaceRelease):
    """Half of the information for the same promise: a toy."""

    name: ClassVar[str] = "wide"
    mechanisms: ClassVar = (WideMechanism,)

    def release(self, total: int, size: int | None = None) -> float:
        return LaplaceRelease(self.epsilon / 2, self.batch).release(total, size)

    def fast(self) -> NamedTuple:  # type: ignore[override]
        return LaplaceRelease(self.epsilon / 2, self.batch).fast()

    def guarantee(self) -> Guarantee:
        law = WideMechanism(self.batch, UNITS, laplace_scale(self.epsilon / 2))
        return self.promise("twice the noise", law, lambda delta: self.epsilon)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(WideRelease)
    yield
    del RELEASES["wide"], MECHANISMS["wide"]


def test_it_is_certified_accounted_for_and_attacked_like_our_own() -> None:
    release = WideRelease(1.0, 1)
    policy = bd.PrivateBandit(2, 1.0, release=release, learner="htinf")
    certificate = policy.certificate()
    assert certificate["mechanism"] == "wide"
    findings = verify(to_text(certificate))
    assert all(finding.holds for finding in findings), findings
    assert tight_epsilon(release.guarantee(), 1e-9) < 0.6
    result = audit_policy(policy, batches=2000, runs=300)
    assert result.passed
    assert result.epsilon < 0.6
    assert RELEASES[release.to_dict()["name"]] is WideRelease


def test_names_are_given_once() -> None:
    with pytest.raises(InputError, match="there is a 'wide' already"):
        register(WideRelease)


def test_what_was_never_registered_cannot_be_certified() -> None:
    del MECHANISMS["wide"]
    with pytest.raises(InputError, match="nothing to certify"):
        bd.PrivateBandit(2, 1.0, release=WideRelease(1.0, 1), learner="htinf").certificate()
    MECHANISMS["wide"] = WideMechanism
