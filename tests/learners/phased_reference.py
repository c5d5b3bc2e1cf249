"""Phased a second time, with dense matrices and plain Python: slow, and close to its description.

Random numbers are drawn in the same order as the compiled learner draws them, so that both must
plan the same phases. It plays until the first alarm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import integrate

from bandanna._core.streams import Stream, normal, uniform


class AlarmError(Exception):
    """The order of arms has changed."""


class TextbookPhases:
    """Phases with a known horizon."""

    def __init__(
        self,
        arms: int,
        epsilon: float,
        rounds: int,
        stream: Stream,
    ) -> None:
        self.arms, self.epsilon, self.rounds, self.stream = arms, epsilon, rounds, stream
        self.phases: list[tuple[np.ndarray, np.ndarray]] = []
        self.t = 0
        self.looked = np.zeros(arms)
        self.wanted = np.zeros(arms)
        self.look = False

    # --- the model ------------------------------------------------------------------------

    def fit(self, phases: list[Any]) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return means, their covariance, the variance of a loss and of phase effects."""
        counts = np.array([n for n, _ in phases])
        means = np.array([x for _, x in phases])
        level = min(max((counts * means).sum() / counts.sum(), 0.01), 0.99)
        variance = level * (1 - level)
        prior = 4 / variance
        weights = self.weights(counts, variance)

        def solve(effects: float) -> tuple[np.ndarray, np.ndarray]:
            information = prior * np.eye(self.arms)
            evidence = np.full(self.arms, prior * level)
            for w, x in zip(weights, means, strict=True):
                k = effects / (1 + effects * w.sum())
                information += np.diag(w) - k * np.outer(w, w)
                evidence += w * x - k * w * (w @ x)
            covariance = np.linalg.inv(information)
            return covariance @ evidence, covariance

        fitted, covariance = solve(0.0)
        effects = 0.0
        if len(phases) >= 3:
            totals = weights.sum(1)
            residuals = (weights * (means - fitted)).sum(1) / totals
            found = np.mean(residuals**2 - 1 / totals)
            if found >= 2 * math.sqrt(2 / len(phases)) * np.mean(1 / totals):
                effects = float(found)
                fitted, covariance = solve(effects)
        return fitted, covariance, variance, effects

    def weights(self, counts: np.ndarray, variance: float) -> np.ndarray:
        n = np.maximum(counts, 1)
        noise = 2 / (self.epsilon * n) ** 2
        return np.where(counts > 0, 1 / (variance / n + noise), 0.0)

    # --- opening a phase ------------------------------------------------------------------

    def plan(self) -> np.ndarray:
        if not self.phases:
            return self._first()
        fitted, covariance, variance, effects = self.fit(self.phases)
        bold = 0.7 * math.sqrt(max(1 - self.t / self.rounds, 0.02))
        shares = self._shares(fitted, covariance, effects, bold)
        lead = int(shares.argmax())
        growth, most = (0.25, 0.025) if shares[lead] > 0.98 else (1.0, 0.03)
        size = min(max(growth * self.t, self._first_size()), most * self.rounds)
        settled = shares[lead] > 0.98
        if settled and self.wanted.any():
            size *= 0.5
        size = math.ceil(max(size, 2 / self.epsilon))
        if 0 < self.rounds - self.t < 1.5 * size:
            size = self.rounds - self.t
        worth = 8 if settled else 1
        if not settled:
            shares = self._gather(shares, lead, size)
        small = (shares * size * self.epsilon < worth) & (np.arange(self.arms) != lead)
        shares = np.where(small, 0, shares)
        planned = np.floor(shares / shares.sum() * size)
        planned[lead] += size - planned.sum()
        self._probe(planned, lead, size, fitted, variance)
        return self._opened(planned)

    def _gather(self, shares: np.ndarray, lead: int, size: float) -> np.ndarray:
        """Put the small shares of several phases in one, by systematic sampling."""
        least = min(8 / (self.epsilon**2 * size), 0.15)
        small = (shares > 0) & (shares < least) & (np.arange(self.arms) != lead)
        reached = np.cumsum(np.where(small, shares / least, 0.0))
        marks = np.floor(reached - uniform(self.stream)) + 1
        drawn = np.diff(marks, prepend=0) > 0
        return np.where(small, np.where(drawn, least, 0.0), shares)

    def _opened(self, planned: np.ndarray) -> np.ndarray:
        self.t += int(planned.sum())
        self.looked[planned > 0] = self.t
        self.look = False
        return planned

    def _first_size(self) -> int:
        least = self.arms * max(5 / self.epsilon**2, 12)
        most = self.arms * max(10 / self.epsilon**2, 120)
        size = max(least, min(0.033 * self.rounds, most))
        return math.ceil(max(min(size, 0.2 * self.rounds), 2))

    def _first(self) -> np.ndarray:
        size = self._first_size()
        some = min(max(size * self.epsilon // 2, 2), self.arms)
        each, more = divmod(size, some)
        planned = np.zeros(self.arms)
        for i in range(self.arms):
            if uniform(self.stream) * (self.arms - i) < some:
                planned[i] = each + (more > 0)
                some -= 1
                more -= 1
        return self._opened(planned)

    def _shares(
        self, fitted: np.ndarray, covariance: np.ndarray, effects: float, bold: float
    ) -> np.ndarray:
        errors = bold * np.sqrt(np.diag(covariance))
        near = fitted - 5 * errors <= (fitted + 5 * errors).min()
        shares = np.zeros(self.arms)
        if near.sum() == 1:
            shares[near] = 1.0
            return shares
        counts = np.array([n for n, _ in self.phases])
        means = np.array([x for _, x in self.phases])
        level = min(max((counts * means).sum() / counts.sum(), 0.01), 0.99)
        weights = self.weights(counts, level * (1 - level))
        diagonal = 4 / (level * (1 - level)) + weights.sum(0)
        if effects:
            between = np.diag(1 / effects + weights.sum(1)) - weights / diagonal @ weights.T
            root = np.linalg.cholesky(between)
        for _ in range(256):
            common = np.zeros(self.arms)
            if effects:
                drawn = np.array([normal(self.stream) for _ in self.phases])
                common = np.linalg.solve(root.T, drawn) @ weights / diagonal
            values = np.full(self.arms, np.inf)
            for i in np.flatnonzero(near):
                own = normal(self.stream) / math.sqrt(diagonal[i])
                values[i] = fitted[i] + bold * (own + common[i])
            shares[values.argmin()] += 1 / 256
        return shares

    def _probe(
        self, planned: np.ndarray, lead: int, size: float, fitted: np.ndarray, variance: float
    ) -> None:
        again = self.wanted.any()
        most = (0.3 if again else 0.15) * size
        budget = min((0.3 if again or self.look else 0.15) * size, planned[lead] - 1)
        order = np.roll(np.arange(self.arms), -int(uniform(self.stream) * self.arms))
        while True:
            often = 3.5 / self.rounds
            due = (self.t + size / 2 - self.looked) * often
            due += 1e6 * (self.wanted > 0) + 1.0 * self.look
            due[planned > 0] = -1
            arm = int(order[due[order].argmax()])
            if due[arm] < 1:
                return
            count = self.wanted[arm]
            if count == 0:
                count = self.enough(max(fitted[arm] - fitted[lead], 0) + 0.2, 2.9, variance)
            count = math.ceil(min(count, most))
            self.wanted[arm] = 0
            if count > budget:
                return
            planned[arm] = count
            planned[lead] -= count
            budget -= count

    def enough(self, gap: float, errors: float, variance: float) -> float:
        return errors * math.sqrt(2) / (self.epsilon * gap) + errors**2 * variance / gap**2

    # --- learning -------------------------------------------------------------------------

    def learn(self, counts: np.ndarray, values: np.ndarray) -> None:
        before = list(self.phases)
        self.phases.append((counts.copy(), np.where(counts > 0, values, 0.0)))
        if not before:
            return
        self._expect(before)
        _, _, variance, _ = self.fit(self.phases)
        for window in (1, 2, 4, 8):
            if window < len(self.phases):
                self._test(len(self.phases) - window, window, variance)

    def _expect(self, before: list[Any]) -> None:
        _, _, variance, effects = self.fit(before)
        counts, means = self.phases[-1]
        lead = int(counts.argmax())
        if before[-1][0][lead] == 0:
            return
        total = seen = 0.0
        for n, x in before[-3:]:
            if n[lead] > 0:
                w = 1 / (variance / n[lead] + 2 / (self.epsilon * n[lead]) ** 2 + effects)
                total, seen = total + w, seen + w * x[lead]
        error = variance / counts[lead] + 2 / (self.epsilon * counts[lead]) ** 2
        error = math.sqrt(error + effects + 1 / total)
        self.look = self.look or abs(means[lead] - seen / total) > 4 * error

    def _test(self, split: int, window: int, variance: float) -> None:
        lead = int(sum(n for n, _ in self.phases[split:]).argmax())  # type: ignore[union-attr]
        level = 0.005 / (4 * (self.arms - 1)) * 0.025
        for arm in range(self.arms):
            sides = []
            for side in (self.phases[:split], self.phases[split:]):
                pairs = [(n, x) for n, x in side if n[arm] > 0 and n[lead] > 0]
                w = np.array(
                    [
                        1
                        / sum(variance / n[i] + 2 / (self.epsilon * n[i]) ** 2 for i in (arm, lead))
                        for n, _ in pairs
                    ]
                )
                d = np.array([x[arm] - x[lead] for _, x in pairs])
                sides.append((w, d, [n for n, _ in pairs]))
            if arm == lead or not len(sides[0][0]) or not len(sides[1][0]):
                continue
            (wo, do, no), (wn, dn, nn) = sides
            old, new = float((wo * do).sum() / wo.sum()), float((wn * dn).sum() / wn.sum())
            gap = old - new
            if old <= 0 or new >= old / 2:
                continue
            if gap < 1.5 * math.sqrt(1 / wo.sum() + 1 / wn.sum()):
                continue
            parts = np.concatenate((wo / wo.sum(), wn / wn.sum()))
            played = np.array([[n[arm], n[lead]] for n in (*no, *nn)])
            chance = tail(gap, parts, played, variance, self.epsilon)
            if chance < level:
                raise AlarmError
            if window == 1:
                self.wanted[arm] = self.enough(0.8 * gap, 6, variance)


def tail(
    gap: float, parts: np.ndarray, played: np.ndarray, variance: float, epsilon: float
) -> float:
    """Return the chance of a sum of normal and Laplace errors above ``gap``, by inversion.

    Gil-Pelaez: ``P(S > x) = 1/2 - (1/pi) int sin(t x) phi(t) / t dt`` for a symmetric law.
    """
    normal_variance = float((parts[:, None] ** 2 * variance / played).sum())
    scales = (parts[:, None] / (epsilon * played)).ravel()

    def weigh(t: float) -> float:
        law = math.exp(-0.5 * t * t * normal_variance) / float(np.prod(1 + (t * scales) ** 2))
        return math.sin(t * gap) / t * law

    top = 12 / math.sqrt(normal_variance)
    found, _ = integrate.quad(weigh, 0, top, limit=2000, epsabs=1e-13)
    return max(0.5 - float(found) / math.pi, 0.0)


__all__ = ["AlarmError", "TextbookPhases", "tail"]
