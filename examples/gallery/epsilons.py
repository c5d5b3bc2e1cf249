import altair as alt
import numpy as np

import bandanna as bd

rng = np.random.default_rng(2)
arm = rng.choice(["A", "B"], size=20_000)
log = {"arm": arm, "clicked": rng.random(20_000) < np.where(arm == "B", 0.24, 0.20)}
rows = []
for epsilon in (0.02, 0.1, 0.5, 2.0):
    found = bd.answer(log, arm="arm", outcome="clicked", epsilon=epsilon, reward=True)
    rows += [
        {"epsilon": f"{epsilon:g}", "arm": one.name, "low": one.low, "high": one.high}
        for one in found.arms
    ]
chart = alt.Chart(alt.Data(values=rows), width=360, height=150).mark_bar(height=10, opacity=0.8)
chart.encode(
    y=alt.Y("epsilon:N", sort=None),
    yOffset="arm:N",
    x=alt.X("low:Q", title="95% interval of clicks", scale=alt.Scale(zero=False)),
    x2="high:Q",
    color="arm:N",
).save("epsilons.svg")
