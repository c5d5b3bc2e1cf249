"""What a report says first: the answer of a study in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from bandanna._core.types import JSON
from bandanna.simulation.baselines import NO_PRIVACY, shown_name
from bandanna.simulation.baselines import SAME as WITHOUT
from bandanna.studies.contexts import CONTEXTUAL, WITHOUT_PRIVACY
from bandanna.studies.results import StudyResults
from bandanna.studies.schema import AXES, SETTINGS

CLEAR = 3.0
"""Standard errors between two means that make the better one clearly better."""

SAME = [name for name, axis in AXES.items() if axis.shown.rivals_share]
"""Cells that agree in these are rivals."""


def winners(table: pl.DataFrame) -> pl.DataFrame:
    """Return the private cell with the smallest mean regret in each setting, and how clearly."""
    private = table.filter(pl.col("epsilon").is_not_null()).sort("mean")
    gap = pl.col("mean").get(1, null_on_oob=True) - pl.col("mean").first()
    errors = pl.col("standard_error").fill_nan(0)
    noise = (errors.first() ** 2 + errors.get(1, null_on_oob=True) ** 2).sqrt()
    return private.group_by(SAME, maintain_order=True).agg(
        pl.col("cell").first(),
        pl.col("algorithm").first(),
        rivals=pl.len() - 1,
        clear=gap > CLEAR * noise,
    )


def answer(table: pl.DataFrame) -> str:
    """Say who has the smallest regret, in how many settings, and what privacy costs.

    Environments are never mixed in one range of prices.
    """
    best = winners(table).filter(pl.col("rivals") > 0)
    if best.is_empty():
        return _only_one(table)
    counts = best.group_by("algorithm").agg(wins=pl.len(), clear=pl.col("clear").sum())
    name, wins, clear = counts.sort("wins", "algorithm", descending=[True, False]).row(0)
    settings = best.height
    where = "in the one setting compared" if settings == 1 else f"in {wins} of {settings} settings"
    how = "not clearly beyond the error of simulation" if clear == 0 else "clearly beyond error"
    how = f"in {clear} of them {how}" if 0 < clear < wins else how
    sentence = f"Among private algorithms, {name} has the smallest mean regret {where}, {how}"
    price = _price(table, name) if table["environment"].n_unique() == 1 else ""
    return f"{sentence}{price}."


def privacy_prices(table: pl.DataFrame) -> pl.DataFrame | None:
    """Return each private cell's mean regret over the strongest's without privacy.

    Both are in the same setting. The same algorithms without privacy are there too, where they
    were played; their epsilon is null.
    """
    same = [name for name in SAME if not AXES[name].shown.private]
    plain = table.filter(pl.col("algorithm") == NO_PRIVACY, pl.col("mean") > 0)
    plain = plain.unique(same).select(*same, plain="mean")
    twin = pl.col("algorithm").str.ends_with(WITHOUT)
    private = table.filter(pl.col("epsilon").is_not_null() | twin, pl.col("mean") > 0)
    joined = private.join(plain, on=same, nulls_equal=True).with_columns(
        price=pl.col("mean") / pl.col("plain")
    )
    return None if joined.is_empty() else joined


def _price(table: pl.DataFrame, name: str) -> str:
    prices = privacy_prices(table)
    if prices is None or (mine := prices.filter(pl.col("algorithm") == name)).is_empty():
        return ""
    price = pl.col("price")
    by_epsilon = mine.group_by("epsilon").agg(low=price.min(), high=price.max()).sort("epsilon")
    parts = [
        f"{_range(low, high)} times at epsilon {eps:g}" for eps, low, high in by_epsilon.iter_rows()
    ]
    own = prices.filter(pl.col("algorithm") == f"{name}{WITHOUT}")["price"]
    twin = ""
    if len(own):
        times = _range(float(own.min()), float(own.max()))  # type: ignore[arg-type]
        twin = f"; without privacy the same algorithm has {times} times that learner's"
    return f"; its regret is {listed(parts)} that of the strongest learner without privacy{twin}"


def _range(low: float, high: float) -> str:
    few, many = f"{low:.2g}", f"{high:.2g}"
    return few if few == many else f"{few} to {many}"


def _only_one(table: pl.DataFrame) -> str:
    row = table.sort("mean").row(0, named=True)
    return (
        f"The smallest mean regret is {row['mean']:,.0f} in {row['rounds']:,} rounds, "
        f"{row['algorithm']}'s in {row['environment']}; nothing private was compared."
    )


def listed(parts: list[str]) -> str:
    """Join words as one does."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


NOTHING = 0.95
"""Regret that is not clearly below this share of choosing at random's: nothing was learned."""

COMPARED = [name for name in SETTINGS if name not in ("environment", "batch")]
MOST_ARMS = 20


def usual(frame: pl.DataFrame, axes: Sequence[str]) -> JSON:
    """Return the setting to show first.

    Each value is chosen among those that occur with the ones before it.
    """
    setting: JSON = {}
    for axis in (axis for axis in SETTINGS if axis in axes):
        values = frame[axis].drop_nulls().unique(maintain_order=True).to_list()
        ordered = sorted(values)
        firsts = {"first": values[0], "middle": ordered[len(values) // 2], "largest": ordered[-1]}
        chosen = firsts[AXES[axis].shown.shown_first]
        setting[axis] = chosen
        frame = frame.filter((pl.col(axis) == chosen) | pl.col(axis).is_null())
    return setting


@dataclass(frozen=True)
class Headline:
    """The setting of an environment that the report speaks about first."""

    environment: str
    best: JSON
    """The private cell with the smallest mean regret."""
    plain: JSON | None
    """The strongest learner without privacy in the same setting."""
    same: JSON | None
    """The best private algorithm without privacy in the same setting."""
    others: list[JSON]
    """The same algorithm at other epsilons."""
    about: JSON
    """What the environment's arms and losses are."""

    @property
    def learned(self) -> bool:
        """Whether the private algorithm is clearly better than choosing at random."""
        return _clearly_learned(self.best)

    @property
    def words(self) -> str:
        """The answer in a few sentences."""
        best, rounds, setting = self.best, self.best["rounds"], self._setting
        mine, chance = (self._short(best[key]) for key in ("mean", "uniform"))
        if best["ran"] in CONTEXTUAL:
            random = f"Choosing at random loses {chance} more than that arm."
            return f"{self._by_context} {setting}. {random}"
        without = ""
        if self.plain is not None:
            without = f"; without privacy ({self.plain['ran']}) {self._short(self._base)}"
            if self.same is not None:
                without += f", the same algorithm {self._short(self.same['mean'])}"
        if self.plain is not None and not _clearly_learned(self.plain):
            return (
                f"Nothing is clearly learned in {rounds:,} rounds, with or without privacy: "
                f"{best['algorithm']} loses {mine} {self._unit}, "
                f"choosing at random {chance}{without}. The arms differ too little."
            )
        if not self.learned:
            return (
                f"Nothing is learned {setting}: no private algorithm clearly beats choosing at "
                f"random. The best, {best['algorithm']}, loses {mine} {self._unit}, choosing at "
                f"random {chance}{without}. More rounds, fewer arms, a narrower range of losses or "
                f"a larger epsilon would help."
            )
        against = "the best expert" if best["best_expert"] is not None else "the best arm"
        if self.plain is not None:
            against = shown_name(NO_PRIVACY, self.plain["ran"])
        return (
            f"{self._arm}. {self._price} Choosing at random loses {chance}, and "
            f"{best['algorithm']} gets {self._share(best):.0%} of the way from there to "
            f"{against}.{self._elsewhere}"
        )

    @property
    def _setting(self) -> str:
        return f"at epsilon {self.best['epsilon']:g} in {self.best['rounds']:,} rounds"

    @property
    def _by_context(self) -> str:
        """What deciding by context gains over the best single arm, with privacy and without."""
        mean = self.best["mean"]
        than = f"{'less' if mean < 0.0 else 'more'} than the best single arm"
        said = f"Deciding by context ({self.best['algorithm']}) loses {self._short(abs(mean))} "
        said += f"{self._unit} {than}"
        if self.same is not None:
            said += f" (without privacy {self._short(-self.same['mean'])} less)"
        return said

    @property
    def _price(self) -> str:
        """What privacy costs, compared with what, in one sentence."""
        if self.best["mean"] <= self._base:
            return f"Privacy costs nothing {self._setting}."
        cost = f"Privacy costs {self._cost(self.best)} {self._unit} {self._setting}"
        if self.plain is None:
            return f"{cost}."
        cost += f", compared with the strongest learner without privacy ({self.plain['ran']})"
        if self.same is None:
            return f"{cost}."
        own = max(0.0, self.best["mean"] - self.same["mean"])
        return f"{cost}, and {self._short(own)} compared with the same algorithm without privacy."

    @property
    def _base(self) -> float:
        return 0.0 if self.plain is None else float(self.plain["mean"])

    @property
    def _unit(self) -> str:
        outcome = self.about.get("outcome", "")
        return f"{outcome} per 1,000 rounds" if outcome else "per 1,000 rounds"

    @property
    def _arm(self) -> str:
        arm, name = self.best["best_arm"], self.best["algorithm"]
        if self.best["best_expert"] is not None:
            expert = called(self.about, self.best["best_expert"], "expert")
            return (
                f"{expert} is the best of {self.best['experts']} experts, and {name} has the "
                f"smallest regret of the private algorithms against it"
            )
        if arm is None:
            return f"{name} has the smallest regret of the private algorithms"
        plays = f"{name} plays it most in {self.best['found']:.0%} of the runs"
        sample = self.about.get("sample")
        if sample is not None and not (sample["clearly"] and sample["best"] == self._name(arm)):
            said = sample["sentence"].rstrip(".")
            return f"{said}. In the rehearsal {self._name(arm)} is the best, and {plays}"
        name = self._name(arm)
        name = name if self.about.get("arms") else name.capitalize()
        return f"{name} is the best of {self.best['arms']} arms, and {plays}"

    def _name(self, arm: int) -> str:
        return called(self.about, arm)

    @property
    def _elsewhere(self) -> str:
        """Say the same for other epsilons."""
        said = []
        for row in self.others:
            share = f"{self._share(row):.0%}" if _clearly_learned(row) else "nothing learned"
            said.append(f"{self._cost(row)} at epsilon {row['epsilon']:g} ({share})")
        return f" At other epsilons the cost is {listed(said)}." if said else ""

    def _share(self, row: JSON) -> float:
        distance = row["uniform"] - self._base
        share = (row["uniform"] - row["mean"]) / distance if distance > 0 else 0.0
        return min(1.0, float(share))

    def _cost(self, row: JSON) -> str:
        return self._short(max(0.0, row["mean"] - self._base))

    def _short(self, regret: float) -> str:
        """Write regret for 1,000 rounds."""
        number = 1000.0 * regret / self.best["rounds"]
        return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def leads(results: StudyResults) -> list[Headline]:
    """Return what to say first about each environment in which something private was run."""
    table, headlines = results.table(), []
    for (environment,), here in table.group_by("environment", maintain_order=True):
        private = here.filter(pl.col("epsilon").is_not_null())
        setting = usual(private, [axis for axis in COMPARED if private[axis].count() > 0])
        rivals = _alike(private, setting).sort("mean")
        if rivals.is_empty():
            continue
        best = rivals.row(0, named=True)
        problem = {axis: best[axis] for axis in COMPARED if axis not in ("epsilon", "delta")}
        alike = _alike(here, problem)
        plain = alike.filter(pl.col("algorithm") == NO_PRIVACY)
        twin = alike.filter(pl.col("algorithm") == f"{best['ran']}{WITHOUT}")
        if best["ran"] in CONTEXTUAL:  # without contexts is something else than without privacy
            plain = plain.clear()
            twin = _alike(here, {"algorithm": WITHOUT_PRIVACY, "rounds": best["rounds"]})
        others = _alike(alike, {"algorithm": best["algorithm"], "delta": best["delta"]})
        others = others.filter(pl.col("epsilon") != best["epsilon"]).unique("epsilon")
        headlines.append(
            Headline(
                str(environment),
                best,
                None if plain.is_empty() else plain.row(0, named=True),
                None if twin.is_empty() else twin.row(0, named=True),
                others.sort("epsilon").rows(named=True),
                results.environments.get(str(environment), {}),
            )
        )
    return headlines


def _alike(frame: pl.DataFrame, setting: JSON) -> pl.DataFrame:
    """Keep the rows with these values."""
    return frame.filter(*(pl.col(axis).eq_missing(value) for axis, value in setting.items()))


def called(about: JSON, index: int, what: str = "arm") -> str:
    """Return what an arm, or an expert, is called."""
    names = about.get(f"{what}s") or []
    return str(names[index]) if index < len(names) else f"{what} {index + 1}"


def arms_as_released(results: StudyResults, lead: Headline) -> list[list[str]]:
    """Return for each arm its mean outcome as the releases tell it, and how often it was played."""
    if lead.best["ran"] in CONTEXTUAL:  # what is released is of features, not of arms
        return []
    released = _alike(results.released(), {"cell": lead.best["cell"]})
    if released.is_empty() or released.height > MOST_ARMS or lead.best["best_arm"] is None:
        return []
    last = {"cell": lead.best["cell"], "round": lead.best["rounds"]}
    played = _alike(results.shares(), last).select("arm", "share")
    low, high = lead.about.get("range", (0.0, 1.0))
    reward = lead.about.get("reward", False)

    def in_units(loss: float) -> float:
        return float(high - loss * (high - low) if reward else low + loss * (high - low))

    rows = []
    each = released.select("arm", "mean", "low", "high").join(
        played, on="arm", how="left", maintain_order="left"
    )
    for arm, mean, *ends, share in each.iter_rows():
        said = ["never released", "-"]
        if mean is not None:
            first, second = sorted(in_units(end) for end in ends)
            said = [f"{in_units(mean):.3g}", f"{first:.3g} to {second:.3g}"]
        rows.append([called(lead.about, arm), *said, f"{share or 0.0:.1%}"])
    return rows


def _clearly_learned(row: JSON) -> bool:
    error = row["standard_error"]
    slack = 0.0 if error is None or error != error else 3.0 * error  # noqa: PLR0124  # NaN
    return bool(row["mean"] + slack < NOTHING * row["uniform"])
