"""Compares runs side by side: the settings that differ and the final metrics, as text."""

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.contract.metrics import Interval
from backend.contract.run.events import AnyEvent, DataLoaded, ModelLoaded, RunResumed, RunStarted

FORMATS = ("csv", "markdown")
ABSENT = "–"
WITHOUT_MODEL = "without a model"
UNSURE = ", may be chance"
"""What follows an interval that is not wholly better than a rule without a model."""
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
    columns = [dict(flatten(spec)) for spec in specs.values()]
    keys = [key for key in dict.fromkeys(key for column in columns for key in column) if key not in _LEFT_OUT]
    rows = [(key, *(_format_value(column.get(key)) for column in columns)) for key in keys]
    visible = [row for row in rows if everything or len(set(row[1:])) > 1]
    return TextRows(("Setting", *specs), tuple(visible))


def facts_of(found: Iterable[AnyEvent]) -> dict[str, str]:
    """What a run found, beside what its settings asked for, by dotted keys."""
    facts: dict[str, str] = {}
    for event in found:
        match event:
            case RunStarted() | RunResumed():
                own = {
                    "engine": event.engine,
                    "device": event.device,
                    "precision": event.precision,
                    "versions": event.versions,
                }
                facts |= {f"found.{key}": str(value) for key, value in flatten(own) if value}
            case DataLoaded():
                facts |= {
                    f"found.{event.split}_rows": str(event.rows),
                    f"found.{event.split}_data": event.fingerprint[:8],
                }
            case ModelLoaded():
                facts |= {"found.parameters": str(event.parameters), "found.trainable": str(event.trainable)}
            case _:
                pass
    return facts


@dataclass(frozen=True)
class FinalMetrics:
    """A run's line in the table of metrics: the cells before them, the values, and their 95 % intervals."""

    cells: Sequence[tuple[str, str]]
    values: Mapping[str, float | None]
    intervals: Mapping[str, Interval]
    trivial: Mapping[str, float] = field(default_factory=dict)
    """What a rule without a model reaches on the same rows."""
    unsure: Collection[str] = ()
    """Metrics whose interval is not wholly better than that."""


def metrics_table(runs: Sequence[FinalMetrics], *, form: str = "markdown") -> TextRows:
    """One row per run: the given cells, then a column for every metric that any run has; last what rules without a model reach.

    In `csv` the ends of an interval have columns of their own, such as `accuracy_low`, and so have rules (`accuracy_trivial`).
    """
    metrics = list(dict.fromkeys(name for run in runs for name in run.values))
    named = [name for name, _ in runs[0].cells] if runs else []
    rows = [(*(text for _, text in run.cells), *(_cell(run, metric, form) for metric in metrics)) for run in runs]
    if form == "csv":
        sure = [name for name in metrics if any(name in run.intervals for run in runs)]
        metrics += [f"{name}_{end}" for name in sure for end in ("low", "high")]
        ends = ((end for name in sure for end in run.intervals.get(name, (None, None))) for run in runs)
        rows = [(*row, *map(_number, own)) for row, own in zip(rows, ends, strict=True)]
        ruled = [name for name in metrics if any(name in run.trivial for run in runs)]
        metrics += [f"{name}_trivial" for name in ruled]
        known = ((run.trivial.get(name) for name in ruled) for run in runs)
        rows = [(*row, *map(_number, own)) for row, own in zip(rows, known, strict=True)]
    else:
        rows += [(*row, *(_number(rule.get(name)) for name in metrics)) for row, rule in _rules(runs, metrics)]
    return TextRows((*named, *metrics), tuple(rows))


def _rules(runs: Sequence[FinalMetrics], metrics: Sequence[str]) -> Iterator[tuple[list[str], Mapping[str, float]]]:
    """The cells and values of a row for each different rule; one that is not that of all runs names its first."""
    found: list[tuple[str, Mapping[str, float]]] = []
    for run in runs:
        own = {name: run.trivial[name] for name in metrics if name in run.trivial}
        if own and own not in [other for _, other in found]:
            found.append((run.cells[0][1] if run.cells else "", own))
    for name, own in found:
        title = WITHOUT_MODEL if len(found) == 1 else f"{WITHOUT_MODEL} ({name})"
        yield [title, *[ABSENT] * (len(runs[0].cells) - 1)], own


def _cell(run: FinalMetrics, metric: str, form: str) -> str:
    value, interval = _number(run.values.get(metric)), run.intervals.get(metric)
    if interval is None or form == "csv":
        return value
    return f"{value} ({interval[0]:.3g} to {interval[1]:.3g}){UNSURE if metric in run.unsure else ''}"


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.6g}"


def format_settings(settings: Mapping[str, Any]) -> str:
    """The settings of a trial on one line, such as `learning_rate 3e-05, rank 8`: the last part of each key, and its value."""
    return ", ".join(f"{key.rpartition('.')[2]} {format_short(value)}" for key, value in settings.items())


def format_short(value: Any) -> str:
    """A value with three significant digits; JSON for what is neither a number nor text."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def flatten(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings by dotted keys; an empty section is a value."""
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{key}.")
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
