"""Owns the ring around whatever has the keyboard's focus and does not show it by its own style."""

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QTextEdit,
    QWidget,
)

from app import theme
from app.widgets.page_area import PageArea

STYLED = (QAbstractButton, QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit)
"""The style sheet draws their focus."""
NO_CHILDREN = (QSplitter, QTabWidget, QStackedWidget, PageArea)
"""Containers that would take the ring for one of their parts, and what is a page as a whole."""
PAGES = ("page", "scrolled")
"""Names of a page, and of what it scrolls."""


class FocusRing(QWidget):
    """One for the window: a child of what has the focus, drawn over it, deaf to the mouse."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._window = window
        self._around: QWidget | None = None
        self.hide()
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus_changed)

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        by_mouse = QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton
        if now is None or by_mouse or now.window() is not self._window or not _needs_ring(now):
            self._leave()
            return
        self._leave()
        self._around = now
        self.setParent(now)
        now.installEventFilter(self)
        self.setGeometry(now.rect())
        self.show()
        self.raise_()

    def _leave(self) -> None:
        around, self._around = self._around, None
        if around is not None:
            around.removeEventFilter(self)
            self.hide()
            self.setParent(self._window)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """As large as what it goes around; it must not die with it."""
        if self._around is not None and watched is self._around:
            if event.type() == QEvent.Type.Resize:
                self.setGeometry(self._around.rect())
            elif event.type() == QEvent.Type.DeferredDelete:
                self._leave()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """A thin line in the accent colour, just inside."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)


def _needs_ring(widget: QWidget) -> bool:
    if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        return False  # nobody came here by the keyboard
    if isinstance(widget, QTextEdit):
        return widget.property("role") == "marked"  # the others have a border of their own
    return not isinstance(widget, (*STYLED, *NO_CHILDREN)) and widget.objectName() not in PAGES
