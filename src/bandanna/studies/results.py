"""The folder a study's results live in, and what is in it as polars frames."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bandanna._core.documents import to_text, write_whole
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.studies.cell import Shard, Skipped
from bandanna.studies.play import Played
from bandanna.studies.schema import AXES

if TYPE_CHECKING:
    import polars as pl

FORMAT = "bandanna study 6"
RELEASED = ("mean", "low", "high")
INDEX, PARTS = "study.json", "parts"


class ResultsFolder:
    """One Parquet file for each cell, named by its content, and an index of the study's cells."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def check(self, keys: Iterable[str]) -> None:
        """Refuse a folder that belongs to something else than these cells; nothing is written."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path} is a file; results need a folder.")
        index = self.path / INDEX
        if not index.exists():
            if any(self.path.iterdir()):
                raise InputError(
                    f"{self.path} is not empty and has no {INDEX}, so it holds something else; "
                    f"choose another folder."
                )
            return
        theirs = [key for key in self.read_index()["cells"] if self.has(key)]
        if theirs and set(keys).isdisjoint(theirs):
            raise InputError(
                f"{self.path} holds the results of another study: they have no cell in common. "
                f"Choose another folder, or delete this one."
            )

    def write_index(self, content: JSON) -> None:
        """Say which study the folder belongs to."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / INDEX, to_text({"format": FORMAT, **content}))
        except OSError as error:
            raise InputError(f"cannot write to {self.path}: {error.strerror or error}.") from None

    def read_index(self) -> JSON:
        """Return what the index says."""
        index = self.path / INDEX
        try:
            data = json.loads(index.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"{self.path} holds no results of a study: {error.strerror or error}."
            ) from None
        except ValueError:
            data = None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(f"{index} is damaged or of another version.")
        return data

    def has(self, key: str) -> bool:
        """Whether a cell has been run."""
        return self._file(key).exists()

    def write(self, key: str, frame: pl.DataFrame) -> None:
        """Keep a cell's results, whole or not at all."""
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write_whole(self._file(key), buffer.getvalue())

    def read(self, key: str) -> pl.DataFrame:
        """Return a cell's results."""
        import polars as pl

        path = self._file(key)
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError):
            raise _damaged(path) from None

    def has_part(self, part: Shard) -> bool:
        """Whether these runs of a cell have been played."""
        return self._part(part).exists()

    def write_part(self, part: Shard, played: Played) -> None:
        """Keep some runs of a cell until all of them are there."""
        buffer = io.BytesIO()
        arrays: JSON = {**played.runs, "plays": played.plays, "same": json.dumps(played.same)}
        np.savez(buffer, **arrays)
        self._part(part).parent.mkdir(exist_ok=True)
        write_whole(self._part(part), buffer.getvalue())

    def read_part(self, part: Shard) -> Played:
        """Return some runs of a cell."""
        path = self._part(part)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            plays, same = arrays.pop("plays"), json.loads(str(arrays.pop("same")))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise _damaged(path) from None
        return Played(arrays, plays, same)

    def drop_parts(self, parts: Iterable[Shard]) -> None:
        """Forget parts of a cell that is whole now."""
        for part in parts:
            self._part(part).unlink(missing_ok=True)
        with suppress(OSError):  # there are others
            (self.path / PARTS).rmdir()

    def _part(self, part: Shard) -> Path:
        return self.path / PARTS / f"{part.key}.npz"

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.parquet"


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged; delete it and run the study again.")


@dataclass(frozen=True)
class StudyResults:
    """The finished cells of a study.

    Examples
    --------
    >>> import tempfile
    >>> import bandanna as bd
    >>> where = {"environment": ["bernoulli"], "rounds": [100], "arms": [2]}
    >>> study = bd.Study({"algorithm": ["uniform"], **where}, replicates=2)
    >>> results = study.run(tempfile.mkdtemp(), workers=1)
    >>> results.missing, results.table()["algorithm"].to_list()
    (0, ['uniform'])
    """

    folder: ResultsFolder
    index: JSON

    @classmethod
    def read(cls, path: str | Path) -> StudyResults:
        """Open a results folder."""
        folder = ResultsFolder(path)
        return cls(folder, folder.read_index())

    @property
    def missing(self) -> int:
        """How many cells have not been run yet."""
        return sum(not self.folder.has(key) for key in self.index["cells"])

    @property
    def environments(self) -> JSON:
        """What is known of each environment, by its label: its file, arms, experts and range."""
        places: JSON = self.index["places"]
        return places

    @property
    def skipped(self) -> list[Skipped]:
        """The combinations that cannot apply, with the reason."""
        return [Skipped(values, reason) for values, reason in self.index["skipped"]]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Everything: a row for each cell and checkpoint, with the regret of every run."""
        import polars as pl

        done = [self.folder.read(key) for key in self.index["cells"] if self.folder.has(key)]
        if not done:
            raise InputError(f"{self.folder.path} holds no finished cell yet.")
        return pl.concat(done)

    def curves(self) -> pl.DataFrame:
        """Return regret at every checkpoint: mean, standard error and quantiles."""
        return self.frame.drop("regret", "shares", "released", "guarantee")

    def table(self) -> pl.DataFrame:
        """Return one row for each cell: final regret, also as a share of uniform play's."""
        import polars as pl

        last = self.curves().filter(pl.col("round") == pl.col("rounds")).drop("round")
        share = pl.when(pl.col("uniform") > 0).then(pl.col("mean") / pl.col("uniform"))
        return last.with_columns(share_of_uniform=share)

    def shares(self) -> pl.DataFrame:
        """Return each arm's mean share of the rounds so far; arms are counted from 0."""
        return self._by_arm("shares", "round").rename({"shares": "share"})

    def released(self) -> pl.DataFrame:
        """Return each arm's mean loss as a private policy's releases tell it, at the end.

        The mean over runs, and the ends of an interval with 95% of them; losses from 0 to 1.
        """
        import polars as pl

        entries = {name: pl.col("released").list.get(i) for i, name in enumerate(RELEASED)}
        return self._by_arm("released", "best_arm").with_columns(**entries).drop("released")

    def _by_arm(self, kept: str, beside: str) -> pl.DataFrame:
        """Return a row for each arm of what is kept as a list."""
        import polars as pl

        arms = pl.int_ranges(pl.col(kept).list.len()).alias("arm")
        chosen = self.frame.filter(pl.col(kept).is_not_null())
        return chosen.select("cell", *AXES, beside, arms, kept).explode("arm", kept)

    def guarantees(self) -> dict[str, Guarantee]:
        """Return what each cell's policy promises where it is not simulated, by cell."""
        once = self.frame.unique("cell", maintain_order=True)
        return {
            cell: Guarantee(**promise | {"assumptions": tuple(promise["assumptions"])})
            for cell, promise in once.select("cell", "guarantee").iter_rows()
        }
