"""What a policy can start from: the releases of a finished log, as ``bd.answer`` makes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.types import JSON, ArmName, InputError

MOST_ROWS, MOST_SQUARE = 1e15, 0.25
KEYS = {"arms", "scale", "loss_range", "reward"}
EXPECTED = (
    "start_from must be what bd.answer returned for a log, or its to_dict(), which is what "
    "bandanna answer --json writes"
)


def part_within(log: float, run: float) -> float:
    """Return the part of a log's sums whose noise is no larger than the run's, given both scales.

    Examples
    --------
    >>> part_within(4.0, 1.0), part_within(0.5, 1.0)
    (0.25, 1.0)
    """
    return min(1.0, run / log) if log > 0.0 else 1.0


class StartArm(NamedTuple):
    """What was released of an arm of a log."""

    name: ArmName
    rows: float
    """Rows, or people, in its sums."""
    total: float
    """Its noisy sums of losses, added up, where a loss is a share of the range."""
    releases: float
    """How many sums there are."""
    square: float
    """The same of squares around 1/2; where none were released, the most they can be."""


@dataclass(frozen=True)
class Start:
    """Released sums of a log: the arms, the noise on them, and the certificate of the release."""

    arms: tuple[StartArm, ...]
    scale: float
    """Scale of the Laplace noise on each sum, in units of the loss as a share of the range."""
    loss_range: tuple[float, float]
    reward: bool
    """Whether large outcomes are good."""
    certificate: JSON = field(repr=False)

    @property
    def epsilon(self) -> float:
        """What the log cost, as its certificate says."""
        return float(self.certificate["epsilon"])

    def of(self, names: tuple[ArmName, ...]) -> dict[int, StartArm]:
        """Return what is known of arms with these names, by their index."""
        known = {arm.name: arm for arm in self.arms}
        return {index: known[name] for index, name in enumerate(names) if name in known}

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "arms": [list(arm) for arm in self.arms],
            "scale": self.scale,
            "loss_range": list(self.loss_range),
            "reward": self.reward,
            "certificate": self.certificate,
        }


def check_start(value: object) -> Start | None:
    """Require the answer of a log, or what its ``to_dict`` returned; None is none."""
    if value is None or isinstance(value, Start):
        return value
    if not isinstance(value, Mapping):
        begun = getattr(value, "start", None)
        if isinstance(begun, Start):
            return begun
        raise InputError(f"{EXPECTED}; got {type(value).__name__}.")
    inner = value.get("start", value)
    if not isinstance(inner, Mapping) or not set(inner) >= KEYS:
        raise InputError(f"{EXPECTED}; got a mapping without these entries: {sorted(KEYS)}.")
    certificate = inner.get("certificate", value.get("certificate"))
    if not isinstance(certificate, Mapping):
        raise InputError(f"{EXPECTED}; got one without its certificate.")
    try:
        arms = tuple(_arm(*one) for one in inner["arms"])
        scale = checks.within("scale", inner["scale"], 0.0, 1e9)
        names = {arm.name for arm in arms}
    except (TypeError, ValueError):
        raise InputError(f"{EXPECTED}; got arms that are not such.") from None
    if len(names) < len(arms):
        raise InputError("start_from names an arm twice.")
    ends = checks.loss_range(inner["loss_range"])
    return Start(arms, scale, ends, bool(inner["reward"]), dict(certificate))


def _arm(
    name: object, rows: object, total: object, releases: object, square: object = None
) -> StartArm:
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise InputError("start_from has an arm whose name is neither a text nor a whole number.")
    numbers = [checks.as_float(number) for number in (rows, total, releases)]
    numbers.append(MOST_SQUARE * numbers[0] if square is None else checks.as_float(square))
    good = all(map(math.isfinite, numbers)) and 1.0 <= numbers[2] <= numbers[0] <= MOST_ROWS
    if not good or max(abs(numbers[1]), abs(numbers[3])) > MOST_ROWS:
        raise InputError(f"start_from has impossible numbers for the arm {name!r}.")
    return StartArm(name, *numbers)
