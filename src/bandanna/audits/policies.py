"""Attacks on whole policies, through everything an observer sees: decisions and published values.

Three attacks together. Canaries, one in each batch of one long run, measure the release inside
the policy. Many short runs on neighbouring inputs look for what canaries do not tell. And the
search for a side door shows whether anything but what was published depends on a loss.
"""

from __future__ import annotations

from dataclasses import dataclass

from bandanna._core.types import InputError
from bandanna.audits.attack import NO_PROOF, SIGNIFICANCE, AuditResult
from bandanna.audits.canary import audit_canaries
from bandanna.audits.door import side_door
from bandanna.audits.runs import audit_runs
from bandanna.policies import Policy


@dataclass(frozen=True)
class PolicyAudit:
    """What the attacks on a policy found."""

    claimed: float
    significance: float
    attacks: dict[str, AuditResult]
    side_door: str
    """How losses show other than through what is published; empty if they do not."""

    @property
    def epsilon(self) -> float:
        """Lower bound on the true epsilon; above it with probability at most ``significance``."""
        return max((result.epsilon for result in self.attacks.values()), default=0.0)

    @property
    def passed(self) -> bool:
        """Whether the claim survived; that proves nothing."""
        return self.epsilon <= self.claimed and not self.side_door

    def __str__(self) -> str:
        lines = [
            f"{'passed' if self.passed else 'FAILED'}: epsilon is at least {self.epsilon:.4g} "
            f"(claimed {self.claimed:g}, significance {self.significance:g})"
        ]
        lines += [f"{name}: {result.event}" for name, result in self.attacks.items()]
        lines.append(f"side door: {self.side_door or 'none found'}")
        return "\n".join([*lines, NO_PROOF] if self.passed else lines)


def audit_policy(
    policy: Policy,
    *,
    batches: int = 20_000,
    runs: int = 1000,
    significance: float = SIGNIFICANCE,
    exact: bool = False,
    seed: int = 0,
) -> PolicyAudit:
    """Attack fresh copies of a policy, with experts or without.

    Parameters
    ----------
    policy
        A private policy; it is left alone.
    batches
        How many canaries, in one long run.
    runs
        How many short runs, on either input.
    significance
        Probability with which the bound may exceed the true epsilon.
    exact
        Use the noise that protects people instead of seeded noise.
    seed
        For the coins, the arms and the seeded noise.
    """
    promise = policy.guarantee
    if not promise.private or promise.epsilon == 0:
        raise InputError("this policy promises nothing that could fail: there is nothing to audit.")
    half = significance / 2  # so that both together are wrong no more often than stated
    tried = {
        "canaries": audit_canaries(
            policy, batches=batches, significance=half, exact=exact, seed=seed
        ),
        "short runs": audit_runs(policy, runs=runs, significance=half, exact=exact, seed=seed),
    }
    attacks = {name: result for name, result in tried.items() if result is not None}
    return PolicyAudit(promise.epsilon, significance, attacks, side_door(policy, seed=seed))
