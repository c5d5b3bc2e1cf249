"""A clinical trial that learns as it goes, and can show that it protected its patients.

The patients and outcomes are those of ACTG 175, four HIV treatments. First the trial is rehearsed
many times by simulation, then run once with the noise that protects people, and its guarantee is
written to certificate.json for the ethics board to check with `bandanna verify`.

python examples/clinical_trial.py [PATIENTS [REHEARSALS]]
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import bandanna as bd
from bandanna.environments import TREATMENTS, ClinicalTrial, trial_outcomes


def main(patients: int = 20_000, rehearsals: int = 200) -> None:
    """Rehearse, run, certify."""
    trial = bd.PrivateBandit(list(TREATMENTS), epsilon=1.0, rounds=patients)
    rehearsal = bd.simulate(
        {
            "private": trial,
            "no privacy": bd.Bandit(list(TREATMENTS)),
            "no learning": bd.Bandit(list(TREATMENTS), learner="uniform"),
        },
        ClinicalTrial(patients),
        replicates=rehearsals,
    )
    print(rehearsal)

    given = run(trial, patients)
    for treatment, count in given.most_common():
        print(f"{count / patients:6.1%}  {treatment}")

    Path("certificate.json").write_text(json.dumps(trial.certificate(), indent=1), encoding="utf-8")
    print("Check the promise: bandanna verify certificate.json")


def run(trial: bd.PrivateBandit, patients: int) -> Counter[str]:
    """Treat patients one by one; an outcome is that of someone who really had the treatment."""
    rng = np.random.default_rng(0)
    treatments, events = trial_outcomes()
    given: Counter[str] = Counter()
    for _ in range(patients):
        decision = trial.decide()
        trial.observe(decision, loss=rng.choice(events[treatments == decision.index]))
        given[str(decision.arm)] += 1
    return given


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
