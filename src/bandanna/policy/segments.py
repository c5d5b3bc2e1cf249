"""One policy for each public segment: a country, a device, a clinic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any, Never, Protocol, TypeVar

from bandanna._core.html import paragraph
from bandanna._core.private_inputs import private_feedback
from bandanna._core.types import (
    JSON,
    ArmName,
    Decision,
    DecisionError,
    Guarantee,
    InputError,
    StateFileError,
    no_guarantee,
    without_frames,
)
from bandanna.policy.answers import Answer, Comparison
from bandanna.policy.base import BasePolicy
from bandanna.policy.diagnostics import CONFIDENCE
from bandanna.policy.facade import DAMAGE, reason_of
from bandanna.policy.files import claim_within, write_state
from bandanna.policy.policy import Policy
from bandanna.policy.summary import Summary
from bandanna.policy.transitions import as_decision
from bandanna.privacy.certificate import together

ONE_SEGMENT = (
    "each person stays in one segment; what is promised to someone in several is the sum of what "
    "these promise"
)


class Segments(Mapping[ArmName, Any]):
    """Policies side by side, each for a segment that is public.

    Rounds of different segments are disjoint, and so are people who stay in theirs: what each
    policy promises holds for all of them together, at no further cost. Segments learn nothing from
    each other: where the same arm is best in all of them, one policy for all learns sooner.
    ``docs/people.md`` compares the two, and the segment as a feature of ``bd.PrivateContextual``.

    Parameters
    ----------
    policy_for
        Makes the policy of a segment, by its name; or policies by segment, such as loaded ones.
    names
        The segments, where ``policy_for`` makes their policies: texts or whole numbers.

    Examples
    --------
    >>> import bandanna as bd
    >>> shops = bd.Segments(lambda country: bd.PrivateBandit(3, epsilon=1.0), ["de", "fr"])
    >>> decision = shops.decide(segment="fr")
    >>> shops.observe(decision, loss=0.2)
    >>> shops["fr"].decided, shops["de"].decided, shops.guarantee.epsilon
    (1, 0, 1.0)
    """

    def __init__(
        self,
        policy_for: Callable[[ArmName], BasePolicy] | Mapping[ArmName, BasePolicy],
        names: Iterable[ArmName] | None = None,
    ) -> None:
        if isinstance(policy_for, Mapping):
            if names is not None:
                raise InputError("policies by segment have their names; leave names out.")
            self._policies: dict[ArmName, BasePolicy] = dict(policy_for)
        else:
            a_class = isinstance(policy_for, type) and issubclass(policy_for, BasePolicy)
            if a_class or not callable(policy_for):
                kind = "a class" if a_class else type(policy_for).__name__
                raise InputError(
                    f"Segments needs a function that makes the policy of a segment, since each has "
                    f"its own: bd.Segments(lambda name: bd.PrivateBandit(...), names); got "
                    f"{kind}."
                )
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise InputError(f"names must be a list of segments; got {names!r}.")
            listed = list(names)
            if len(set(listed)) != len(listed):
                raise InputError("segments must have different names.")
            self._policies = {name: policy_for(name) for name in listed}
        if not self._policies:
            raise InputError("there must be at least one segment.")
        for name, policy in self._policies.items():
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise InputError(f"segments are texts or whole numbers; got {name!r}.")
            if not isinstance(policy, BasePolicy):
                raise InputError(f"segment {name!r} needs a policy; got {type(policy).__name__}.")
        if len({id(policy) for policy in self._policies.values()}) < len(self._policies):
            raise InputError("each segment needs a policy of its own.")

    def __getitem__(self, segment: ArmName) -> Any:
        policy = self._policies.get(segment)
        if policy is None:
            choices = ", ".join(map(repr, self._policies))
            raise InputError(f"unknown segment {segment!r}; there are {choices}.")
        return policy

    def __iter__(self) -> Iterator[ArmName]:
        return iter(self._policies)

    def __len__(self) -> int:
        return len(self._policies)

    def decide(
        self,
        advice: object = None,
        *,
        segment: ArmName,
        person: str | int | None = None,
        eligible: Iterable[ArmName] | Mapping[ArmName, bool] | None = None,
        **known: float,
    ) -> Decision:
        """Choose an arm for the next round of a segment, with its advice or context.

        Where its policy has ``adjust``, ``before=`` is taken too.
        """
        decision: Decision = self[segment].decide(advice, person=person, eligible=eligible, **known)
        return decision

    @private_feedback
    def observe(
        self,
        decision: Decision | Mapping[str, object],
        *unnamed: Never,
        loss: float | None = None,
        reward: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Take the feedback of a decision, which says whose it is."""
        maker = self._maker(decision)
        maker.observe(decision, *unnamed, loss=loss, reward=reward, metrics=metrics)

    def give_up(self, decision: Decision | Mapping[str, object]) -> None:
        """Count the default loss for feedback that has not come."""
        self._maker(decision).give_up(decision)

    def finish(self, person: str | int, *, segment: ArmName) -> None:
        """Close a person's slot in a segment."""
        self[segment].finish(person)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised in every segment: the weakest of what its policies promise."""
        return promise_together({name: one.guarantee for name, one in self._policies.items()})

    # --- what it tells of itself ----------------------------------------------------------

    def summary(self) -> BySegment[Summary]:
        """Return what each segment's policy has learned; it may be shown to anyone."""
        return BySegment({name: one.summary() for name, one in self.items()})

    def answer(self, *args: object, **asked: object) -> BySegment[Answer]:
        """Return which arm is best in each segment, and how sure that is.

        It takes what ``answer`` of the policies takes. Each answer has the confidence asked for;
        that all of them are right together has less.
        """
        return BySegment({name: one.answer(*args, **asked) for name, one in self.items()})

    def compare(
        self, first: ArmName, second: ArmName, confidence: float = CONFIDENCE, **asked: Any
    ) -> BySegment[Comparison]:
        """Return how the second arm differs from the first in each segment.

        It takes what ``compare`` of the policies takes.
        """
        comparisons = {}
        for name, one in self._policies.items():
            if not isinstance(one, Policy):
                raise InputError(f"segment {name!r} decides by context: nothing is compared there.")
            comparisons[name] = one.compare(first, second, confidence, **asked)
        return BySegment(comparisons)

    def certificate(self) -> JSON:
        """Return the certificates of all segments in one document, for ``bandanna verify``."""
        return together({str(name): one.certificate() for name, one in self._policies.items()})

    @property
    def decided(self) -> int:
        """Decisions made so far, in all segments."""
        return sum(policy.decided for policy in self._policies.values())

    @property
    def waiting(self) -> int:
        """Decisions whose feedback has not been observed, in all segments."""
        return sum(policy.waiting for policy in self._policies.values())

    @property
    def released(self) -> int:
        """Batches released so far, in all segments."""
        return sum(policy.released for policy in self._policies.values())

    def __repr__(self) -> str:
        names = list(map(str, self._policies))
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        return (
            f"<Segments: {len(names)} ({shown}), {self.decided} decided, {self.waiting} waiting, "
            f"{self.released} batches released>"
        )

    def _repr_html_(self) -> str:
        return paragraph(repr(self)) + self.summary()._repr_html_()

    # --- files ----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all segments to one JSON file, readable by its owner only.

        It holds the raw feedback of open batches: keep it as private as the feedback itself.
        """
        saved = [[name, policy.to_dict()] for name, policy in self._policies.items()]
        try:
            write_state(Path(path), {"kind": type(self).__name__, "segments": saved})
        except BaseException as error:
            raise without_frames(error) from None

    def _maker(self, decision: Decision | Mapping[str, object]) -> BasePolicy:
        identity = as_decision(decision).policy
        for policy in self._policies.values():
            if policy.made(identity):
                return policy
        raise DecisionError(f"no segment's policy is, or was, {identity!r}, which made this.")


Held = TypeVar("Held", bound=BasePolicy | Segments)


def resume(
    source: Path,
    data: JSON,
    read: Callable[[JSON], Held],
    *,
    epsilon: float | None,
    again: bool,
) -> Held:
    """Go on from the content of a file; ``bandanna.load`` says what the parameters are."""
    try:
        held = read(data)
    except StateFileError as error:
        raise StateFileError(f"{source}: {error}") from None
    except DAMAGE as error:
        raise StateFileError(f"{source} is damaged: {reason_of(error)}.") from None
    states = [one.state for one in (held.values() if isinstance(held, Segments) else [held])]
    before = [state.resumed for state in states]

    def promised(times: int) -> float:
        for state, earlier in zip(states, before, strict=True):
            state.resumed = earlier + times
        return held.guarantee.epsilon

    claim_within(source, data, promised, epsilon=epsilon, again=again)
    return held


class InNotebooks(Protocol):
    """What notebooks can show."""

    def _repr_html_(self) -> str:
        """Return HTML."""


Statement = TypeVar("Statement", bound=InNotebooks)


class BySegment(dict[ArmName, Statement]):
    """Something for each segment, which prints one after the other."""

    def __str__(self) -> str:
        return "\n".join(f"{name}:\n{indent(str(one), '  ')}" for name, one in self.items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(paragraph(str(name)) + one._repr_html_() for name, one in self.items())


def promise_together(promises: Mapping[ArmName, Guarantee] | Mapping[str, Guarantee]) -> Guarantee:
    """Return what segments promise together: the weakest of their promises."""
    for name, promise in promises.items():
        if not promise.private:
            return no_guarantee(f"segment {name!r}: {promise.mechanism}", promise.because)
    weakest = max(promises.values(), key=lambda promise: (promise.epsilon, promise.delta))
    units = {promise.unit for promise in promises.values()}
    stated = dict.fromkeys(text for promise in promises.values() for text in promise.assumptions)
    kinds = list(dict.fromkeys(promise.protects for promise in promises.values()))
    return replace(
        weakest,
        delta=max(promise.delta for promise in promises.values()),
        protects="; or in other segments ".join(kinds),
        mechanism=f"in each of {len(promises)} segments its own, such as: {weakest.mechanism}",
        because=f"segments are disjoint (parallel composition); {weakest.because}",
        assumptions=(*stated, *([ONE_SEGMENT] if "person" in units else [])),
        facts={},
        curve=None,
        group=None,
        unit="person" if units == {"person"} else "round",
    )
