import altair as alt

import bandanna as bd

rounds = bd.PrivateBandit(2, epsilon=0.1, rounds=100_000).guarantee
rows = [
    {"visits": k, "promise": "0.1 a round", "epsilon": rounds.for_group(k).epsilon}
    for k in range(1, 21)
]
person = bd.PrivateBandit(2, epsilon=0.5, delta=1e-6, rounds=100_000, per_person=20).guarantee
rows += [
    {"visits": k, "promise": "0.5 for up to 20 slots", "epsilon": person.epsilon}
    for k in range(1, 21)
]
chart = alt.Chart(alt.Data(values=rows), width=360, height=200).mark_line()
chart.encode(
    x="visits:Q", y="epsilon:Q", color=alt.Color("promise:N", legend=alt.Legend(orient="bottom"))
).save("people.svg")
