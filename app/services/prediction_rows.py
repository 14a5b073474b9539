"""A predictions file for display: its rows, which of them are visible, and which columns."""

import json
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSettings, Signal

from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.core.predictions.row_filter import RowFilter
from app.services.backend_client import ArrowAnswer, BackendClient, PendingQuery
from app.services.latest_question import LatestQuestion
from app.services.table_pages import FILTER_ROWS, TablePages
from backend.contract.arrow_numbers import numbers, whole_numbers
from backend.contract.places import config_folder
from backend.contract.rpc.predictions import AT_THRESHOLD, PredictionPages
from backend.contract.rpc.predictions import PredictionRows as RowsAnswer
from backend.contract.rpc.protocol import ErrorReply, Progress

if TYPE_CHECKING:
    import numpy as np


PROBABILITY = "probability_"
CONFIDENCE = "confidence"
NARROWEST, WIDEST = 84, 136
LONG = 24
"""Characters of an answer that is a text rather than a label."""
MARKED = 20
"""Pixels of the sign that says right or wrong before a prediction."""
ANSWERS = ("actual", "prediction")
_COMPARED_ROWS = 20


class PredictionRows:
    """The columns to show, on top of TablePages; `confidence` is the largest probability of a row.

    Raises OSError or ValueError if the file cannot be read or is not a predictions file, as it may be untrusted.
    """

    def __init__(self, path: Path | str) -> None:
        import pyarrow.types as types

        self.pages = TablePages(path)
        self.path = self.pages.path
        self.row_count = self.pages.row_count
        self._written = _modified_at(self.path)
        names = self.pages.columns
        own = names[names.index("prediction") :] if "prediction" in names else []
        self.probabilities = [name for name in own if name.startswith(PROBABILITY)]
        answers = [self.pages.types[name] for name in ANSWERS if name in names]
        chances = [self.pages.types[name] for name in self.probabilities]
        if not own or any(map(types.is_nested, answers)) or not all(map(types.is_floating, chances)):
            self.pages.close()
            raise ValueError(tr("it does not contain predictions; predict the data again"))
        self.has_actual = "actual" in names
        self.has_confidence = bool(self.probabilities) and CONFIDENCE not in names
        self._threshold: tuple[str, float] | None = None
        self._places = {name: number for number, name in enumerate(names)}

    @property
    def is_old(self) -> bool:
        """Whether the file was rewritten, for example by a resumed run, or is gone."""
        return _modified_at(self.path) != self._written

    def close(self) -> None:
        """Release the file."""
        self.pages.close()

    @property
    def columns(self) -> list[str]:
        """The file's columns, then derived ones: confidence, and the prediction at a threshold."""
        derived = ([CONFIDENCE] if self.has_confidence else []) + ([AT_THRESHOLD] if self._threshold else [])
        return [*self.pages.columns, *derived]

    @property
    def threshold(self) -> tuple[str, float] | None:
        """A label and its probability threshold, if the user is trying one."""
        return self._threshold

    def set_threshold(self, label: str, value: float | None) -> None:
        """Predict a label from this probability on; None returns to the most probable label."""
        self._threshold = None if value is None else (label, value)

    def cell(self, row: int, column: int) -> Any:
        """One value."""
        if column < len(self.pages.columns):
            return self.pages.cell(row, column)
        return self.cells([row], self.columns[column])[0]

    def cells(self, rows: Sequence[int], name: str) -> list[Any]:
        """The values of one column in some rows, in their order."""
        if name in self._places:
            return self.pages.cells(rows, name)
        chances = [self.pages.cells(rows, probability) for probability in self.probabilities]
        each: Iterable[tuple[Any, ...]] = zip(*chances, strict=True)
        if name == CONFIDENCE:
            return [max((one for one in row if one is not None), default=None) for row in each]
        return [self._becomes(row) for row in each]

    def _becomes(self, chances: tuple[Any, ...]) -> str | None:
        """What a row with these probabilities is predicted as at the threshold."""
        assert self._threshold is not None
        label, value = self._threshold
        known = {name.removeprefix(PROBABILITY): one for name, one in zip(self.probabilities, chances, strict=True)}
        if any(one is None for one in chances):
            return None
        if known[label] >= value:
            return label
        return max((name for name in known if name != label), key=lambda name: known[name], default=None)

    def value(self, row: int, name: str) -> Any:
        """One value by column name."""
        return self.pages.cell(row, self._places[name])

    def confidence(self, row: int) -> float | None:
        """The largest probability of a row."""
        values = [value for name in self.probabilities if (value := self.value(row, name)) is not None]
        return max(values, default=None)

    def is_right(self, row: int) -> bool | None:
        """Whether the prediction equals the actual value; None if unknown."""
        if not self.has_actual:
            return None
        actual = self.value(row, "actual")
        return None if actual is None else str(actual) == str(self.value(row, "prediction"))

    def shown_columns(self, hidden: Collection[str] = ()) -> list[str]:
        """Inputs first, then actual, prediction and confidence; without hidden columns and redundant ones."""
        hidden = {*ANSWERS, *self.probabilities, *hidden}
        names = self.pages.columns
        own = names[names.index("prediction") :] if "prediction" in names else []
        inputs = [name for name in names if name not in {*hidden, *own} and not self._repeats_actual(name)]
        answers = [name for name in ANSWERS if name in names]
        rest = [name for name in own if name not in hidden]
        answers += [AT_THRESHOLD] if self._threshold else []
        return [*inputs, *answers, *rest, *([CONFIDENCE] if self.has_confidence else [])]

    def widths(self, shown: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """Suitable column widths in pixels from the first rows, and the text columns, which share the rest."""
        rows = range(min(_COMPARED_ROWS, self.row_count))
        letters = {
            name: max((len(str(self.cell(row, self.columns.index(name)))) for row in rows), default=0) for name in shown
        }
        inputs = [name for name in letters if name not in (*ANSWERS, CONFIDENCE)]
        longest = max(inputs, key=lambda name: letters[name], default="")
        written = [name for name in ANSWERS if letters.get(name, 0) > LONG]
        widths = {name: min(WIDEST, max(NARROWEST, 26 + 8 * max(most, len(name)))) for name, most in letters.items()}
        if self.has_actual and "prediction" in widths:
            widths["prediction"] += MARKED
        return {**widths, CONFIDENCE: 104}, [longest, *written]

    @property
    def needs_pages(self) -> bool:
        """Whether to request its rows uncompressed (`open_predictions`) before sorting."""
        return not self.small and not self.pages.is_mapped

    def _repeats_actual(self, name: str) -> bool:
        if not self.has_actual or not self.row_count:
            return False
        rows = range(min(_COMPARED_ROWS, self.row_count))
        return all(str(self.value(row, name)) == str(self.value(row, "actual")) for row in rows)

    def bounds(self) -> tuple[float, float] | None:
        """The minimum and maximum of predicted and actual numbers, from the file's statistics."""
        found = [
            bound for name in ("prediction", "actual") if name in self._places for bound in self.pages.bounds(name)
        ]
        return (min(found), max(found)) if found else None

    @property
    def small(self) -> bool:
        """Whether filtering is fast enough for the window itself."""
        return self.row_count <= FILTER_ROWS

    def filter(self, right: bool | None, text: str, sort_by: str, descending: bool) -> "np.ndarray":
        """Row numbers in order, for small files."""
        if sort_by != CONFIDENCE or not self.has_confidence:
            return self.pages.filter(right, text, sort_by or None, descending)
        import numpy as np

        table = self.pages.read(self.probabilities)
        surest = np.max([numbers(table[name]) for name in self.probabilities], axis=0)
        rows = self.pages.filter(right, text)
        order = np.argsort(-surest[rows] if descending else surest[rows], kind="stable")
        return rows[order]


def _modified_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def write_indices(indices: Sequence[int]) -> str:
    """An Arrow file of row numbers for a helper query; its reader deletes it."""
    import numpy as np
    import pyarrow as pa

    descriptor, path = tempfile.mkstemp(prefix="burnish-rows-", suffix=".arrow")
    table = pa.table({"row": whole_numbers(np.asarray(indices))})
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


class ChosenRows(QObject):
    """The rows to show: small files are filtered here, large ones by the helper. Outdated answers are dropped."""

    changed = Signal(object)
    """Row numbers in order; None for all rows as they are in the file."""
    refused = Signal(str)
    loading_progressed = Signal(float)
    """Which part of a large file has been laid out for quick reading."""
    opened = Signal()
    waiting = Signal(bool)
    """Whether an answer is being waited for."""

    def __init__(self, client: BackendClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._rows: PredictionRows | None = None
        self._wanted: tuple[RowFilter, tuple[str, bool]] = (RowFilter(), ("", False))
        self._open_query: PendingQuery | None = None
        self._question = LatestQuestion(
            client, "filter_predictions", self._on_answered, self._on_mistake, None, "parquet"
        )

    def open(self, rows: PredictionRows) -> None:
        """Show these rows from now on, initially all of them."""
        self.close()
        self._rows = rows
        if rows.needs_pages:
            question = {"parquet": str(rows.path)}
            self._open_query = self._client.ask(
                "open_predictions", question, self._on_opened, self._on_not_opened, self._on_progress
            )

    def close(self) -> None:
        """Show nothing from now on."""
        if self._open_query is not None:
            self._open_query.cancel()
        self._question.ignore()
        self._rows, self._open_query = None, None
        self._wanted = (RowFilter(), ("", False))

    @property
    def is_busy(self) -> bool:
        """Whether other rows are pending."""
        return self._question.open

    def want(self, wanted: RowFilter, sort: tuple[str, bool]) -> None:
        """Show the matching rows, sorted by a column (empty: file order), descending or not."""
        self._wanted = (wanted, sort)
        if self._rows is None:
            return
        if wanted.is_empty and not sort[0]:
            self._question.ignore()
            self._emit_changed(None)
        elif self._rows.small and wanted.is_plain and sort[0] in ("", CONFIDENCE, *self._rows.pages.columns):
            self._question.ignore()
            self._emit_changed(self._rows.filter(wanted.right, wanted.text, *sort).tolist())
        elif self._open_query is None:
            question: dict[str, Any] = {"parquet": str(self._rows.path), **wanted.question()}
            question |= {"sort_by": sort[0] or None, "descending": sort[1]}
            self._question.ask(question)
            self.waiting.emit(True)
        else:
            self.waiting.emit(True)

    def _emit_changed(self, indices: Sequence[int] | None) -> None:
        self.waiting.emit(False)
        self.changed.emit(indices)

    def _on_answered(self, answer: RowsAnswer) -> None:
        rows = self._rows
        if rows is None or self._question.open or self._question.answered.get("parquet") != str(rows.path):
            ArrowAnswer(answer.arrow).discard()
            return
        self._emit_changed(rows.pages.read_indices(answer.arrow))  # type: ignore[arg-type]

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.waiting.emit(False)
        self.refused.emit(mistake.message)

    # A large file

    def _on_opened(self, pages: PredictionPages) -> None:
        assert self._rows is not None
        self._open_query = None
        try:
            self._rows.pages.map(pages.arrow)
        except (OSError, ValueError) as error:
            self.refused.emit(translate_message(str(error)))
        self.opened.emit()
        self.want(*self._wanted)

    def _on_not_opened(self, mistake: ErrorReply) -> None:
        self._open_query = None
        self.opened.emit()
        self._on_mistake(mistake)

    def _on_progress(self, progress: Progress) -> None:
        self.loading_progressed.emit(progress.done / progress.total if progress.total else 0.0)


@dataclass(frozen=True)
class ColumnChoice:
    """The columns to show and their widths, for one kind of table; None shows the default ones."""

    shown: Collection[str] | None = None
    widths: Mapping[str, int] = field(default_factory=dict)


class ChosenColumns:
    """Stores the choices, in one file for all tables; a `kind` is for example a task, with the same columns."""

    def __init__(self, path: Path | None = None) -> None:
        self._settings = QSettings(str(path or config_folder() / "columns.ini"), QSettings.Format.IniFormat)

    def read(self, kind: str) -> ColumnChoice:
        """The stored choices; empty if they cannot be read."""
        try:
            kept = json.loads(str(self._settings.value(_key(kind), "{}")))
            widths = {str(name): int(width) for name, width in kept.get("widths", {}).items()}
            names = kept.get("shown")
            return ColumnChoice(None if names is None else [str(name) for name in names], widths)
        except (ValueError, AttributeError, TypeError):
            return ColumnChoice()

    def keep(self, kind: str, columns: ColumnChoice) -> None:
        """Store this choice."""
        names = None if columns.shown is None else list(columns.shown)
        self._settings.setValue(_key(kind), json.dumps({"shown": names, "widths": dict(columns.widths)}))


def _key(kind: str) -> str:
    return f"columns/{kind or 'any'}".replace(":", "-")
