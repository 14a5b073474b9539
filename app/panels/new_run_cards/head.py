"""Owns the top of the New run page: undo and redo in words, and the ways to fill the page."""

from PySide6.QtWidgets import QWidget

from app.panels.new_run_cards.undoing import Undoing
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.page_header import PageHeader


class Head(PageHeader):
    """What would be undone stands in the button's hint."""

    def __init__(self, undoing: Undoing, parent: QWidget | None = None) -> None:
        super().__init__("New run", "Choose a task, your data and a model; see what it costs; start.", parent)
        self._undoing = undoing
        self.undo, self.redo = IconToolButton("undo", "Undo", size=18), IconToolButton("redo", "Redo", size=18)
        self.open, self.save = IconButton("Open", "folder"), IconButton("Save", "save")
        self.open.setToolTip("Go on with a spec from a file; dropping one on the page does the same (Ctrl+O)")
        self.save.setToolTip("Keep all of this as a spec file that “burnish train” takes (Ctrl+S)")
        self.demo = IconButton("Try the demo", "bolt")
        for button in (self.undo, self.redo, self.open, self.save, self.demo):
            self.buttons.addWidget(button)
        self.undo.clicked.connect(undoing.undo)
        self.redo.clicked.connect(undoing.redo)
        undoing.changed.connect(self.show_steps)
        self.show_steps()

    def show_steps(self) -> None:
        """What can be undone and redone now."""
        history = self._undoing.history
        steps = (
            (self.undo, history.undo_words, f"Undo {history.undo_words} (Ctrl+Z)", "Nothing to undo"),
            (self.redo, history.redo_words, f"Redo {history.redo_words} (Ctrl+Shift+Z)", "Nothing to redo"),
        )
        for button, words, hint, nothing in steps:
            button.setEnabled(bool(words))
            button.setToolTip(hint if words else nothing)
            button.setAccessibleName(hint if words else nothing)
