"""Options that say where to count: a file, a table of a database, or exposures and facts."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from bandanna._core.types import InputError
from bandanna.cli.options import columns_of

Log = Annotated[
    str | None,
    typer.Argument(
        help="A file (.csv, .csv.gz, .parquet), a folder or pattern of such, or the address of a "
        "database, such as duckdb:///shop.duckdb; or the file of an experiment in phases (.toml)."
    ),
]
InTable = Annotated[
    str | None, typer.Option("--table", help="In a database: the table, or a SELECT.")
]
Shown = Annotated[
    str | None,
    typer.Option("--exposures", help="Who met which arm, and when: a file, table or SELECT."),
]
Facts = Annotated[
    str | None, typer.Option("--facts", help="What happened to them, and when: the same.")
]
Unit = Annotated[
    str | None, typer.Option("--unit", help="In both: the column with whose row it is.")
]
Time = Annotated[str | None, typer.Option("--time", help="In both: the column with the time.")]
Window = Annotated[
    str | None, typer.Option("--window", help="How long after the first exposure facts count: 7d.")
]
Arms = Annotated[
    str | None, typer.Option("--arms", help="The arms there are, of exposures: control,green.")
]
ShowSql = Annotated[bool, typer.Option("--show-sql", help="Print the query, and do not ask it.")]


class Asked(NamedTuple):
    """What the options say."""

    log: str | None
    table: str | None = None
    exposures: str | None = None
    facts: str | None = None
    unit: str | None = None
    time: str | None = None
    window: str | None = None
    arms: str | None = None

    def source(self) -> object:
        """Return where to count."""
        from bandanna.warehouse import Exposures, Table

        needed = {
            "--exposures": self.exposures,
            "--facts": self.facts,
            "--unit": self.unit,
            "--time": self.time,
            "--window": self.window,
            "--arms": self.arms,
        }
        if self.exposures is None and self.facts is None:
            extra = [name for name in ("--unit", "--window", "--arms") if needed[name] is not None]
            if extra:
                raise InputError(f"{', '.join(extra)} goes with --exposures and --facts.")
            if self.log is None:
                raise InputError(
                    "name a log: a file, or the address of a database with --table; or give "
                    "--exposures and --facts."
                )
            return Table(self.log, self.table, self.time)
        missing = [name for name, value in needed.items() if value is None]
        if missing:
            raise InputError(f"exposures and facts also need {', '.join(missing)}.")
        return Exposures(
            self.exposures,
            self.facts,
            unit=str(self.unit),
            time=str(self.time),
            window=str(self.window),
            arms=tuple(columns_of(self.arms)),
            address=self.log,
        )
