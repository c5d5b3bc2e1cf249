import altair as alt

import bandanna as bd

rows = [
    {"epsilon": epsilon, "sure": bd.PrivateBandit(2, epsilon, 10_000).guarantee.guess}
    for epsilon in (0.01, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
]
chart = alt.Chart(alt.Data(values=rows), width=360, height=200).mark_line(point=True)
chart.encode(
    x="epsilon:Q",
    y=alt.Y(
        "sure:Q",
        title="right at most",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0.5, 1.0]),
    ),
).save("guess.svg")
