"""The header of the New run page: the search for settings, undo and redo, and ways to fill the page."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLineEdit,
    QWidget,
)
from shiboken6 import isValid

from app import theme
from app.core.i18n import tr
from app.pages.new_run.draft_controller import DraftController
from app.widgets.boxes import hbox
from app.widgets.card import label
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.page_layout import PageHeader, fit_words

SLACK = 4
"""Pixels that a text's width may be off."""
SEARCH_WIDTH = 168
"""Pixels of the search field, at most."""


class Header(PageHeader):
    """Tooltips show what would be undone and redone."""

    def __init__(self, controller: DraftController, parent: QWidget | None = None) -> None:
        super().__init__(tr("New run"), tr("Choose data and a model, then start training."), parent)
        self._controller = controller
        self.title.setMinimumWidth(self.title.fontMetrics().horizontalAdvance(self.title.text()))
        self.search = SearchBar()
        self.new = IconButton(tr("New"), "plus", hint=tr("Start over with an empty draft; Undo brings this one back"))
        self.undo, self.redo = IconToolButton("undo", tr("Undo"), size=18), IconToolButton("redo", tr("Redo"), size=18)
        self.open, self.save = IconButton(tr("Open"), "folder"), IconButton(tr("Save"), "save")
        self.open.setToolTip(tr("Open a spec file, or drop one on the page (Ctrl+O)"))
        self.save.setToolTip(tr("Save these settings as a spec file for “burnish train” (Ctrl+S)"))
        self.demo = IconButton(tr("Try the demo"), "bolt")
        self.buttons.addWidget(self.search)
        self._buttons = (self.undo, self.redo, self.new, self.open, self.save, self.demo)
        for button in self._buttons:
            self.buttons.addWidget(button)
        for button in self._words():
            button.setAccessibleName(button.text())
        self.undo.clicked.connect(controller.undo)
        self.redo.clicked.connect(controller.redo)
        self.new.clicked.connect(controller.start_over)
        controller.history_changed.connect(self.show_steps)
        self.show_steps()
        theme.follow(self)

    def _words(self) -> dict[QAbstractButton, str]:
        return {self.save: tr("Save"), self.open: tr("Open"), self.new: tr("New"), self.demo: tr("Try the demo")}

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide button texts before the subtitle is shortened."""
        self.apply_theme()
        super().resizeEvent(event)

    def apply_theme(self) -> None:
        """The same if the text has become larger; without room, there is no subtitle."""
        text = self.subtitle.fontMetrics().horizontalAdvance(self.subtitle.text()) + SLACK
        room = self.width() - self.layout().spacing() - self.buttons.spacing() * len(self._buttons)  # type: ignore[union-attr]
        room -= SEARCH_WIDTH

        def lacks() -> int:
            return sum(button.sizeHint().width() for button in self._buttons) + text - room

        fit_words(self._words(), lacks)
        self.subtitle.setVisible(lacks() <= SLACK)

    def show_steps(self) -> None:
        """Show what can be undone and redone."""
        history = self._controller.history
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


class SearchBar(QWidget):
    """Emits the search text; the number of matches is shown before the field, the sentence that there is none below it."""

    sought = Signal(str)
    stepped = Signal(int)
    """To the next match (1) or the one before (-1)."""
    left = Signal()
    """Nothing will be looked for any more."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = QLineEdit(placeholderText=tr("Find a setting"))
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(SEARCH_WIDTH // 2)
        self.search.setMaximumWidth(SEARCH_WIDTH)
        self.search.setAccessibleName(tr("Find a setting"))
        self.search.setToolTip(tr("By title, key or description, for example “rate” or “training.warmup” (Ctrl+F)"))
        self.search.textChanged.connect(self.sought)
        self.search.installEventFilter(self)
        self.count = label("", "faint")
        self.before = IconToolButton("chevron-up", tr("Previous match (Shift+Enter)"), size=14)
        self.after = IconToolButton("chevron-down", tr("Next match (Enter)"), size=14)
        self.before.clicked.connect(lambda: self.stepped.emit(-1))
        self.after.clicked.connect(lambda: self.stepped.emit(1))
        hbox(self.count, self.before, self.after, self.search, spacing=2, parent=self)
        self.nothing = label("", "sheet", wrap=True)
        self.nothing.hide()
        self.show_count(0, 0)

    def show_count(self, at: int, number: int, instead: str = "") -> None:
        """Show the number of the current match, from 1, and the total; nothing while the search is empty.

        `instead` says why there is no match, if more is known than that.
        """
        text = self.search.text().strip()
        self.count.setText(tr("{at} of {number}", at=at, number=number) if number else tr("None") if text else "")
        for button in (self.before, self.after):
            button.setVisible(number > 1)
        lacking = bool(text) and not number
        self.nothing.setText(
            instead
            or tr(
                "No results for “{text}”. Try a word such as rate, batch or memory, or a key such as training.warmup.",
                text=text,
            )
        )
        self._show_nothing(lacking)

    def _show_nothing(self, shown: bool) -> None:
        """Below the field, over the page, so that nothing moves."""
        if shown:
            self.nothing.setParent(self.window())
            self.nothing.setFixedWidth(theme.pixels(SEARCH_WIDTH) + 80)
            self.nothing.adjustSize()
            corner = self.search.mapTo(self.window(), self.search.rect().bottomRight())
            self.nothing.move(corner.x() - self.nothing.width(), corner.y() + 6)
            self.nothing.raise_()
        self.nothing.setVisible(shown)

    def ask(self) -> None:
        """Focus the search field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def hideEvent(self, event: QHideEvent) -> None:
        """End the search when the page is left, so that all settings are visible again."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.search.clear()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter goes to the next match, Shift+Enter to the previous one, Escape ends the search."""
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
            return True
        if event.key() == Qt.Key.Key_Escape and self.search.text():
            self.left.emit()
            self.search.clear()
            return True
        return False


class UndoKeys(QObject):
    """Passes undo and redo from a field of `page` that has nothing of its own to undo on to the page's shortcuts."""

    def __init__(self, page: QWidget) -> None:
        super().__init__(page)
        self._page = page
        self._watched: QWidget | None = None
        application = QGuiApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    def _on_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        if self._watched is not None and isValid(self._watched):  # a form goes with what it is for
            self._watched.removeEventFilter(self)
        self._watched = new if new is not None and self._page.isAncestorOf(new) else None
        if self._watched is not None:
            self._watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Leave the key to the page unless the field has uncommitted text."""
        if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        undoes, redoes = (event.matches(key) for key in (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo))
        if not (undoes or redoes) or not isinstance(watched, QWidget):
            return False
        if not self._follows_draft(watched) and _has_own(watched, undoes=undoes):
            return False
        event.ignore()
        return True

    def _follows_draft(self, widget: QWidget) -> bool:
        """Whether every keystroke updates the draft: such a field has nothing of its own to undo."""
        parent: QWidget | None = widget
        while parent is not None and parent is not self._page:
            if isinstance(parent, SchemaForm) or parent.property("follows_draft"):
                return True
            parent = parent.parentWidget()
        return False


def _has_own(widget: QWidget, *, undoes: bool) -> bool:
    """Whether a line has uncommitted text that could be undone or redone."""
    line = widget.lineEdit() if isinstance(widget, QComboBox) else widget
    if not isinstance(line, QLineEdit):
        return False
    return line.isUndoAvailable() if undoes else line.isRedoAvailable()
