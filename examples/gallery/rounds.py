import altair as alt

import bandanna as bd

rows = [
    {"rounds": rounds, "epsilon": f"{epsilon:g}", "regret": bd.plan(4, rounds, epsilon).best.share}
    for epsilon in (0.1, 0.3, 1.0)
    for rounds in (10**3, 10**4, 10**5, 10**6)
]
chart = alt.Chart(alt.Data(values=rows), width=360, height=220).mark_line(point=True)
chart.encode(
    x=alt.X("rounds:Q", scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=4)),
    y=alt.Y(
        "regret:Q",
        title="guaranteed regret",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(type="log"),
    ),
    color="epsilon:N",
).save("rounds.svg")
