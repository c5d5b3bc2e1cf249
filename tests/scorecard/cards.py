"""A scorecard with everything on it; its numbers are made up."""

from __future__ import annotations

from bandanna.scorecard.card import Scorecard
from bandanna.scorecard.view import Check, Effect, Metric, Moment, Recommendation

BOUGHT = Metric(
    "bought",
    (
        Effect("green", 12_040, 0.102, verdict="control"),
        Effect("blue", 27_915, 0.106, 0.004, 0.0021, 0.0056, 0.038, 0.021, 0.054, "better"),
        Effect("<b>red", 8_355, 0.101, -0.001, -0.0045, 0.0028, -0.009, -0.046, 0.027),
    ),
    times=100,
)
REFUNDS = Metric(
    "refunds",
    (
        Effect("green", 12_040, 0.011, verdict="control"),
        Effect("blue", 27_915, 0.0115, 0.0005, -0.0012, 0.0022, 0.045, -0.11, 0.21, "kept"),
        Effect("<b>red", 8_355, 0.014, 0.003, 0.001, 0.0052, verdict="open"),
    ),
    times=100,
    goal="less",
    limit=0.003,
)
CARD = Scorecard(
    Recommendation("ship", "blue", "Ship blue: it is better than green", "The rule."),
    (BOUGHT, REFUNDS),
    0.95,
    0.5,
    0.0,
    "the feedback of any one person",
    "Provided chance decided who met which arm.",
    "For one look.",
    health=(Check("division", True, "Divided as planned."), Check("cut", False, "1 in 100 cut.")),
    groups=(("basic", BOUGHT),),
    moments=(
        Moment(1_000, None, 0.0, 0.0, (0.4, 0.4, 0.2)),
        Moment(9_000, 0.03, -0.02, 0.08, (0.3, 0.6, 0.1)),
        Moment(48_310, 0.038, 0.021, 0.054, (0.2, 0.7, 0.1)),
    ),
    followed="blue",
)
