"""Short messages that appear in the lower right corner of the window and disappear by themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.core.setting_titles import in_titles
from app.widgets.card import label
from app.widgets.desktop import open_folder
from app.widgets.icon_label import IconButton, IconLabel, IconToolButton

_TOKEN = {"info": "info", "success": "success", "warning": "warning", "error": "danger"}
_ICON = {"info": "info", "success": "check", "warning": "warning", "error": "error"}
_SHOWN_MS = {"info": 4_000, "success": 4_000, "warning": 8_000, "error": 12_000}
ACTION_MS = 12_000
"""A message with a button stays until a hand can be at the mouse."""
MOST = 4
WIDTH, MARGIN, SPACING = 380, 24, 8
"""Pixels of a message, and of the room beside and between them."""
_PLACING = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide)


@dataclass(frozen=True)
class ToastAction:
    """An action that a message offers."""

    title: str
    icon: str
    run: Callable[[], object]


class Toast(QFrame):
    """One message, optionally with a button; hovering keeps it open. `done` is emitted on expiry, use or close."""

    done = Signal()

    def __init__(self, kind: str, text: str, parent: QWidget, action: ToastAction | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "toast")
        self.kind, self.text = kind, text
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 11, 8, 11)
        row.setSpacing(10)
        row.addWidget(IconLabel(_ICON[kind], _TOKEN[kind], 18), 0, Qt.AlignmentFlag.AlignVCenter)
        sentence = label(text, wrap=True, selectable=True)
        row.addLayout(self._words(sentence, action), 1)
        close = IconToolButton("close", tr("Close"), "faint", 12)
        close.clicked.connect(self.done)
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.setFixedWidth(WIDTH)
        self.setAccessibleName(text)
        self._timer = QTimer(self, singleShot=True, interval=ACTION_MS if action else _SHOWN_MS[kind])
        self._timer.timeout.connect(self.done)
        self._timer.start()

    def _words(self, sentence: QWidget, action: ToastAction | None) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addWidget(sentence)
        self.button = None if action is None else IconButton(action.title, action.icon, "quiet")
        if action is not None and self.button is not None:
            self.button.clicked.connect(action.run)
            self.button.clicked.connect(self.done)
            column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        return column

    def fit(self) -> None:
        """As high as the wrapped sentence needs."""
        self.ensurePolished()
        row = self.layout()
        assert row is not None
        self.setFixedHeight(row.totalHeightForWidth(WIDTH))

    def enterEvent(self, event) -> None:
        """Pause while the mouse is over it."""
        self._timer.stop()

    def leaveEvent(self, event) -> None:
        """Continue when the mouse leaves."""
        self._timer.start()


class ToastOverlay(QWidget):
    """Covers `parent`'s corner; `show_message` stacks the newest at the bottom."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._under = parent
        self._toasts: list[Toast] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(SPACING)
        parent.installEventFilter(self)
        self._above: list[QWidget] = []
        self.hide()

    def stay_above(self, widget: QWidget) -> None:
        """Do not cover a widget in the corner, such as a bar with a button, while it is visible."""
        self._above.append(widget)
        moving: QWidget | None = widget  # it also moves with what contains it, and hears nothing of that
        while moving is not None and moving is not self._under:
            moving.installEventFilter(self)
            moving = moving.parentWidget()

    def messages(self) -> list[str]:
        """The current texts, oldest first."""
        return [toast.text for toast in self._toasts]

    def show_message(self, kind: str, text: str, action: ToastAction | None = None) -> None:
        """Show one sentence; kind is info, success, warning or error. A duplicate is not stacked."""
        text = in_titles(text)
        for old in [toast for toast in self._toasts if toast.text == text]:
            self._drop(old)
        for old in self._toasts[: -(MOST - 1)]:
            self._drop(old)
        toast = Toast(kind if kind in _TOKEN else "info", text, self, action)
        toast.done.connect(lambda: self._drop(toast))
        self._toasts.append(toast)
        self._column.addWidget(toast)
        self._place()

    def show_written(self, text: str, path: str) -> None:
        """Show what was written, with a link to its folder."""
        folder = str(Path(path).parent)
        self.show_message("success", text, ToastAction(tr("Open folder"), "folder", lambda: self._open(folder)))

    def _open(self, folder: str) -> None:
        if problem := open_folder(folder):
            self.show_message("info", problem)

    def _drop(self, toast: Toast) -> None:
        if toast not in self._toasts:
            return
        self._toasts.remove(toast)
        self._column.removeWidget(toast)
        toast.hide()
        toast.deleteLater()
        self._place()

    def _place(self) -> None:
        self.setVisible(bool(self._toasts))
        if not self._toasts:
            return
        for toast in self._toasts:
            toast.fit()
        height = sum(toast.height() for toast in self._toasts) + SPACING * (len(self._toasts) - 1)
        area = self._under.rect()
        place = QRect(area.right() - WIDTH - MARGIN, area.bottom() - MARGIN - height, WIDTH, height)
        bars = [QRect(bar.mapTo(self._under, QPoint(0, 0)), bar.size()) for bar in self._above if bar.isVisible()]
        for bar in sorted(bars, key=QRect.bottom, reverse=True):
            if place.intersects(bar.adjusted(0, -SPACING, 0, SPACING)):
                place.moveBottom(bar.top() - SPACING)
        self.setGeometry(place)
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in the corner when the window is resized, and above what is there when that is shown or moved."""
        if event.type() in _PLACING:
            self._place()
        return False
