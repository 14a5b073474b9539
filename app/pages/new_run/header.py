"""Owns the top of the New run page: undo and redo in words, and the ways to fill the page."""

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.core.i18n import tr
from app.pages.new_run.undoing import Undoing
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.page_header import PageHeader
from app.widgets.text.fitting_words import fit_words

SLACK = 4
"""Pixels that a text's width may be off."""


class Head(PageHeader):
    """What would be undone stands in the button's hint."""

    def __init__(self, undoing: Undoing, parent: QWidget | None = None) -> None:
        super().__init__(tr("New run"), tr("Choose a task, your data and a model; see what it costs; start."), parent)
        self._undoing = undoing
        self.undo, self.redo = IconToolButton("undo", tr("Undo"), size=18), IconToolButton("redo", tr("Redo"), size=18)
        self.open, self.save = IconButton(tr("Open"), "folder"), IconButton(tr("Save"), "save")
        self.open.setToolTip(tr("Go on with a spec from a file; dropping one on the page does the same (Ctrl+O)"))
        self.save.setToolTip(tr("Keep all of this as a spec file that “burnish train” takes (Ctrl+S)"))
        self.demo = IconButton(tr("Try the demo"), "bolt")
        for button in (self.undo, self.redo, self.open, self.save, self.demo):
            self.buttons.addWidget(button)
        for button in self._words():
            button.setAccessibleName(button.text())
        self.undo.clicked.connect(undoing.undo)
        self.redo.clicked.connect(undoing.redo)
        undoing.changed.connect(self.show_steps)
        self.show_steps()

    def _words(self) -> dict[QAbstractButton, str]:
        return {self.save: tr("Save"), self.open: tr("Open")}

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Buttons lose their words before the line below the title does."""
        buttons = (self.undo, self.redo, self.open, self.save, self.demo)
        text = self.subtitle.fontMetrics().horizontalAdvance(self.subtitle.text()) + SLACK
        room = event.size().width() - self.layout().spacing() - self.buttons.spacing() * (len(buttons) - 1)  # type: ignore[union-attr]
        fit_words(self._words(), lambda: sum(button.sizeHint().width() for button in buttons) + text - room)
        super().resizeEvent(event)

    def show_steps(self) -> None:
        """What can be undone and redone now."""
        history = self._undoing.history
        steps = (
            (
                self.undo,
                history.undo_words,
                tr("Undo {undo_words} (Ctrl+Z)", undo_words=history.undo_words),
                tr("Nothing to undo"),
            ),
            (
                self.redo,
                history.redo_words,
                tr("Redo {redo_words} (Ctrl+Shift+Z)", redo_words=history.redo_words),
                tr("Nothing to redo"),
            ),
        )
        for button, words, hint, nothing in steps:
            button.setEnabled(bool(words))
            button.setToolTip(hint if words else nothing)
            button.setAccessibleName(hint if words else nothing)
