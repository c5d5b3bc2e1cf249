"""One policy for each public segment: a country, a device, a clinic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from bandanna._core.types import (
    ArmName,
    Decision,
    DecisionError,
    Guarantee,
    InputError,
    no_guarantee,
)
from bandanna.policy.policy import Policy
from bandanna.policy.transitions import as_decision

ONE_SEGMENT = (
    "each person stays in one segment; what is promised to someone in several is the sum of what "
    "these promise"
)


class Segments(Mapping[ArmName, Policy]):
    """Policies side by side, each for a segment that is public.

    Rounds of different segments are disjoint, and so are people who stay in theirs: what each
    policy promises holds for all of them together, at no further cost.

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
        policy_for: Callable[[ArmName], Policy] | Mapping[ArmName, Policy],
        names: Iterable[ArmName] | None = None,
    ) -> None:
        if isinstance(policy_for, Mapping):
            if names is not None:
                raise InputError("policies by segment have their names; leave names out.")
            self._policies = dict(policy_for)
        else:
            if names is None or isinstance(names, str):
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
            if not isinstance(policy, Policy):
                raise InputError(f"segment {name!r} needs a policy; got {type(policy).__name__}.")
        if len({id(policy) for policy in self._policies.values()}) < len(self._policies):
            raise InputError("each segment needs a policy of its own.")

    def __getitem__(self, segment: ArmName) -> Policy:
        found = self._policies.get(segment)
        if found is None:
            known = ", ".join(map(repr, self._policies))
            raise InputError(f"unknown segment {segment!r}; there are {known}.")
        return found

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
        eligible: Iterable[ArmName] | None = None,
    ) -> Decision:
        """Choose an arm for the next round of a segment."""
        return self[segment].decide(advice, person=person, eligible=eligible)

    def observe(
        self,
        decision: Decision | Mapping[str, object],
        loss: float | None = None,
        *,
        reward: float | None = None,
    ) -> None:
        """Take the feedback of a decision, which says whose it is."""
        self._maker(decision).observe(decision, loss, reward=reward)

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

    def _maker(self, decision: Decision | Mapping[str, object]) -> Policy:
        identity = as_decision(decision).policy
        for policy in self._policies.values():
            if policy.made(identity):
                return policy
        raise DecisionError(f"no segment's policy is, or was, {identity!r}, which made this.")


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
