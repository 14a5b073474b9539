"""Owns how a data report looks: a card per split with its counts, lengths, labels and what is wrong with it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QScrollArea, QVBoxLayout, QWidget

from app.core import formatting
from app.core.draft import data_report_text
from app.core.i18n import figure, thin, tr, trn
from app.widgets.banner import Banner
from app.widgets.card import Card, label, rule
from app.widgets.plots.label_bars import Bar, LabelBars
from backend.contract.rpc.queries import DataReport, SplitReport

RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class ReportView(QScrollArea):
    """Scrolls with the keyboard; shows one report at a time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Data report"))
        self.cards: dict[str, Card] = {}

    def show_report(self, report: DataReport) -> None:
        """Show another report, from its beginning."""
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
    shown = ", ".join(files[:3]) + (tr(" and {number} more", number=len(files) - 3) if len(files) > 3 else "")
    corner = label(shown, "faint")
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
    shown = [(tr("Rows"), split.rows, ""), (tr("Repeated"), split.duplicates, data_report_text.repeated(split) or same)]
    if split.in_train is not None:
        shown.append((tr("In the training data too"), split.in_train, same))
    shown.append((tr("Cannot be used"), split.unusable, tr("left out of training") if split.unusable else ""))
    grid = QGridLayout()
    grid.setHorizontalSpacing(18)
    grid.setVerticalSpacing(0)
    for column, (caption, count, words) in enumerate(shown):
        share = f"{figure(count / split.rows, '.1%')} · " if column and count and split.rows else ""
        grid.addWidget(label(caption, "caption"), 0, column)
        grid.addWidget(label(formatting.grouped(count), "section"), 1, column)
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
        others = tr(", the {number} most frequent", number=len(column.labels)) if more > 0 else ""
        distinct = trn("{count} different value", "{count} different values", column.distinct or len(column.labels))
        card.add(label(f"{name}: {distinct}{others}", "strong"))
        bars = LabelBars(tr("Shares of {name}", name=name))
        bars.show_bars([Bar(f"{one.label}  ·  {formatting.grouped(one.count)}", one.ratio) for one in column.labels])
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
