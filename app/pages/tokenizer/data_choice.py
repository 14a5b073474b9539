"""The choice of texts to count: a data file, its text column, and optionally a language column."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core.formatting import name_of_path, sentence
from app.core.i18n import tr
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.widgets.boxes import hbox
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.path_field import PathLine, dropped_paths
from app.widgets.icon_label import IconToolButton
from backend.contract.resources import resource
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.text_columns import language_column, text_column

_NOT_OF_TEXTS = ("validation", "test", "columns")
NO_LANGUAGE = tr("No languages")


class DataChoice(QWidget):
    """`ready` says whether there is something to count; the first rows are queried to learn the columns."""

    changed = Signal()
    failed = Signal(str)
    """Why the file cannot be read; empty when it can."""
    fix_offered = Signal(object)
    """A Fix with which it can be read (`take_fix`); comes after `failed`."""
    run_requested = Signal()
    """Use the data of the run that you are setting up (`take`)."""

    def __init__(self, context: AppContext, with_language: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._with_language = with_language
        self._preview = LatestQuestion(
            context.client, "preview_data", self._on_preview, self._on_mistake, opened="", parent=self
        )
        self._read: str | dict[str, Any] = ""
        self._selected_data: tuple[str | dict[str, Any], str] = ("", "")
        """The file or `data` section that was asked about, and the column that is wanted of it."""
        self._written = ""
        self.line = PathLine(placeholderText=tr("A data file"))
        self.line.setToolTip(tr("CSV, JSON Lines, Parquet, text…"))
        self.line.setAccessibleName(tr("Data file"))
        self.line.editingFinished.connect(self._on_written)
        self.browse = IconToolButton("folder", tr("Choose a data file"), clicked=self._on_browse)
        hint = tr("Use the demo data: sentences from three kinds of reviews")
        self.demo = IconToolButton("table", hint, clicked=self.choose_demo)
        hint = tr("Use the data of the run you are setting up")
        self.of_run = IconToolButton("bolt", hint, clicked=self.run_requested)
        hint = tr("The column with the texts")
        self.column = QuietComboBox(name=tr("Column with the texts"), hint=hint, activated=self.changed.emit)
        hint = tr("A column with the language of each row, to count by language")
        self.language = QuietComboBox(name=tr("Column with the languages"), hint=hint, activated=self.changed.emit)
        self.language.setVisible(with_language)
        self.column.setPlaceholderText(tr("Column"))
        self.language.setPlaceholderText(tr("Language"))
        row = hbox((self.line, 3), self.browse, self.demo, self.of_run, spacing=6, parent=self)
        row.addSpacing(4)
        row.addWidget(self.column, 1)
        row.addWidget(self.language, 1)
        for box in (self.column, self.language):
            box.setMinimumContentsLength(11)
            box.setEnabled(False)
        self.setAcceptDrops(True)

    @property
    def data(self) -> str | dict[str, Any]:
        """The file whose columns are offered, or a run's `data` section; empty if none was read."""
        return self._read

    @property
    def name(self) -> str:
        """The data's name."""
        return name_of_path(self.line.text())

    @property
    def ready(self) -> bool:
        """Whether a file and a column are chosen."""
        return bool(self._read and self.column.currentText())

    def language_column(self) -> str | None:
        """The chosen one, or None."""
        return self.language.currentData() if self._with_language else None

    def choose(self, path: str) -> None:
        """Read the first rows of a file to learn its columns."""
        path = path.strip()
        if path == self._read or (self._preview.open and self.line.text() == path):
            return
        self._show(path, path)
        if not path:
            self._offer([], [])
            self.failed.emit("")
            return
        self._ask(path, {"source": "files", "train": str(Path(path).expanduser())})

    def take(self, data: Mapping[str, Any]) -> None:
        """Use the training rows of a run: the `data` section of its spec, whatever its source."""
        section = {name: value for name, value in data.items() if name not in _NOT_OF_TEXTS and value is not None}
        self._show(_name_of(section), tr("The training data of the new run"))
        self._ask(section, section, str((data.get("columns") or {}).get("text") or ""))

    def take_fix(self, changes: Mapping[str, Any]) -> None:
        """Read the same data with other settings, dotted keys of a spec."""
        _, column = self._selected_data
        section = {
            **self._preview.arguments["data"],
            **{key.removeprefix("data."): value for key, value in changes.items()},
        }
        self._ask(section, section, column)

    def _show(self, words: str, hint: str) -> None:
        self._written = words
        self.line.setText(words)
        self.line.setToolTip(hint)
        self._preview.stop()
        self._read = ""

    def _ask(self, read: str | dict[str, Any], data: dict[str, Any], column: str = "") -> None:
        self._selected_data = (read, column)
        self._offer([], [])
        self._preview.ask({"data": data})

    def _on_written(self) -> None:
        """Ignore leaving the line unchanged: for a run it shows a name that is not a path."""
        if self.line.text() != self._written:
            self.choose(self.line.text())

    def choose_demo(self) -> None:
        """Choose the reviews included with Burnish."""
        self.choose(str(resource("demo", "sentiment", "train.csv")))

    def _on_preview(self, preview: DataPreview) -> None:
        self._read, column = self._selected_data
        self._offer(preview.columns, preview.rows)
        if column in preview.columns:
            self.column.setCurrentText(column)
        self.failed.emit("")
        self.changed.emit()

    def _offer(self, columns: list[str], rows: list[list[str]]) -> None:
        for box in (self.column, self.language):
            box.clear()
            box.setEnabled(bool(columns))
        self.column.addItems(columns)
        self.column.setCurrentText(text_column(columns, rows))
        if not columns:
            self.changed.emit()
            return
        languages = [(NO_LANGUAGE, None), *((name, name) for name in columns)]
        self.language.set_items(languages, language_column(columns))

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.failed.emit(sentence(mistake.message, mistake.field))
        if mistake.fix is not None:
            self.fix_offered.emit(mistake.fix)

    def _on_browse(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Choose a data file"), self._read if isinstance(self._read, str) else ""
        )
        if path:
            self.choose(path)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a file."""
        if dropped_paths(event, specs=True):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Use the first dropped file."""
        if paths := dropped_paths(event, specs=True):
            event.acceptProposedAction()
            self.choose(paths[0])


def _name_of(section: Mapping[str, Any]) -> str:
    """The name of a run's data: its file, or the data set of another source."""
    names = ("train",) if section.get("source", "files") == "files" else ("name", "pair", "folder", "task")
    given = next((section[name] for name in names if section.get(name)), section.get("source", ""))
    first = given[0] if isinstance(given, list) and given else given
    return tr("New run · {first}", first=name_of_path(str(first)))
