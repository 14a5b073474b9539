"""Owns the top of the New run page: undo and redo in words, and the ways to fill the page."""

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.pages.new_run.undoing import Undoing
from app.widgets.card import label
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.page_header import PageHeader
from app.widgets.text.fitting_words import fit_words

DONE, OPEN, WRONG = "done", "open", "wrong"
_ICONS = {DONE: ("check", "success"), OPEN: ("circle", "faint"), WRONG: ("error", "danger")}
_WORDS = {
    DONE: tr("Nothing is missing here."),
    OPEN: tr("Something is still to be chosen here."),
    WRONG: tr("Something is wrong here."),
}

SLACK = 4
"""Pixels that a text's width may be off."""


class Header(PageHeader):
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


class JumpBar(QWidget):
    """Emits `jumped` with the name of a card, and what is looked for."""

    jumped = Signal(str)
    sought = Signal(str)
    stepped = Signal(int)
    """To the next match (1) or the one before (-1)."""
    left = Signal()
    """Nothing will be looked for any more."""

    def __init__(self, cards: Mapping[str, str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons = {name: QPushButton(title) for name, title in cards.items()}
        self._states = dict.fromkeys(cards, OPEN)
        self.search = QLineEdit(placeholderText=tr("Find a setting"))
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(260)
        self.search.setMinimumWidth(160)
        self.search.setAccessibleName(tr("Find a setting"))
        self.search.setToolTip(tr("By title, key or description, for example “rate” or “training.warmup” (Ctrl+F)"))
        self.search.textChanged.connect(self.sought)
        self.search.installEventFilter(self)
        self.count = label("", "faint")
        self.before = IconToolButton("chevron-up", tr("The match before (Shift+Enter)"))
        self.after = IconToolButton("chevron-down", tr("The next match (Enter)"))
        self.before.clicked.connect(lambda: self.stepped.emit(-1))
        self.after.clicked.connect(lambda: self.stepped.emit(1))
        self.nothing = label("", "muted", wrap=True)
        self.nothing.hide()
        self._place()
        self.apply_theme()
        self.show_count(0, 0)

    def _place(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(4)
        for name, button in self.buttons.items():
            theme.role(button, "chip")
            button.clicked.connect(lambda _=False, name=name: self._jump(name))
            row.addWidget(button)
        row.addStretch(1)
        for widget in (self.count, self.before, self.after):
            row.addWidget(widget)
        row.addWidget(self.search, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(row)
        column.addWidget(self.nothing)

    def _jump(self, name: str) -> None:
        self.search.clear()  # what it leaves out could not be jumped to
        self.jumped.emit(name)

    def show_states(self, states: Mapping[str, str]) -> None:
        """How each card stands: done, open or wrong."""
        if any(self._states[name] != state for name, state in states.items()):
            self._states.update(states)
            self.apply_theme()

    def show_count(self, at: int, number: int, instead: str = "") -> None:
        """The match that is looked at, from 1, and how many there are; none are silent while nothing is typed.

        `instead` says why there is none, where more is known than that nothing is called so.
        """
        text = self.search.text().strip()
        self.count.setText(tr("{at} of {number}", at=at, number=number) if number else tr("None") if text else "")
        for button in (self.before, self.after):
            button.setVisible(number > 1)
        lacking = bool(text) and not number
        self.nothing.setText(
            instead
            or tr(
                "No setting is called “{text}”. Try a word such as rate, batch or memory, or a key such "
                "as training.warmup.",
                text=text,
            )
        )
        self.nothing.setVisible(lacking)

    def ask(self) -> None:
        """Let somebody type what to look for."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def hideEvent(self, event: QHideEvent) -> None:
        """The page is left: whoever comes back sees all settings."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.search.clear()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter goes on, Shift+Enter back, Escape ends the search."""
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

    def apply_theme(self) -> None:
        """The states' icons in the present colours."""
        for name, button in self.buttons.items():
            state = self._states[name]
            icon, token = _ICONS[state]
            button.setIcon(theme.icon(icon, token, 14))
            button.setToolTip(_WORDS[state])
            button.setAccessibleDescription(_WORDS[state])
