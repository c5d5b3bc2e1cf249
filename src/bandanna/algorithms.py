"""The catalogue: one row an algorithm, what it is tuned by and what it promises.

``register`` adds a row, also from outside the package; a bandit algorithm that can follow experts
gets a row with experts under the same name. ``resolve`` finds the algorithm for what is said of
the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from bandanna._core import checks
from bandanna._core.types import JSON, InputError, Model
from bandanna.spec import Constants, Problem, parameters
from bandanna.theory import (
    adaptive,
    batched_exp4,
    exp3,
    exp4,
    ftpl,
    htinf,
    phases,
    stationary,
    tsallis,
)
from bandanna.theory.exp3 import CHANGES
from bandanna.theory.tuning import (
    Bound,
    TooFewRoundsError,
    Tuning,
    Weights,
    learner,
    named_learner,
    release,
    smallest,
)


@dataclass(frozen=True)
class Algorithm:
    """One row of the catalogue.

    Attributes
    ----------
    name, line, source
        What people call it, one line about it, and whose it is.
    bound
        Its guarantee for a problem and, unless it is ``as_published``, for a batch, where None
        asks for the best. None where nothing is proved; ``InputError`` where it does not apply.
    tune
        What it runs with, for the same. Left out, its bound's settings.
    release, learner
        Their names; a learner is tuned by its name when another release or batch is put in.
    as_published
        Whether bound and tuning are for a batch of its own only.
    private, local
        Whether it promises anything, and whether it always releases every loss by itself.
    grows
        Whether it decides itself how long each batch is, from what was released before.
    follows
        Whether it can run with an expert for every arm although it grows.
    unproved
        Where there is no bound, why.
    with_experts, needs_rounds, needs_delta
        Whether experts advise; whether the horizon must be known; whether delta must be above 0.
    late
        Whether its bound and tuning cover late feedback, the problem's ``delay``.
    delta
        What it spends of the problem's delta.
    over
        The bandit algorithm that it runs with an expert for every arm.
    ours
        The same algorithm tuned to constants of ours, where it runs with the paper's.
    constants
        Whose constants it runs with; None where there is one choice.
    comparison
        Whether only comparisons need it: it runs by name, and plans and help leave it out.
    """

    name: str
    line: str
    source: Literal["ours", "the paper", "prior work", "baseline", "no privacy"]
    bound: Callable[..., Bound] | None = None
    tune: Callable[..., Tuning] | None = None
    release: str = "laplace"
    learner: str = "exp3"
    as_published: bool = False
    private: bool = True
    local: bool = False
    with_experts: bool = False
    grows: bool = False
    follows: bool = False
    unproved: str = "none is proved."
    needs_rounds: bool = True
    needs_delta: bool = False
    late: bool = False
    delta: Callable[[Problem], float] = lambda problem: 0.0
    over: Algorithm | None = None
    ours: Algorithm | None = None
    constants: Constants | None = None
    comparison: bool = False

    @property
    def replaceable(self) -> bool:
        """Whether learner, release and batch can be replaced: the paper's Algorithm 1 takes any."""
        return self.private and not self.grows and (not self.with_experts or self.over is not None)

    @property
    def versions(self) -> tuple[Algorithm, ...]:
        """The row itself, and the one with constants of ours."""
        return (self,) if self.ours is None else (self, self.ours)

    def with_constants(self, constants: str | None) -> Algorithm:
        """Return the row that runs with these constants; its own unless they are given."""
        if constants is None:
            return self
        rows = [row for row in self.versions if row.constants == constants]
        if not rows:
            same = [
                row.name
                for row in algorithms(with_experts=self.with_experts)
                if row.ours and not row.comparison
            ]
            raise InputError(
                f"constants= is for {', '.join(same)}, which run with the paper's constants or "
                f"with ours; {self.name} has no such choice."
            )
        return rows[0]

    def model(self, batch: int | None) -> Model:
        """Return who sees feedback, as the release of such a batch promises it.

        In batches of one every loss is released by itself, unless it is spread over experts.
        """
        if not self.private:
            return "none"
        if self.grows:
            return "central"
        return "local" if self.local or (batch == 1 and self.release != "vector") else "central"

    def bounded(self, problem: Problem, batch: int | None = None) -> Bound:
        """Return its guarantee, or raise ``InputError`` with the reason why there is none."""
        if self.over is not None:
            bound = self.over.bounded(problem.over_experts(), batch)
            terms = {term.replace("K", "N"): value for term, value in bound.terms.items()}
            return replace(bound, terms=terms, source=f"{bound.source}, over experts")
        if self.bound is None:
            raise InputError(self.unproved)
        if problem.delay and not self.late:
            raise InputError("none is proved for late feedback.")
        bound = self.bound(problem) if self.as_published else self.bound(problem, batch)
        if batch not in (None, bound.batch):
            raise InputError(f"no bound is known for it in batches of {batch}.")
        return bound

    def tuned(self, problem: Problem, batch: int | None = None) -> Tuning:
        """Return its parts; ``InputError`` where the problem is too small, with what is enough."""
        if self.needs_rounds:
            problem.horizon(self.name, "one-bit, adaptive or htinf")
        if self.over is not None:
            tuning = self.over.tuned(problem.over_experts(), batch)
            alone = {key: value for key, value in tuning.release.items() if key != "squares"}
            return tuning._replace(release=alone)  # squares are released of arms
        if not self.late:
            problem = problem.but(delay=0)
        try:
            return self._tuned(problem, batch)
        except TooFewRoundsError as error:
            enough = self._enough(problem, batch)
            raise InputError(f"{error} {enough} rounds are enough.") from None

    def _tuned(self, problem: Problem, batch: int | None) -> Tuning:
        if self.as_published and batch is not None:
            through = release(self.release, problem, batch)
            return Tuning(named_learner(self.learner, problem, through), through)
        if self.tune is not None:
            return self.tune(problem) if self.as_published else self.tune(problem, batch)
        bound = self.bounded(problem, batch)
        settings: JSON = {**bound.settings}
        settings.pop("noise", None)
        if self.with_experts:
            settings["experts"] = problem.experts
        parts = learner(self.learner, problem.arms, **settings)
        return Tuning(parts, release(self.release, problem, bound.batch))

    def _enough(self, problem: Problem, batch: int | None) -> int:
        """Return a number of rounds that is enough, though perhaps not the smallest."""

        def works(rounds: int) -> bool:
            try:
                self._tuned(problem.but(rounds=rounds), batch)
            except TooFewRoundsError:
                return False
            return True

        return smallest(works, problem.rounds or 1)


def conversion(algorithm: Algorithm) -> Algorithm:
    """Return the same algorithm with every expert an arm (the paper's Algorithm 6 over 1)."""
    return replace(
        algorithm,
        line=f"{algorithm.name} with every expert an arm",
        with_experts=True,
        over=algorithm,
        ours=None if algorithm.ours is None else conversion(algorithm.ours),
    )


def with_ours(paper: Algorithm, bound: Callable[..., Bound], **changes: Any) -> Algorithm:
    """Return the paper's row, with the same one for any batch, tuned to constants of ours."""
    whose = {"line": "tuned to our constants", "source": "ours", "constants": "ours"}
    how = {"bound": bound, "tune": None, "as_published": False, "needs_rounds": True}
    ours = replace(paper, **whose, **how | changes)  # type: ignore[arg-type]
    return replace(paper, constants="paper", ours=ours)


_published = partial(Algorithm, as_published=True)
_plain = partial(_published, source="no privacy", release="plain", private=False)
_exp4 = partial(Algorithm, learner="exp4", with_experts=True)
_local_exp4 = partial(_exp4, local=True)


BANDITS = (
    Algorithm(
        "one-bit",
        "our one-bit release and Tsallis-INF, which gains where losses are easy",
        "ours",
        tsallis.one_bit_bound,
        tsallis.one_bit,
        release="one-bit",
        learner="tsallis-inf",
        needs_rounds=False,
    ),
    Algorithm(
        "one-bit-exp3",
        "our one-bit release and centred EXP3: the smallest guarantee for few arms",
        "ours",
        exp3.one_bit_bound,
        exp3.one_bit_exp3,
        release="one-bit",
        needs_rounds=False,
        late=True,
    ),
    Algorithm(
        "one-bit-tsallis",
        "our one-bit release and centred Tsallis-INF: the smallest guarantee for many arms",
        "ours",
        tsallis.one_bit_tsallis_bound,
        tsallis.one_bit_tsallis,
        release="one-bit",
        learner="tsallis-inf",
    ),
    Algorithm(
        "adaptive",
        "long Laplace batches, a learner that gains on predictable losses, and a net",
        "ours",
        adaptive.adaptive_bound,
        adaptive.adaptive,
        learner="adaptive",
        needs_rounds=False,
    ),
    Algorithm(
        "dp-klucb",
        "for steady losses (Azize and others 2025), with a guard of ours",
        "prior work",
        tune=stationary.dp_klucb,
        learner="dp-klucb",
        grows=True,
        follows=True,
        needs_rounds=False,
        unproved="it is for arms whose distributions do not change, and has none for others.",
    ),
    Algorithm(
        stationary.RACE,
        "for steady losses: finds the best arm with a stated confidence, then plays it",
        "ours",
        tune=stationary.race,
        learner="race",
        grows=True,
        needs_rounds=False,
        unproved="it is for arms whose distributions do not change; its confidence is proved.",
    ),
    Algorithm(
        "phased",
        "phases with few releases, randomised round by round, and a guard",
        "ours",
        tune=phases.phased,
        learner="phased",
        grows=True,
        needs_rounds=False,
        unproved=phases.PHASED_UNPROVED,
    ),
    Algorithm(
        "phased-net",
        "phases after a pilot, with a net that keeps a bound on regret where that says something",
        "ours",
        phases.phased_bound,
        phases.phased_net,
        learner="phased",
        grows=True,
        needs_rounds=False,
    ),
    Algorithm(
        "ab-test",
        "explore 20% of the rounds evenly, one release an arm, then the best arm",
        "baseline",
        tune=phases.ab_test,
        learner="ab-test",
        grows=True,
        unproved=phases.AB_TEST_UNPROVED,
    ),
    with_ours(
        _published(
            "htinf",
            "HTINF and Laplace noise",
            "the paper",
            htinf.paper_bound,
            htinf.paper,
            learner="htinf",
            needs_rounds=False,
        ),
        htinf.tight_bound,
    ),
    with_ours(
        _published("exp3", "EXP3 and Laplace noise", "the paper", exp3.paper_bound, exp3.paper),
        exp3.tight_bound,
    ),
    with_ours(
        _published(
            "ftpl",
            "FTPL and Laplace noise",
            "the paper",
            ftpl.paper_bound,
            ftpl.paper,
            learner="ftpl",
        ),
        ftpl.tight_bound,
    ),
    with_ours(
        _published(
            "ldp-exp3",
            "EXP3 on single noisy losses (Agarwal and Singh 2017)",
            "prior work",
            exp3.local_bound,
            exp3.local,
            local=True,
            comparison=True,
        ),
        exp3.local_tight_bound,
    ),
    _plain(
        "no-privacy",
        "Tsallis-INF on the losses themselves",
        bound=tsallis.no_privacy_bound,
        tune=lambda p: Tuning(learner("tsallis-inf", p.arms), release("plain", p, 1)),
        learner="tsallis-inf",
        needs_rounds=False,
    ),
    _plain(
        "uniform",
        "any arm, every one as often",
        tune=lambda p: Tuning(learner("uniform", p.arms), release("plain", p, 1)),
        learner="uniform",
        needs_rounds=False,
        comparison=True,
    ),
)

WITH_EXPERTS = (
    _local_exp4(
        "one-bit-exp4",
        "centred EXP4 on one bit a round",
        "ours",
        exp4.one_bit_bound,
        release="one-bit",
        late=True,
    ),
    with_ours(
        _local_exp4(
            "local-exp4",
            "EXP4 on single noisy losses",
            "the paper",
            exp4.local_bound,
            exp4.local,
            as_published=True,
        ),
        exp4.tight_bound,
    ),
    with_ours(
        _exp4(
            "batched-exp4",
            "EXP4 on a batch's estimate for every expert",
            "the paper",
            batched_exp4.paper_bound,
            batched_exp4.paper,
            release="vector",
            needs_delta=True,
            delta=lambda problem: problem.delta,
            as_published=True,
        ),
        batched_exp4.calibrated_bound,
        tune=batched_exp4.calibrated,
        needs_delta=False,
        delta=batched_exp4.calibrated_delta,
    ),
    _plain(
        "no-privacy",
        "EXP4 on the losses themselves",
        bound=exp4.no_privacy_bound,
        tune=exp4.no_privacy,
        learner="exp4",
        with_experts=True,
    ),
    _plain(
        "uniform",
        "any arm, whatever is advised",
        tune=lambda p: Tuning(exp4.learner(p, Weights(1.0, 1.0)), release("plain", p, 1)),
        learner="exp4",
        with_experts=True,
        needs_rounds=False,
        comparison=True,
    ),
    _plain(
        "random-expert",
        "a new expert each round",
        tune=lambda p: Tuning(learner("uniform", p.experts), release("plain", p, 1)),
        learner="uniform",
        with_experts=True,
        needs_rounds=False,
        comparison=True,
    ),
)


DEFAULT = "phased-net"
"""What a private bandit runs unless told otherwise."""

IN_PARTS = "one-bit"
"""Whose learner, release or batch a private bandit replaces unless an algorithm is named."""

AUTO = "auto"
"""With experts: what runs unless an algorithm is named; see ``Plan.auto``."""

_ROWS: dict[tuple[bool, str], Algorithm] = {}


def register(algorithm: Algorithm) -> None:
    """Add an algorithm under a name that is not taken.

    Examples
    --------
    See ``CONTRIBUTING.md``, and ``tests/theory/test_catalogue.py`` for a toy.
    """
    rows = [algorithm]
    converts = algorithm.replaceable or algorithm.follows
    if converts and not algorithm.with_experts and not algorithm.local:
        rows.append(conversion(algorithm))
    for row in rows:
        if (row.with_experts, row.name) in _ROWS or row.name == AUTO:
            raise InputError(f"there is an algorithm {row.name!r} already.")
    _ROWS.update({(row.with_experts, row.name): row for row in rows})


def algorithms(*, with_experts: bool) -> list[Algorithm]:
    """Return every algorithm for bandits, or for bandits with expert advice; private ones first."""
    rows = [row for (flag, _), row in _ROWS.items() if flag == with_experts]
    return sorted(rows, key=lambda row: not row.private)


def names(*, with_experts: bool, private: bool | None = None, comparison: bool = True) -> list[str]:
    """Return their names; of the private ones, of the others, or of all.

    Without ``comparison`` those are left out that only comparisons need.
    """
    rows = algorithms(with_experts=with_experts)
    asked = [row for row in rows if private is None or row.private == private]
    return [row.name for row in asked if comparison or not row.comparison]


def contestants(*, with_experts: bool, comparison: bool = True) -> list[str]:
    """Return what can be compared by name: all of them, and with experts also ``auto``."""
    rows = names(with_experts=with_experts, comparison=comparison)
    return [*([AUTO] if with_experts else []), *rows]


def find(name: str, *, with_experts: bool, constants: str | None = None) -> Algorithm:
    """Return an algorithm by name, with the paper's constants or ours where it has both."""
    if (with_experts, name) not in _ROWS:
        usual = ", ".join(contestants(with_experts=with_experts, comparison=False))
        where = "with experts there" if with_experts else "there"
        raise InputError(f"unknown algorithm {name!r}; {where} are {usual}.")
    return _ROWS[with_experts, name].with_constants(constants)


def needs_epsilon(name: str) -> bool:
    """Whether a name stands for something private."""
    rows = [row for (_, own), row in _ROWS.items() if own == name]
    return any(row.private for row in rows) or name == AUTO


def has_constants(name: str) -> bool:
    """Whether a name stands for an algorithm that runs with the paper's constants or with ours."""
    return any(row.ours is not None for (_, own), row in _ROWS.items() if own == name)


for _row in (*BANDITS, *WITH_EXPERTS):
    register(_row)


STEADY, ANY, CHANGING = "steady", "any", "changing"
FOLLOW_CHANGES = ("adaptive", "one-bit-exp3")
"""Algorithms that can be told how often the best arm changes."""
DEFAULT_WHY = (
    "Nothing was said of losses: over ordinary experiments phased-net loses the least on average, "
    "and it finds an arm that becomes the best while it is hardly played, though later than "
    "losses='any' does."
)
WITHOUT_ROUNDS = (
    "Without rounds= nothing is promised, and changes are seen the later the longer it runs."
)
ALGORITHMS: dict[str, tuple[str, str]] = {
    ANY: (
        "adaptive",
        "Losses may be anything: adaptive keeps to three times the smallest guarantee where that "
        "says something; in ordinary experiments it loses about three times what the default does.",
    ),
    STEADY: (
        "phased-net",
        "Losses are steady: phased-net without probes and without a net; if an arm becomes the "
        "best that is not played any more, it is never found.",
    ),
    CHANGING: (
        "adaptive",
        "The best arm changes: adaptive with a short memory follows it; if one arm stays the best, "
        "that costs several times the default's regret.",
    ),
}
"""For each world, the algorithm, and why and at which price."""
WITH_EXPERTS_WARNING = (
    "It does not see an expert that it has stopped following become the best, and no bound on its "
    "regret is proved."
)
EXPERT_ALGORITHMS: dict[str, tuple[str, str]] = {
    ANY: (AUTO, "Losses may be anything."),
    STEADY: (
        "dp-klucb",
        f"Losses are steady: dp-klucb with every expert an arm. {WITH_EXPERTS_WARNING}",
    ),
    CHANGING: (
        "adaptive",
        "The best expert changes: adaptive with a short memory follows it.",
    ),
}
"""The same with experts: what ``bandanna reproduce experts`` measured."""


def resolve(
    algorithm: str | None, losses: str | None, problem: Problem, *, in_parts: bool = False
) -> tuple[str, Problem, str]:
    """Return the algorithm for a world or as named, the problem with its changes, and why.

    ``in_parts`` says that parts are given.
    """
    if losses is None and in_parts:
        algorithm = algorithm or (AUTO if problem.with_experts else IN_PARTS)
    if losses is algorithm is None and not problem.with_experts:
        if (problem.changes, problem.memory) != (None, None):
            losses = CHANGING
        elif problem.arms <= checks.MOST_ARMS_IN_PHASES:
            unknown = "" if problem.rounds is not None else f" {WITHOUT_ROUNDS}"
            return DEFAULT, problem, f"{DEFAULT_WHY}{unknown}"
    if losses is None and algorithm is not None:
        check_changes(algorithm, problem)
        return algorithm, problem, f"{algorithm} was asked for."
    losses = losses or ANY
    parameters()["losses"].check(losses)
    if algorithm is not None:
        raise InputError(f"losses={losses!r} chooses the algorithm; leave out {algorithm!r}.")
    name, why = (EXPERT_ALGORITHMS if problem.with_experts else ALGORITHMS)[losses]
    if losses == CHANGING and (problem.changes, problem.memory) == (None, None):
        problem = problem.but(changes=CHANGES)
        problem.horizon("losses='changing' without memory=", instead="memory=")
    check_changes(name, problem)
    return name, problem, why


def check_changes(name: str, problem: Problem) -> None:
    """Refuse numbers that an algorithm would not use."""
    if problem.changes is not None and name not in FOLLOW_CHANGES:
        raise InputError(f"changes= is for {' and '.join(FOLLOW_CHANGES)}; {name} does not use it.")
    if problem.memory is not None and name != "adaptive":
        raise InputError(f"memory= is for adaptive; {name} does not use it.")
