"""Owns the words of the Run page: what happened, the raw log, what needs attention, sample predictions, a person's note."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.core.runs.run_state import JournalLine, RunState
from app.pages.run.samples import Samples
from app.widgets.card import Card
from app.widgets.forms.notes_bar import NotesBar
from app.widgets.tables.log_view import LogView

PAGES = (tr("Journal"), tr("Process log"), tr("Attention"), tr("Samples"), tr("Note"))


class Journal(Card):
    """Three lists of lines, each of which takes only what is new, the rows that evaluations show, and note and tags."""

    page_shown = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Log"), parent)
        self.journal = LogView(tr("Nothing has happened yet."))
        self.process = LogView(tr("The process has written nothing."))
        self.attention = LogView(tr("Nothing needs attention."))
        self.samples, self.notes = Samples(), NotesBar()
        self._pages = QStackedWidget(self)
        self._chips = QButtonGroup(self, exclusive=True)
        chips = QHBoxLayout()
        chips.setSpacing(6)
        for number, (name, view) in enumerate(
            zip(PAGES, (self.journal, self.process, self.attention, self.samples, _at_the_top(self.notes)), strict=True)
        ):
            view.setAccessibleName(name)
            self._pages.addWidget(view)
            chip = QPushButton(name)
            chip.setCheckable(True)
            theme.role(chip, "chip")
            self._chips.addButton(chip, number)
            chips.addWidget(chip)
        self.corner.addLayout(chips)
        self.add(self._pages, 1)
        self._chips.button(0).setChecked(True)
        self._chips.idClicked.connect(self._pages.setCurrentIndex)
        self._chips.idClicked.connect(lambda number: self.page_shown.emit(PAGES[number]))
        self._taken = 0
        self._attention_lines = 0

    def offer_notes(self, offered: bool) -> None:
        """Only a run of the library keeps a note."""
        chip = self._chips.button(PAGES.index(tr("Note")))
        chip.setVisible(offered)
        if chip.isChecked() and not offered:
            self.show_page(PAGES[0])

    def show_page(self, name: str) -> None:
        """Show one of PAGES."""
        self._chips.button(PAGES.index(name)).click()

    def clear(self) -> None:
        """Another run is shown."""
        self._taken = self._attention_lines = 0
        for view in (self.journal, self.process, self.attention):
            view.clear()
        self.samples.clear()
        self._chips.button(2).setText(PAGES[2])

    def show_state(self, state: RunState) -> None:
        """Add the lines that are new."""
        new = state.journal[self._taken :]
        self._taken += len(new)
        self.journal.append_lines([_line(line) for line in new])
        self.samples.show_state(state)
        self._show_attention(state, [line for line in new if line.kind != "info"])

    def _show_attention(self, state: RunState, new: list[JournalLine]) -> None:
        lines = [_line(line) for line in new]
        if lines:
            self.attention.append_lines(lines)
            self._attention_lines += len(lines)
            self._chips.button(2).setText(f"{PAGES[2]} ({self._attention_lines})")

    def add_process_lines(self, lines: list[str]) -> None:
        """Add lines of `process.log`."""
        self.process.append_lines(lines)


def _at_the_top(widget: QWidget) -> QWidget:
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(widget)
    column.addStretch(1)
    return page


def _line(line: JournalLine) -> str:
    mark = {"warning": "warning: ", "error": "error: "}.get(line.kind, "")
    return f"{formatting.clock(line.time)}  {mark}{line.text}"
