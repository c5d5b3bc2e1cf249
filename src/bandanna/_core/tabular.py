"""Results as a table: a data frame, or what any library reads through Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, overload

from bandanna._core.types import InputError

if TYPE_CHECKING:
    import polars as pl
    from narwhals.typing import IntoDataFrame

Cell = str | int | float | bool | None
Library = Literal["polars", "pandas", "pyarrow"]


class Tabular:
    """Something with rows: ``to_frame`` gives a data frame of them."""

    def _records(self) -> Sequence[Mapping[str, Cell]]:
        """Return the rows; nothing stands where a row lacks a column."""
        raise NotImplementedError

    @overload
    def to_frame(self, library: Literal["polars"] = "polars") -> pl.DataFrame: ...

    @overload
    def to_frame(self, library: Library) -> IntoDataFrame: ...

    def to_frame(self, library: Library = "polars") -> IntoDataFrame:
        """Return it as a data frame of ``"polars"``, ``"pandas"`` or ``"pyarrow"``.

        Libraries that read Arrow streams take the object itself: ``pyarrow.table(results)``.
        """
        if library == "polars":
            return self._frame()
        import narwhals as nw

        missing = False
        try:
            columns = self._frame().to_dict(as_series=False)
            made: IntoDataFrame = nw.from_dict(columns, backend=library).to_native()
            return made
        except (ImportError, ValueError):
            missing = True
        assert missing
        raise InputError(
            f'to_frame makes frames of "polars", "pandas" or "pyarrow", if that is installed; got '
            f"{library!r}."
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return it as an Arrow stream, for any library that reads these."""
        return self._frame().__arrow_c_stream__(requested_schema)

    def _frame(self) -> pl.DataFrame:
        import polars as pl

        rows = self._records()
        kinds = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
        schema = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            seen = {type(row.get(name)) for row in rows} - {type(None)}
            schema[name] = kinds[seen.pop()] if len(seen) == 1 else pl.Float64
        return pl.DataFrame([dict(row) for row in rows], schema=schema)
