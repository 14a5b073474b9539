"""Owns the short messages that appear over the window's lower right corner and go by themselves."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.icon_label import IconLabel, IconToolButton

_TOKEN = {"info": "info", "success": "success", "warning": "warning", "error": "danger"}
_ICON = {"info": "info", "success": "check", "warning": "warning", "error": "error"}
_SHOWN_MS = {"info": 4_000, "success": 4_000, "warning": 8_000, "error": 12_000}
MOST = 4
WIDTH = 380


class Toast(QFrame):
    """One message; the mouse over it keeps it."""

    def __init__(self, kind: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        theme.role(self, "toast")
        self.kind, self.text = kind, text
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 11, 8, 11)
        row.setSpacing(10)
        row.addWidget(IconLabel(_ICON[kind], _TOKEN[kind], 18), 0, Qt.AlignmentFlag.AlignTop)
        sentence = label(text, wrap=True, selectable=True)
        row.addWidget(sentence, 1)
        close = IconToolButton("close", "Close this message", "faint", 12)
        close.clicked.connect(self.deleteLater)
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.setFixedWidth(WIDTH)
        self.setAccessibleName(text)
        self._timer = QTimer(self, singleShot=True, interval=_SHOWN_MS[kind])
        self._timer.timeout.connect(self.deleteLater)
        self._timer.start()

    def fit(self) -> None:
        """As high as the wrapped sentence needs."""
        self.ensurePolished()
        row = self.layout()
        assert row is not None
        self.setFixedHeight(row.totalHeightForWidth(WIDTH))

    def enterEvent(self, event) -> None:
        """Wait while someone reads."""
        self._timer.stop()

    def leaveEvent(self, event) -> None:
        """Go on after reading."""
        self._timer.start()


class ToastOverlay(QWidget):
    """Lies over `parent`'s corner; `show_message` stacks the newest below."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._under = parent
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        parent.installEventFilter(self)
        self.hide()

    def messages(self) -> list[str]:
        """The texts shown now, oldest first."""
        return [toast.text for toast in self._toasts()]

    def show_message(self, kind: str, text: str) -> None:
        """Show one sentence; kind is info, success, warning or error. The same sentence is not stacked twice."""
        for old in self._toasts():
            if old.text == text:
                self._drop(old)
        for old in self._toasts()[: -(MOST - 1)]:
            self._drop(old)
        toast = Toast(kind if kind in _TOKEN else "info", text, self)
        toast.destroyed.connect(self._place)
        self._column.addWidget(toast)
        self._place()

    def _toasts(self) -> list[Toast]:
        items = (self._column.itemAt(i) for i in range(self._column.count()))
        widgets = (item.widget() for item in items if item is not None)
        return [widget for widget in widgets if isinstance(widget, Toast)]

    def _drop(self, toast: Toast) -> None:
        self._column.removeWidget(toast)
        toast.hide()
        toast.deleteLater()

    def _place(self) -> None:
        toasts = self._toasts()
        self.setVisible(bool(toasts))
        if not toasts:
            return
        for toast in toasts:
            toast.fit()
        height = sum(toast.height() for toast in toasts) + 8 * (len(toasts) - 1)
        area = self._under.rect()
        self.setGeometry(area.right() - WIDTH - 20, area.bottom() - height - 20, WIDTH, height)
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in the corner when the window is resized."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False
