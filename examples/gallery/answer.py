import altair as alt
import numpy as np

import bandanna as bd

rng = np.random.default_rng(1)
design = rng.choice(["old", "blue", "green"], size=30_000)
bought = rng.random(30_000) < np.select([design == "blue", design == "green"], [0.11, 0.14], 0.10)
found = bd.answer(
    {"design": design, "bought": bought}, arm="design", outcome="bought", epsilon=0.5, reward=True
)
rows = [
    {"design": arm.name, "bought": arm.mean, "low": arm.low, "high": arm.high} for arm in found.arms
]
base = alt.Chart(alt.Data(values=rows), width=360, height=120).encode(
    y=alt.Y("design:N", title=None)
)
bars = base.mark_rule(size=3).encode(
    x=alt.X("low:Q", title="share who bought", scale=alt.Scale(zero=False)), x2="high:Q"
)
(bars + base.mark_point(filled=True, size=90).encode(x="bought:Q")).save("answer.svg")
