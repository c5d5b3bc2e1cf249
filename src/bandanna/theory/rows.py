"""Every algorithm there is, one row each; conversions to experts are derived from the bandits'."""

from __future__ import annotations

from functools import partial

from bandanna.theory import (
    adaptive,
    batched_exp4,
    calibrated_exp4,
    exp3,
    exp4,
    ftpl,
    htinf,
    one_bit,
    stationary,
)
from bandanna.theory.algorithm import Algorithm
from bandanna.theory.noisy_weights import Weights
from bandanna.theory.tuning import Tuning, learner, release

_published = partial(Algorithm, as_published=True)
_plain = partial(_published, source="no privacy", release="plain", private=False)
_exp4 = partial(Algorithm, learner="exp4", advised=True)
_local_exp4 = partial(_exp4, local=True)
_with_delta = partial(
    _exp4, release="vector", needs_delta=True, delta=lambda problem: problem.delta
)

BANDITS = (
    Algorithm(
        "one-bit",
        "our one-bit release and Tsallis-INF, which gains where losses are easy",
        "ours",
        one_bit.one_bit_bound,
        one_bit.one_bit,
        release="one-bit",
        learner="tsallis-inf",
        needs_rounds=False,
    ),
    Algorithm(
        "one-bit-exp3",
        "our one-bit release and centred EXP3: the smallest guarantee for few arms",
        "ours",
        exp3.one_bit_bound,
        release="one-bit",
        late=True,
    ),
    Algorithm(
        "adaptive",
        "long Laplace batches and a learner whose regret follows its surprises",
        "ours",
        adaptive.adaptive_bound,
        adaptive.adaptive,
        learner="adaptive",
        needs_rounds=False,
    ),
    Algorithm(
        "tracking",
        "centred EXP3 that follows a best arm which changes, proved for any changes",
        "ours",
        exp3.tracking_bound,
        release="one-bit",
    ),
    Algorithm(
        "dp-klucb",
        "for steady losses (Azize and others 2025), with a guard of ours",
        "prior work",
        tune=stationary.dp_klucb,
        learner="dp-klucb",
        grows=True,
        needs_rounds=False,
        unproved="it is for losses drawn from one law for each arm, and has none for others.",
    ),
    _published(
        "htinf",
        "HTINF and Laplace noise",
        "the paper",
        htinf.paper_bound,
        htinf.paper,
        learner="htinf",
        needs_rounds=False,
    ),
    Algorithm(
        "htinf-tight",
        "the same, tuned to our constants",
        "ours",
        htinf.tight_bound,
        learner="htinf",
    ),
    _published("exp3", "EXP3 and Laplace noise", "the paper", exp3.paper_bound, exp3.paper),
    Algorithm("exp3-tight", "the same, tuned to our constants", "ours", exp3.tight_bound),
    _published(
        "ftpl",
        "FTPL and Laplace noise",
        "the paper",
        ftpl.paper_bound,
        ftpl.paper,
        learner="ftpl",
    ),
    Algorithm(
        "ftpl-tight",
        "the same, tuned to our constants",
        "ours",
        ftpl.tight_bound,
        learner="ftpl",
    ),
    _published(
        "ldp-exp3",
        "EXP3 on single noisy losses (Agarwal and Singh 2017)",
        "prior work",
        exp3.local_bound,
        exp3.local,
        local=True,
    ),
    Algorithm(
        "ldp-exp3-tight",
        "the same, tuned to our constants",
        "ours",
        exp3.local_tight_bound,
        local=True,
    ),
    _published(
        "dp-exp3-lap",
        "EXP3 on single noisy losses, clipped (Tossou and Dimitrakakis 2017)",
        "prior work",
        tune=exp3.clipped,
        local=True,
    ),
    _plain(
        "no-privacy",
        "Tsallis-INF on the losses themselves",
        bound=one_bit.no_privacy_bound,
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
    _local_exp4(
        "local-exp4",
        "EXP4 on single noisy losses",
        "the paper",
        exp4.local_bound,
        exp4.local,
        as_published=True,
    ),
    _local_exp4("local-exp4-tight", "the same, tuned to our constants", "ours", exp4.tight_bound),
    _with_delta(
        "batched-exp4",
        "EXP4 on a batch's estimate for every expert",
        "the paper",
        batched_exp4.paper_bound,
        batched_exp4.paper,
        as_published=True,
    ),
    _with_delta(
        "batched-exp4-tight",
        "the same, tuned to our constants",
        "ours",
        batched_exp4.tight_bound,
        batched_exp4.tight,
    ),
    _exp4(
        "calibrated-exp4",
        "the same with the least noise of three kinds",
        "ours",
        calibrated_exp4.calibrated_bound,
        calibrated_exp4.calibrated,
        release="vector",
        delta=calibrated_exp4.calibrated_delta,
    ),
    _plain(
        "no-privacy",
        "EXP4 on the losses themselves",
        bound=exp4.no_privacy_bound,
        tune=exp4.no_privacy,
        learner="exp4",
        advised=True,
    ),
    _plain(
        "uniform",
        "any arm, whatever is advised",
        tune=lambda p: Tuning(exp4.learner(p, Weights(1.0, 1.0)), release("plain", p, 1)),
        learner="exp4",
        advised=True,
        needs_rounds=False,
    ),
    _plain(
        "random-expert",
        "a new expert each round",
        tune=lambda p: Tuning(learner("uniform", p.experts), release("plain", p, 1)),
        learner="uniform",
        advised=True,
        needs_rounds=False,
    ),
)
