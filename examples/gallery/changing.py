import bandanna as bd

world = bd.environments.Switching(3, 30_000, gap=0.3, bernoulli=True)
policies = {
    losses: bd.PrivateBandit(3, 1.0, 30_000, losses=losses) for losses in ("any", "changing")
}
results = bd.simulate(policies, world, replicates=20)
results.plot().properties(width=360, height=220).save("changing.svg")
