"""Counting a phase: who counts in it, and what their facts add up to.

With ``per_person`` someone counts in the first phases they are met in, and in no more. Who has been
counted is kept with what was released: computed again from tables that have been pruned since,
someone would count again. So the list is fetched first, and facts are added up for those on it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bandanna._core.types import JSON
from bandanna.counted import Counted
from bandanna.phases.definition import Definition
from bandanna.warehouse import check_columns, count, count_exposed, count_units

if TYPE_CHECKING:
    import pyarrow as pa


class InTables:
    """Who was met in a phase, and what came of it, as tables say."""

    def __init__(
        self, definition: Definition, lists: Sequence[bytes], before: Callable[[int], None]
    ) -> None:
        self._definition, self._before = definition, before
        self._lists = [*lists]
        self.listed: list[bytes] = []
        """Lists of who was counted, that were not there yet."""

    def check(self) -> None:
        """Refuse tables that lack what is to be counted; no row of them is read."""
        source = self._definition.source(0, None, None)
        check_columns(source, self._definition.arm, self._definition.outcomes)

    def came(self, phase: JSON, until: str) -> int:
        """Return how many were met until then."""
        source = self._definition.source(phase["number"], phase["since"], until)
        return count_exposed(source, self._definition.arm)

    def counted(self, phase: JSON) -> list[Counted]:
        """Count a phase; ``before`` is called first."""
        definition = self._definition
        self._before(int(phase["number"]))
        source = definition.source(phase["number"], phase["since"], phase["until"])
        arm, outcomes = definition.arm, definition.outcomes
        if definition.per_person is None:
            return [
                count(source, arm=arm, outcome=name, loss_range=ends).counted
                for name, ends in outcomes.items()
            ]
        from pyarrow import parquet

        totals, units = count_units(source, self._with_a_slot, arm, outcomes)
        written = io.BytesIO()
        parquet.write_table(units.select(["unit"]), written)
        self._lists.append(written.getvalue())
        self.listed.append(written.getvalue())
        return totals

    def _with_a_slot(self, units: pa.Table) -> pa.Table:
        """Return those who have a slot left."""
        import pyarrow as pa
        from pyarrow import parquet

        had = [parquet.read_table(io.BytesIO(one)) for one in self._lists]
        if not had:
            return units
        times = pa.concat_tables(had).group_by("unit").aggregate([("unit", "count")])
        slots = self._definition.per_person or 1
        out = times.filter(pa.compute.greater_equal(times["unit_count"], slots))
        return units.join(out.select(["unit"]), "unit", join_type="left anti")
