"""The preview of the chosen data: one summary line, labels and lengths, warnings, the first rows."""

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.draft import data_messages
from app.core.i18n import tr
from app.core.setting_titles import in_titles
from app.pages.new_run.data.column_choice import Chosen, ColumnChoice, columns_of
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.plots.share_bar import CountStrip, ShareBar
from app.widgets.progress import ThinProgressBar
from app.widgets.tables.preview_table import PreviewColumn, PreviewTable
from backend.contract.rpc.data import DataPreview, DataSummary

TABLE_HEIGHT = 196
STOPPED = tr("Not all rows were checked. The run reads all of them and reports the ones it can't use.")


class DataView(QWidget):
    """`columns` is where roles are chosen."""

    unusable_requested = Signal()
    stop_requested = Signal()
    """All rows need not be looked at."""
    row_requested = Signal(int)

    def __init__(self, columns: ColumnChoice, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._columns = columns
        self._preview: DataPreview | None = None
        self._glance: DataSummary | None = None
        self.summary = label("", "strong", wrap=True, selectable=True)
        self.splits = label("", "muted", wrap=True)
        self.labels, self.lengths = label("", "muted", wrap=True), label("", "muted", wrap=True)
        self._labels_heading, self._lengths_heading = label(tr("Labels"), "caption"), label(tr("Lengths"), "caption")
        self.shares, self.strip = ShareBar(tr("Label distribution")), CountStrip(tr("Row lengths"))
        self.counting, self.counted = QWidget(), ThinProgressBar()
        self.counted.setAccessibleName(tr("Checking all rows"))
        self.stop_counting = IconButton(tr("Stop"), "stop", "quiet")
        self.stop_counting.setToolTip(tr("Stop checking the rows. The run will read them anyway"))
        self.stop_counting.clicked.connect(self.stop_requested)
        self.warnings = label("", "warning", wrap=True, selectable=True)
        self.notes = label("", "faint", wrap=True, selectable=True)
        self.skipped = label("", "warning", wrap=True, selectable=True)
        self.unusable = IconButton(tr("Show rows"), "table", "quiet")
        self.unusable.setToolTip(tr("Unusable rows, with file, line and reason"))
        self.unusable.clicked.connect(self.unusable_requested)
        self.table = PreviewTable(tr("First rows of the data"))
        self.table.setMinimumHeight(TABLE_HEIGHT)
        self.table.setToolTip(tr("Double-click a row to see all of it"))
        self.table.row_requested.connect(self.row_requested)
        self.counting.hide()
        self._place()

    def _place(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        pictures = self._pictures = QHBoxLayout()
        pictures.setSpacing(18)
        for parts in (
            (self._labels_heading, self.shares, self.labels),
            (self._lengths_heading, self.strip, self.lengths),
        ):
            side = QVBoxLayout()
            side.setSpacing(4)
            for part in parts:
                side.addWidget(part)
            side.addStretch(1)
            pictures.addLayout(side, 1)
        counting = QHBoxLayout(self.counting)
        counting.setContentsMargins(0, 0, 0, 0)
        counting.addWidget(label(tr("Checking all rows…"), "faint"))
        counting.addWidget(self.counted, 1)
        counting.addWidget(self.stop_counting)
        left_out = QHBoxLayout()
        left_out.addWidget(self.skipped, 1)
        left_out.addWidget(self.unusable)
        column.addWidget(self.summary)
        column.addWidget(self.splits)
        column.addWidget(self.counting)
        column.addLayout(pictures)
        column.addLayout(left_out)
        for widget in (self.warnings, self.notes):
            column.addWidget(widget)
        column.addWidget(self.table, 1)

    def show_preview(self, preview: DataPreview, columns: Mapping[str, Chosen]) -> None:
        """Show the first rows and the columns; the summary of all rows comes later."""
        self._preview, self._glance = preview, None
        kinds = {column.name: column.kind for column in preview.summaries}
        parts = {
            column: title for part, title in self._columns.titles().items() for column in columns_of(columns.get(part))
        }
        table_columns = [
            PreviewColumn(name, kinds.get(name, ""), *parts.get(name, ("", ""))) for name in preview.columns
        ]
        self.table.show_rows(table_columns, preview.rows)
        self._show()

    def show_glance(self, glance: DataSummary | None) -> None:
        """Show the summary of all rows; None if there is none."""
        if self._preview is not None:
            self._glance = glance
            self.counting.hide()
            self._show()

    def show_counting(self, fraction: float | None) -> None:
        """Show that all rows are being scanned."""
        self.counted.set_fraction(fraction)
        self.counting.setVisible(self._preview is not None)

    def show_stopped(self) -> None:
        """Show that the scan was stopped."""
        self.counting.hide()
        _say(self.notes, STOPPED)

    def clear(self) -> None:
        """Show that there is no data."""
        self._preview = self._glance = None
        self.counting.hide()

    def _show(self) -> None:
        preview, glance = self._preview, self._glance
        assert preview is not None
        self.summary.setText(data_messages.at_a_glance(preview, glance))
        _say(self.splits, data_messages.split_line(glance) if glance else "")
        self._show_labels(data_messages.usable_labels(preview, glance))
        self._show_lengths(glance)
        some = data_messages.unusable_count(preview, glance) > 0
        _say(self.skipped, data_messages.skipped_line(preview, glance) if some else "")
        self.unusable.setVisible(some)
        splits = glance.splits if glance else []
        _say(self.warnings, "\n".join(map(in_titles, glance.warnings) if glance else []))
        lines = [data_messages.passed_over_line(preview.passed_over), data_messages.repeated_line(splits)]
        lines += [*data_messages.empty_lines(splits), *(map(in_titles, glance.notes) if glance else [])]
        _say(self.notes, "\n".join(filter(None, lines)))

    def _show_labels(self, counts: dict[str, int]) -> None:
        self.shares.show_counts(list(counts.items()))
        self.labels.setText(data_messages.label_line(counts) if counts else "")
        for widget in (self._labels_heading, self.shares, self.labels):
            widget.setVisible(bool(counts))
        self._pictures.setStretch(0, 1 if counts else 0)

    def _show_lengths(self, glance: DataSummary | None) -> None:
        lengths = glance.lengths if glance else None
        if lengths is not None:
            words = [data_messages.bin_words(lengths, place) for place in range(len(lengths.counts))]
            self.strip.show_counts(lengths.counts, words, lengths.limit / lengths.width if lengths.limit else None)
            self.lengths.setText(data_messages.length_line(lengths))
        for widget in (self._lengths_heading, self.strip, self.lengths):
            widget.setVisible(lengths is not None)


def _say(words: QWidget, text: str) -> None:
    """A sentence that takes no space when it is empty."""
    words.setText(text)  # type: ignore[attr-defined]
    words.setVisible(bool(text))
