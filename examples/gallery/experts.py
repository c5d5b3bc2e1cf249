import bandanna as bd

world = bd.environments.OneGoodExpert(16, 3, 10_000)
policies = {
    "private": bd.PrivateExperts(16, 3, epsilon=1.0, rounds=10_000),
    "no privacy": bd.Experts(16, 3, 10_000),
    "any rule": bd.Experts(16, 3, learner="random-expert"),
}
results = bd.simulate(policies, world, replicates=10)
results.plot().properties(width=360, height=220).save("experts.svg")
