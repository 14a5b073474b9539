"""The frame that shows where a drop would go and what it would become, and a drop target."""

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.accessibility import Role
from app.widgets.boxes import hbox, vbox
from app.widgets.card import label
from app.widgets.icon_label import IconButton, IconLabel

RADIUS, MARGIN = 10, 6


class DropHint(QWidget):
    """Covers a page while something is dragged over it; transparent to the mouse."""

    def __init__(self, page: QWidget) -> None:
        super().__init__(page)
        self._page = page
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._target, self._words = QRect(), ""
        self.hide()

    def words(self) -> str:
        """What a drop would become; empty while nothing is dragged."""
        return self._words if self.isVisible() else ""

    def show_target(self, target: QRect, words: str) -> None:
        """Frame a part of the page."""
        if self.isVisible() and (target, words) == (self._target, self._words):
            return
        self._target, self._words = target, words
        self.setGeometry(self._page.rect())
        self.show()
        self.raise_()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A translucent background, a dashed frame, and the text on a pill."""
        inside = self._target.adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN) if self._target.height() > 80 else self._target
        ground = QColor(theme.color("accent_soft"))
        ground.setAlphaF(0.72)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setBrush(ground)
            painter.setPen(QPen(theme.color("accent"), 2, Qt.PenStyle.DashLine))
            painter.drawRoundedRect(inside, RADIUS, RADIUS)
            painter.setFont(theme.font(14, QFont.Weight.DemiBold))
            words = painter.fontMetrics().boundingRect(self._words)
            pill = QRect(0, 0, min(words.width() + 36, self.width()), 34)
            pill.moveCenter(inside.center())
            pill.moveLeft(max(0, min(pill.left(), self.width() - pill.width())))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            painter.drawRoundedRect(pill, 17, 17)
            painter.setPen(theme.color("on_accent"))
            painter.drawText(pill, Qt.AlignmentFlag.AlignCenter, self._words)


class DropZone(QWidget):
    """A dashed area with a sentence, for what is dropped; buttons choose files or a folder instead."""

    spoken_role = Role.Grouping

    files_requested = Signal()
    folder_requested = Signal()

    def __init__(self, title: str, sentence: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.files = IconButton(tr("Choose files…"), "table", clicked=self.files_requested)
        self.folder = IconButton(tr("Choose a folder…"), "folder", clicked=self.folder_requested)
        self.setAccessibleName(title)
        self.setAccessibleDescription(sentence)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 18)
        column.setSpacing(6)
        column.addStretch(1)
        icon = IconLabel("download", "accent", 26)
        for part in (icon, label(title, "section"), label(sentence, "muted", wrap=True)):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.addWidget(part)
        column.addSpacing(8)
        column.addLayout(hbox(1, vbox(self.files, self.folder, spacing=8), 1))
        column.addStretch(1)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The dashed frame."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.color("border_strong"), 1.5, Qt.PenStyle.DashLine))
            painter.setBrush(theme.color("card_alternate"))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), RADIUS, RADIUS)
