"""Owns undo and redo of the New run page: every change of the draft is a step, and letters in a field are one."""

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QWidget

from app.core.draft.draft import Draft, DraftState
from app.core.draft.draft_history import History, Step
from app.core.draft.preset_overlay import Laid, Overlay
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.catalog import Preset

Moment = tuple[DraftState, Laid | None, Preset | None]


class Undoing(QObject):
    """`page` is where the draft is edited."""

    changed = Signal()
    """What can be undone and redone may be another."""
    went = Signal(object)
    """The draft was put back or forth; its values before."""

    def __init__(self, draft: Draft, overlay: Overlay, page: QWidget) -> None:
        super().__init__(page)
        self._draft, self._overlay, self._page = draft, overlay, page
        self.history = History(self._moment())
        self._depth = 0
        self._watched: QWidget | None = None
        application = QGuiApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    def _moment(self) -> Moment:
        return self._draft.state(), self._overlay.laid, self._overlay.preset

    # Steps

    @contextmanager
    def step(self, words: str, key: str = "") -> Iterator[None]:
        """What changes the draft within is one step; `key` names the field that somebody types into."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if not self._depth:
            self.history.record(self._moment(), Step(words, key))
            self.changed.emit()

    def amend(self) -> None:
        """What was found out has completed the draft; nobody did it, so it is no step."""
        if not self._depth:
            self.history.amend(self._moment())

    def begin(self) -> None:
        """What is there now is where everything begins."""
        self.history = History(self._moment())
        self.changed.emit()

    def undo(self) -> None:
        """Take back the last step; something wrong that was only typed goes first."""
        forms = self._page.findChildren(SchemaForm)
        for form in forms:
            form.flush()
        wrong = [form for form in forms if form.forget_typed()]
        if not wrong and self.history.undo_words:
            self._go(self.history.undo())

    def redo(self) -> None:
        """Do again what was undone last."""
        if self.history.redo_words:
            self._go(self.history.redo())

    def _go(self, moment: Moment) -> None:
        before = self._draft.values()
        state, self._overlay.laid, self._overlay.preset = moment
        self._draft.restore(state)
        self.changed.emit()
        self.went.emit(before)

    # Keys

    def _on_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        if self._watched is not None:
            self._watched.removeEventFilter(self)
        self._watched = new if new is not None and self._page.isAncestorOf(new) else None
        if self._watched is not None:
            self._watched.installEventFilter(self)

    def _follows_draft(self, widget: QWidget) -> bool:
        """Whether every letter goes into the draft: such a field has nothing of its own to undo."""
        parent: QWidget | None = widget
        while parent is not None and parent is not self._page:
            if isinstance(parent, SchemaForm) or parent.property("follows_draft"):
                return True
            parent = parent.parentWidget()
        return False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Undo and redo pass a field by that has none of its own, so that the page's shortcut gets them."""
        if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        undoes, redoes = (event.matches(key) for key in (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo))
        if not (undoes or redoes) or not isinstance(watched, QWidget):
            return False
        if not self._follows_draft(watched) and _has_own(watched, undoes=undoes):
            return False
        event.ignore()
        return True


def _has_own(widget: QWidget, *, undoes: bool) -> bool:
    """Whether a line has letters that are not taken over yet and could be undone or redone."""
    line = widget.lineEdit() if isinstance(widget, QComboBox) else widget
    if not isinstance(line, QLineEdit):
        return False
    return line.isUndoAvailable() if undoes else line.isRedoAvailable()
