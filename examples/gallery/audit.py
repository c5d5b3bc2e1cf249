import altair as alt
import numpy as np

import bandanna as bd

rng = np.random.default_rng(5)


def noisy(value, epsilon):
    """Add whole noise that is good for an epsilon."""
    share = 1 - np.exp(-epsilon)
    return lambda draws: value + rng.geometric(share, draws) - rng.geometric(share, draws)


rows = []
for claimed, true in ((0.5, 0.5), (1.0, 1.0), (1.5, 1.5), (0.5, 1.0)):
    found = bd.audit(noisy(0, true), noisy(1, true), claimed, draws=100_000)
    verdict = "survives" if found.passed else "disproved"
    rows.append({"claimed epsilon": claimed, "found by attack": found.epsilon, "claim": verdict})
points = alt.Chart(alt.Data(values=rows), width=320, height=200).mark_point(filled=True, size=120)
points = points.encode(
    x="claimed epsilon:Q", y="found by attack:Q", color="claim:N", shape="claim:N"
)
line = alt.Chart(alt.Data(values=[{"at": 0}, {"at": 1.6}])).mark_line(color="grey")
line = line.encode(
    x=alt.X("at:Q", title="claimed epsilon"), y=alt.Y("at:Q", title="found by attack")
)
(points + line).save("audit.svg")
