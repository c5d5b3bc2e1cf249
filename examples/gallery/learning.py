import altair as alt
import numpy as np

import bandanna as bd

rng = np.random.default_rng(3)
bandit = bd.PrivateBandit(["A", "B", "C"], epsilon=1.0, rounds=20_000, seed=3)
rates = {"A": 0.3, "B": 0.35, "C": 0.45}
counts = {(block, arm): 0 for block in range(20) for arm in rates}
for visitor in range(20_000):
    decision = bandit.decide()
    bandit.observe(decision, reward=float(rng.random() < rates[decision.arm]))
    counts[visitor // 1000, decision.arm] += 1
rows = [
    {"thousand": block + 1, "arm": arm, "decisions": count}
    for (block, arm), count in counts.items()
]
chart = alt.Chart(alt.Data(values=rows), width=360, height=180).mark_bar()
chart.encode(
    x=alt.X("thousand:O", title="thousands of visitors"), y="decisions:Q", color="arm:N"
).save("learning.svg")
