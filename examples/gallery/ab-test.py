import altair as alt

import bandanna as bd

world = bd.environments.Bernoulli([0.60, 0.57, 0.54, 0.48], 20_000)
policies = {
    "bandit": bd.PrivateBandit(list("ABCD"), 1.0, 20_000),
    "A/B test": bd.PrivateBandit(list("ABCD"), 1.0, 20_000, "ab-test"),
}
results = bd.simulate(policies, world, replicates=20)
rows = [
    {"policy": name, "version": version, "people": float(people)}
    for name in policies
    for version, people in zip("ABCD", results.plays(name).mean(axis=0), strict=True)
]
chart = alt.Chart(alt.Data(values=rows), width=330, height=90).mark_bar()
chart.encode(x="people:Q", y=alt.Y("policy:N", title=None), color="version:N").save("ab-test.svg")
