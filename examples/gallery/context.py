import altair as alt
import numpy as np

import bandanna as bd

rng = np.random.default_rng(4)
policy = bd.PrivateContextual(
    ["discount", "gift"],
    {"age": (18, 90)},
    1.0,
    rounds=20_000,
    protects="context and feedback",
    seed=4,
)
rows = []
for person in range(20_000):
    age = float(rng.integers(18, 90))
    decision = policy.decide({"age": age})
    likes = 0.7 if (decision.arm == "discount") == (age < 50) else 0.2
    policy.observe(decision, reward=float(rng.random() < likes))
    if person >= 15_000:
        rows.append({"age": age, "offer": decision.arm})
chart = alt.Chart(alt.Data(values=rows), width=360, height=180).mark_bar()
chart.encode(
    x=alt.X("age:Q", bin=alt.Bin(step=6)),
    y=alt.Y("count():Q", stack="normalize", title="share of offers"),
    color="offer:N",
).save("context.svg")
