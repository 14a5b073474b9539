"""Edits the notes and tags of a run."""

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.widgets.card import label
from backend.contract.errors import InputError
from backend.contract.run.notes import RunNotes, tags_of


class NotesBar(QWidget):
    """Text is saved when a field is left, or on Enter."""

    written = Signal(object, object)
    """The run's folder and its RunNotes."""
    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._run: Path | None = None
        self._stored = RunNotes()
        self.note = QLineEdit(placeholderText=tr("What you tried, and how it went"))
        self.note.setAccessibleName(tr("Notes"))
        self.tags = QLineEdit(placeholderText=tr("baseline, paper"))
        self.tags.setAccessibleName(tr("Tags"))
        self.tags.setToolTip(tr("Tags to search and group runs by, separated by commas or spaces"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for words, field, stretch in ((tr("Notes"), self.note, 3), (tr("Tags"), self.tags, 1)):
            name = label(words, "muted")
            name.setBuddy(field)
            row.addWidget(name)
            row.addWidget(field, stretch)
            field.editingFinished.connect(self._on_edited)

    def show_notes(self, path: Path | None, notes: RunNotes) -> None:
        """Show the notes of the run in a folder, if any; text being typed is kept if the run is the same."""
        if path == self._run and notes == self._stored:
            return
        if path != self._run:
            self._on_edited()
        self._run, self._stored = path, notes
        self.note.setText(notes.note)
        self.tags.setText(", ".join(notes.tags))
        self.setEnabled(path is not None)

    def _on_edited(self) -> None:
        if self._run is None:
            return
        try:
            notes = RunNotes(self.note.text().strip(), tags_of([self.tags.text()]))
        except InputError as error:
            self.message.emit("error", translate_message(str(error)))
            return
        if notes != self._stored:
            self._stored = notes
            self.written.emit(self._run, notes)
