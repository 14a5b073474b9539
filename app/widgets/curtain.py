"""An overlay that dims the window, shows one card above it, and returns the focus when it closes."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QFrame, QWidget

from app import theme

SHADE = 105
"""How strongly the window is dimmed, of 255."""


class ModalOverlay(QWidget):
    """Covers `over`; put content into `card` and position it in `place_card`."""

    closed = Signal()

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self._over = over
        self._before: QWidget | None = None
        self.card = QFrame(self)
        theme.role(self.card, "toast")
        over.installEventFilter(self)
        self.hide()

    def open(self, focus: QWidget) -> None:
        """Show the overlay and take the focus."""
        if self.isHidden():
            self._before = QApplication.focusWidget()
        self.setGeometry(self._over.rect())
        self.raise_()
        self.show()
        self.place_card()
        focus.setFocus(Qt.FocusReason.PopupFocusReason)

    def close_curtain(self) -> None:
        """Hide the overlay and return the focus."""
        if self.isHidden():
            return
        present = QApplication.focusWidget()
        is_ours = present is None or self.isAncestorOf(present)
        self.hide()
        if is_ours and self._before is not None and self._before.isVisible():
            self._before.setFocus(Qt.FocusReason.PopupFocusReason)
        self._before = None
        self.closed.emit()

    def place_card(self) -> None:
        """In the centre, slightly raised."""
        size = self.card.sizeHint().boundedTo(self.size() * 0.92)
        left = (self.width() - size.width()) // 2
        self.card.setGeometry(left, max(16, (self.height() - size.height()) // 3), size.width(), size.height())

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Keep Tab within the card: what is below must not be reachable."""
        stops = [widget for widget in _in_tab_order(self.card) if widget.isVisible() and widget.isEnabled()]
        if stops:
            present = QApplication.focusWidget()
            at = stops.index(present) if present in stops else -1
            stops[(at + (1 if forward else -1)) % len(stops)].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes it; no other key reaches the window below."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_curtain()

    def event(self, event: QEvent) -> bool:
        """Reserve Escape for the overlay rather than a shortcut of the page below."""
        if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click beside the card closes it."""
        if not self.card.geometry().contains(event.position().toPoint()):
            self.close_curtain()

    def wheelEvent(self, event) -> None:
        """Prevent scrolling below."""
        event.accept()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Resize with the covered widget."""
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self.setGeometry(self._over.rect())
            self.place_card()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the shade."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(8, 10, 14, SHADE))


def _in_tab_order(card: QWidget) -> list[QWidget]:
    found, widget = list[QWidget](), card.nextInFocusChain()
    while widget is not None and widget is not card:
        if card.isAncestorOf(widget) and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            found.append(widget)
        widget = widget.nextInFocusChain()
    return found
