"""Compares runs side by side: the settings that differ and the final metrics, as text."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FORMATS = ("csv", "markdown")
ABSENT = "–"
_LEFT_OUT = ("version", "name")
"""Settings that say nothing of how a run trains."""


@dataclass(frozen=True)
class TextRows:
    """Cells as text; every row is as long as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def format(self, form: str) -> str:
        """As `csv` (RFC 4180) or as `markdown`, with a final newline."""
        return self._csv() if form == "csv" else self._markdown()

    def _csv(self) -> str:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(self.header)
        writer.writerows([["" if cell == ABSENT else cell for cell in row] for row in self.rows])
        return stream.getvalue()

    def _markdown(self) -> str:
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "".join(f"| {' | '.join(map(_escape_cell, line))} |\n" for line in lines)


def settings_table(specs: Mapping[str, Mapping[str, Any]], *, everything: bool = False) -> TextRows:
    """One row per setting that differs between the runs (name → spec), or per setting of any run."""
    columns = [dict(_flat(spec)) for spec in specs.values()]
    keys = [key for key in dict.fromkeys(key for column in columns for key in column) if key not in _LEFT_OUT]
    rows = [(key, *(_format_value(column.get(key)) for column in columns)) for key in keys]
    visible = [row for row in rows if everything or len(set(row[1:])) > 1]
    return TextRows(("Setting", *specs), tuple(visible))


def metrics_table(runs: Sequence[tuple[Sequence[tuple[str, str]], Mapping[str, float | None]]]) -> TextRows:
    """One row per run: the given cells, then a column for every metric that any run has."""
    metrics = list(dict.fromkeys(name for _, values in runs for name in values))
    named = [name for name, _ in runs[0][0]] if runs else []
    rows = [
        (*(text for _, text in cells), *(_number(values.get(metric)) for metric in metrics)) for cells, values in runs
    ]
    return TextRows((*named, *metrics), tuple(rows))


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.6g}"


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _format_value(value: Any) -> str:
    if value is None or value in ({}, []):
        return ABSENT  # empty, or not in this spec: either way the default holds
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value).replace("e-0", "e-")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _escape_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
