"""The data report dialog: a card for each split, loaded with progress, and copied as Markdown or JSON."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft import data_report_text
from app.core.i18n import figure, thin, tr, trn
from app.services.backend_client import BackendClient, PendingQuery
from app.widgets.banner import Banner
from app.widgets.card import Card, label, rule
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.plots.label_bars import Bar, LabelBars
from app.widgets.progress import ThinProgressBar
from backend.contract.rpc.data import DataReport, SplitReport
from backend.contract.rpc.protocol import ErrorReply, Progress

RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class ReportDialog(QDialog):
    """A non-modal dialog. Closing it stops the query."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._arguments: Mapping[str, Any] = {}
        self._ticket: PendingQuery | None = None
        self.report: DataReport | None = None
        self.setWindowTitle(tr("Data report"))
        self.resize(940, 720)
        self.title, self.subtitle = label(tr("Data report"), "title"), label("", "muted", wrap=True)
        self.said = label("", "faint")
        self.markdown = IconButton(tr("Copy as Markdown"), "copy")
        self.json = IconButton(tr("Copy as JSON"), "copy")
        self.again = IconButton(tr("Reload"), "refresh")
        self.cancel = IconButton(tr("Cancel"), "close")
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        self.view = ReportView()
        self.failure = EmptyState("error", "", button=tr("Retry"))
        self._place()
        self.markdown.clicked.connect(lambda: self._copy(tr("Markdown"), data_report_text.as_markdown))
        self.json.clicked.connect(lambda: self._copy("JSON", data_report_text.as_json))
        self.again.clicked.connect(self._ask)
        self.failure.action_clicked.connect(self._ask)
        self.cancel.clicked.connect(self.reject)
        self.finished.connect(self._forget)

    def _place(self) -> None:
        top = QHBoxLayout()
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.title)
        words.addWidget(self.subtitle)
        top.addLayout(words, 1)
        top.addWidget(self.said)
        for button in (self.markdown, self.json, self.again):
            button.setAutoDefault(False)
            top.addWidget(button)
        self.pages = QStackedWidget()
        for page in (self._waiting(), self.view, self.failure):
            self.pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(14)
        column.addLayout(top)
        column.addWidget(self.pages, 1)

    def _waiting(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.addStretch(1)
        self.bar.setFixedWidth(360)
        for widget in (self.words, self.bar, self.cancel):
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(2)
        return page

    def ask(self, arguments: Mapping[str, Any], subject: str) -> None:
        """Open with the data in the query's arguments; `subject` says whose report it is."""
        self._arguments = arguments
        self.subtitle.setText(subject)
        self.show()
        self.raise_()
        self.activateWindow()
        self._ask()

    def _ask(self) -> None:
        self._forget()
        self._show_page(0)
        self.words.setText(tr("Reading the data…"))
        self.bar.set_fraction(None)
        self.cancel.setFocus()
        self._ticket = self._client.ask(
            "data_report", self._arguments, self._on_report, self._on_mistake, self._on_progress
        )

    def _show_page(self, number: int) -> None:
        self.pages.setCurrentIndex(number)
        self.said.setText("")
        for button in (self.markdown, self.json, self.again):
            button.setVisible(number == 1)

    def _on_progress(self, progress: Progress) -> None:
        self.bar.set_fraction(progress.done / progress.total if progress.total else None)
        total = tr(" of {total}", total=formatting.group_digits(int(progress.total))) if progress.total else ""
        unit = translate_word(progress.text or progress.unit)
        self.words.setText(
            tr(
                "Reading the data… {done}{total} {unit}",
                done=formatting.group_digits(int(progress.done)),
                total=total,
                unit=unit,
            ).rstrip()
        )

    def _on_report(self, report: DataReport) -> None:
        self.report = report
        counted = (
            tr("tokens of {tokenizer}", tokenizer=formatting.short_path(report.tokenizer))
            if report.tokenizer
            else tr("tokens not counted")
        )
        self.title.setToolTip(tr("Computed in {seconds:.1f} s, {counted}", seconds=report.seconds, counted=counted))
        self.view.show_report(report)
        self._show_page(1)
        self.view.setFocus()

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.failure.set_words(tr("Couldn't read the data"), formatting.sentence(mistake.message, mistake.field))
        self._show_page(2)

    def _copy(self, kind: str, text_of: Any) -> None:
        if self.report is not None:
            QGuiApplication.clipboard().setText(text_of(self.report))
            self.said.setText(tr("Copied as {kind}", kind=kind))

    def _forget(self) -> None:
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        self._ticket = None


class ReportView(QScrollArea):
    """Scrollable by keyboard; shows one report at a time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Data report"))
        self.cards: dict[str, Card] = {}

    def show_report(self, report: DataReport) -> None:
        """Show another report, scrolled to the top."""
        inside = QWidget()
        inside.setObjectName("scrolled")
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        for note in report.notes:
            banner = Banner()
            column.addWidget(banner)
            banner.show_message("info", thin(note))
        self.cards = {name: _split_card(name, split, report.inputs) for name, split in report.splits.items()}
        for card in self.cards.values():
            column.addWidget(card)
        column.addStretch(1)
        self.setWidget(inside)
        self.verticalScrollBar().setValue(0)


def _split_card(name: str, split: SplitReport, inputs: list[str]) -> Card:
    card = Card(data_report_text.split_title(name))
    files = [formatting.name_of_path(file) for file in split.files]
    names = ", ".join(files[:3]) + (tr(" and {number} more", number=len(files) - 3) if len(files) > 3 else "")
    corner = label(names, "faint")
    corner.setToolTip("\n".join(split.files))
    card.corner.addWidget(corner)
    card.body.addLayout(_counts(split, inputs))
    if split.columns:
        _add_lengths(card, split)
        _add_labels(card, split)
    _add_problems(card, split)
    return card


def _counts(split: SplitReport, inputs: list[str]) -> QGridLayout:
    same = tr("same {inputs}{value}", inputs=", ".join(inputs[:3]), value=" …" if len(inputs) > 3 else "")
    figures = [
        (tr("Rows"), split.rows, ""),
        (tr("Duplicates"), split.duplicates, data_report_text.repetition_words(split) or same),
    ]
    if split.in_train is not None:
        figures.append((tr("Also in training data"), split.in_train, same))
    figures.append((tr("Unusable"), split.unusable, tr("skipped in training") if split.unusable else ""))
    grid = QGridLayout()
    grid.setHorizontalSpacing(18)
    grid.setVerticalSpacing(0)
    for column, (caption, count, words) in enumerate(figures):
        share = f"{figure(count / split.rows, '.1%')} · " if column and count and split.rows else ""
        grid.addWidget(label(caption, "caption"), 0, column)
        grid.addWidget(label(formatting.group_digits(count), "section"), 1, column)
        grid.addWidget(label(f"{share}{words}", "faint", wrap=True), 2, column, Qt.AlignmentFlag.AlignTop)
        grid.setColumnStretch(column, 1)
    return grid


def _add_lengths(card: Card, split: SplitReport) -> None:
    rows = [row for name, column in data_report_text.columns(split) for row in data_report_text.measures(name, column)]
    if not rows:
        return
    card.add(rule())
    grid = QGridLayout()
    grid.setHorizontalSpacing(18)
    grid.setVerticalSpacing(6)
    grid.addWidget(label(tr("Lengths"), "strong"), 0, 0)
    grid.setColumnStretch(0, 1)
    for place, heading in enumerate(data_report_text.HEADINGS, start=1):
        grid.addWidget(label(heading, "caption"), 0, place, RIGHT)
        grid.setColumnMinimumWidth(place, 64)
    for line, (what, cells) in enumerate(rows, start=1):
        grid.addWidget(label(what, "muted"), line, 0)
        for place, cell in enumerate(cells, start=1):
            figure = label(cell, selectable=True)
            figure.setAccessibleName(f"{what}, {data_report_text.HEADINGS[place - 1]}: {cell}")
            grid.addWidget(figure, line, place, RIGHT)
    card.body.addLayout(grid)


def _add_labels(card: Card, split: SplitReport) -> None:
    for name, column in data_report_text.columns(split):
        if not column.labels:
            continue
        card.add(rule())
        more = (column.distinct or len(column.labels)) - len(column.labels)
        others = tr(", {number} most frequent", number=len(column.labels)) if more > 0 else ""
        distinct = trn("{count} unique value", "{count} unique values", column.distinct or len(column.labels))
        card.add(label(f"{name}: {distinct}{others}", "strong"))
        bars = LabelBars(tr("Distribution of {name}", name=name))
        bars.show_bars(
            [Bar(f"{one.label}  ·  {formatting.group_digits(one.count)}", one.ratio) for one in column.labels]
        )
        card.add(bars)


def _add_problems(card: Card, split: SplitReport) -> None:
    empty = data_report_text.empty_cells(split)
    if not (empty or split.unusable):
        return
    card.add(rule())
    if empty:
        card.add(label("\n".join(empty), "warning", wrap=True, selectable=True))
    if split.unusable:
        card.add(label("\n".join(data_report_text.unusable(split)), "warning", wrap=True, selectable=True))
        card.add(label("\n".join(split.first_unusable[:10]), "faint", wrap=True, selectable=True))
