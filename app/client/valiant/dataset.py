"""Datasets: described, previewed, downloaded, deleted."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import frames
from .operation import M, operation
from .record import Record
from .steps import Sink, Steps
from .summary_table import SummaryTable

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
SHEET = "name", "kind", "missing", "distinct", "minimum", "median", "maximum"
"""Fields of a column that a summary shows."""
BY_SUFFIX = {".csv": CSV, ".parquet": PARQUET, ".arrow": frames.ARROW}


class Dataset(Record[M]):
    """One immutable table of the service."""

    id: str
    name: str
    file_format: str
    created_at: str
    size_bytes: int
    rows: int
    digest: str
    columns: list[dict[str, Any]]
    reading: dict[str, Any] | None
    warnings: list[str]

    def as_reference(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<Dataset {self.name or self.id}: {self.rows} rows, {len(self.columns)} columns>"

    def overview(self) -> SummaryTable:
        """The data sheet: one row for each column."""
        rows = [[column.get(name) for name in SHEET] for column in self.columns]
        title = f"{self.name or self.id}: {self.rows} rows, {len(self.columns)} columns"
        return SummaryTable(title, SHEET, rows, self.warnings)

    @operation
    def preview(self, limit: int = 10, offset: int = 0, columns: Sequence[str] | None = None) -> Steps[dict[str, Any]]:
        """A window of the table: `columns`, and `data` row by row."""
        query = {"limit": limit, "offset": offset, "columns": columns}
        page: dict[str, Any] = yield from self._json("GET", "datasets", self.id, "rows", query=query)
        return page

    @operation
    def download(self, path: str | Path) -> Steps[Path]:
        """Write the table to a file, streamed: CSV, Parquet or an Arrow stream by the end of its name."""
        target = Path(path)
        if target.suffix not in BY_SUFFIX:
            raise ValueError(f"The name of the file must end with one of {', '.join(BY_SUFFIX)}.")
        yield from save(self, target, "datasets", self.id, "file", accept=BY_SUFFIX[target.suffix])
        return target

    @operation
    def frame(self, like: Any = None) -> Steps[Any]:
        """The table of pyarrow; with `like`, the frame that was uploaded, the same kind of frame with its types."""
        headers = {"Accept": frames.ARROW}
        reply = yield from self._send("GET", "datasets", self.id, "file", headers=headers)
        table = frames.unpacked(reply.body)
        return table if like is None else frames.restored(like, table)

    @operation
    def delete(self) -> Steps[None]:
        """Refused while an unfinished job needs it."""
        yield from self._send("DELETE", "datasets", self.id)


def save(record: Record[Any], target: Path, *parts: object, accept: str, **options: Any) -> Steps[None]:
    """Stream a response into a file, which has its name only when it is complete."""
    partial = target.with_name(f"{target.name}.part")
    with partial.open("wb") as file:
        yield from record._send("GET", *parts, headers={"Accept": accept}, sink=into(file), **options)  # noqa: SLF001
    partial.replace(target)


def into(file: Any) -> Sink:
    def begin() -> Callable[[bytes], bool]:
        file.seek(0)
        file.truncate()
        return lambda chunk: file.write(chunk) < 0

    return begin
