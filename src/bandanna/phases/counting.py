"""Counting a phase: who counts in it, and what their facts add up to.

With ``per_person`` someone counts in the first phases they are met in, and in no more. Who has been
counted is kept with what was released: computed again from tables that have been pruned since,
someone would count again. So the list is fetched first, and facts are added up for those on it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from bandanna._core.types import JSON
from bandanna.counted import Counted
from bandanna.phases.definition import Definition
from bandanna.warehouse import count, count_units
from bandanna.warehouse.source import Exposures


def count_phase(
    definition: Definition, phase: JSON, lists: Sequence[bytes]
) -> tuple[Counted, bytes | None]:
    """Count a phase where the data is; also the list of who was counted, where that matters."""
    source = definition.source(phase["number"], phase["since"], phase["until"])
    if definition.per_person is None:
        arm, outcome = definition.arm, definition.outcome
        found = count(source, arm=arm, outcome=outcome, loss_range=definition.outcome_range)
        return found.counted, None
    return _with_list(source, definition, lists)


def _with_list(
    source: Exposures, definition: Definition, lists: Sequence[bytes]
) -> tuple[Counted, bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    slots = definition.per_person or 1

    def who(units: pa.Table) -> pa.Table:
        """Return those who have a slot left."""
        had = [parquet.read_table(io.BytesIO(one)) for one in lists]
        if not had:
            return units
        times = pa.concat_tables(had).group_by("unit").aggregate([("unit", "count")])
        out = times.filter(pa.compute.greater_equal(times["unit_count"], slots))
        return units.join(out.select(["unit"]), "unit", join_type="left anti")

    counted, units = count_units(
        source, who, definition.arm, definition.outcome, definition.outcome_range
    )
    written = io.BytesIO()
    parquet.write_table(units.select(["unit"]), written)
    return counted, written.getvalue()
