import bandanna as bd

policies = {f"epsilon {epsilon:g}": bd.PrivateBandit(4, epsilon, 20_000) for epsilon in (0.1, 1.0)}
policies["no privacy"] = bd.Bandit(4, "thompson")
results = bd.simulate(policies, bd.environments.Bernoulli(4, 20_000, gap=0.1), replicates=20)
results.plot().properties(width=360, height=220).save("price.svg")
