"""Reads a predictions file page by page: a few row groups in memory, or all rows mapped from disk."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.core.i18n import tr
from backend.contract.arrow_numbers import numbers

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

PAGES_KEPT = 8
"""Row groups in memory; at about 5,000 rows each some ten megabytes."""
FILTER_ROWS = 20_000
"""Above this the helper process filters and sorts."""


class TablePages:
    """One Parquet file, read one row group at a time. Raises OSError or ValueError if it cannot be read."""

    def __init__(self, path: Path | str) -> None:
        # pyarrow takes 26 MB and a quarter of a second: only who looks at predictions pays.
        import pyarrow.parquet as parquet

        self.path = Path(path)
        self._file = parquet.ParquetFile(self.path)
        metadata = self._file.metadata
        schema = self._file.schema_arrow
        self.columns: list[str] = list(schema.names)
        self.types: dict[str, pa.DataType] = dict(zip(schema.names, schema.types, strict=True))
        self.row_count: int = metadata.num_rows
        self._starts = [0]
        for group in range(metadata.num_row_groups):
            self._starts.append(self._starts[-1] + metadata.row_group(group).num_rows)
        self._pages: OrderedDict[int, pa.Table | pa.RecordBatch] = OrderedDict()
        self._mapped: Any = None

    @property
    def is_mapped(self) -> bool:
        """Whether every row can be read without decompression."""
        return self._mapped is not None

    def map(self, arrow: Path | str) -> None:
        """From now on read the same rows uncompressed (`open_predictions`), including derived columns.

        A sorted table's rows are all over the file: each could cost one decompression. Raises OSError, ValueError.
        """
        import pyarrow as pa

        mapped = pa.ipc.open_file(pa.memory_map(str(arrow)))
        if mapped.num_record_batches != len(self._starts) - 1:
            raise ValueError(tr("{name} has changed; open it again", name=self.path.name))
        self._pages.clear()
        self._mapped = mapped

    def close(self) -> None:
        """Release the file."""
        self._pages.clear()
        self._mapped = None
        self._file.close()

    def cell(self, row: int, column: int) -> Any:
        """One value, None if there is none. Row and column count from 0."""
        page, start = self._page(row)
        return page.column(column)[row - start].as_py()

    def row(self, row: int) -> dict[str, Any]:
        """All values of one row by column name."""
        page, start = self._page(row)
        return {name: page.column(number)[row - start].as_py() for number, name in enumerate(self.columns)}

    def cells(self, rows: Sequence[int], name: str) -> list[Any]:
        """The values of one column in some rows, in their order."""
        if len(rows) > 1 and rows[-1] - rows[0] == len(rows) - 1 and all(b - a == 1 for a, b in pairwise(rows)):
            return self._stretch(rows[0], len(rows), name)
        found: list[Any] = []
        for row in rows:
            page, start = self._page(row)
            found.append(page.column(name)[row - start].as_py())
        return found

    def _stretch(self, first: int, count: int, name: str) -> list[Any]:
        """The values of one column in consecutive rows."""
        found: list[Any] = []
        while len(found) < count:
            page, start = self._page(first + len(found))
            found += page.column(name).slice(first + len(found) - start, count - len(found)).to_pylist()
        return found

    def bounds(self, name: str) -> list[float]:
        """The minimum and maximum of a numeric column, from the file's statistics; empty if it holds no numbers."""
        metadata = self._file.metadata
        leaves = [metadata.schema.column(place).path for place in range(len(metadata.schema))]
        place = leaves.index(name)
        groups = (metadata.row_group(group).column(place).statistics for group in range(metadata.num_row_groups))
        found = [bound for one in groups if one and one.has_min_max for bound in (one.min, one.max)]
        numbers = [float(bound) for bound in found if isinstance(bound, int | float)]
        return [min(numbers), max(numbers)] if numbers else []

    def read(self, columns: list[str] | None = None) -> "pa.Table":
        """These columns for all rows, for files of at most FILTER_ROWS rows."""
        return self._file.read(columns=columns)

    def filter(
        self, right: bool | None = None, text: str = "", sort_by: str | None = None, descending: bool = False
    ) -> "np.ndarray":
        """Numbers of the matching rows, in the requested order; for files of at most FILTER_ROWS rows.

        `right` keeps rows whose prediction equals (or does not equal) the actual value, `text` those with that text in
        any column except floats. Raises ValueError for larger files and unknown columns.
        """
        import numpy as np
        import pyarrow.compute as compute

        if self.row_count > FILTER_ROWS:
            raise ValueError(
                tr("{row_count} rows are filtered by the helper process (filter_predictions)", row_count=self.row_count)
            )
        table = self.read()
        keep = np.ones(self.row_count, dtype=bool)
        if right is not None:
            keep &= _fits(table, right)
        if text:
            keep &= _contains(table, text)
        rows = np.flatnonzero(keep)
        if sort_by is None:
            return rows
        if sort_by not in self.columns:
            raise ValueError(tr("{sort_by!r} is not a column of {name}", sort_by=sort_by, name=self.path.name))
        keys = [(sort_by, "descending" if descending else "ascending")]
        order = numbers(compute.call_function("sort_indices", [table], compute.SortOptions(keys)))
        return order[keep[order]]

    def read_indices(self, arrow: Path | str) -> "np.ndarray":
        """Row numbers from the Arrow file of `filter_predictions`, which is deleted."""
        import pyarrow as pa

        with pa.memory_map(str(arrow)) as source:
            try:
                table = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                table = pa.ipc.open_stream(source).read_all()
            indices = numbers(table.column(0)).copy()
        Path(arrow).unlink(missing_ok=True)
        return indices

    def _read_page(self, group: int) -> "pa.Table | pa.RecordBatch":
        return (
            self._file.read_row_group(group, use_threads=False)
            if self._mapped is None
            else self._mapped.get_batch(group)
        )

    def _page(self, row: int) -> "tuple[pa.Table | pa.RecordBatch, int]":
        group = bisect_right(self._starts, row) - 1
        if not 0 <= group < len(self._starts) - 1:
            raise IndexError(row)
        page = self._pages.get(group)
        if page is None:
            page = self._pages[group] = self._read_page(group)
            if len(self._pages) > PAGES_KEPT and not self.is_mapped:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(group)
        return page, self._starts[group]


def _fits(table: "pa.Table", right: bool) -> "np.ndarray":
    import pyarrow.compute as compute

    if not {"prediction", "actual"} <= set(table.column_names):
        raise ValueError(tr("there are no actual values to compare the predictions with"))
    equal = compute.call_function("equal", [compute.cast(table[name], "string") for name in ("prediction", "actual")])
    wanted = equal if right else compute.call_function("invert", [equal])
    return numbers(wanted)


def _contains(table: "pa.Table", text: str) -> "np.ndarray":
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    options = compute.MatchSubstringOptions(text, ignore_case=True)
    found = np.zeros(table.num_rows, dtype=bool)
    for column in table.columns:
        if pa.types.is_nested(column.type) or pa.types.is_floating(column.type):
            continue
        hits = compute.call_function("match_substring", [compute.cast(column, "string")], options)
        found |= numbers(hits)
    return found
