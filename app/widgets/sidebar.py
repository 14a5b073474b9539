"""The sidebar: the logo, one button per page, and two lines about the engine at the bottom."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.text.elided_label import ElidedLabel

WIDTH, NARROW_WIDTH = 212, 172
"""Pixels; the narrow one leaves a window of half a screen to its page."""
BADGE, MARGIN = 18, 12
MOST = 100


class Logo(QWidget):
    """The small Burnish logo: a falling curve that ends in a bright point."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedSize(22, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Four falling bars, the last one bold."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            accent = theme.color("accent")
            for number, (height, strength) in enumerate([(18, 0.30), (12, 0.48), (8, 0.70), (5, 1.0)]):
                accent.setAlphaF(strength)
                painter.setBrush(accent)
                painter.drawRoundedRect(QRectF(1 + number * 5.2, 20 - height, 4, height), 2, 2)


class NavButton(QPushButton):
    """A button for a page."""

    def __init__(self, title: str, icon: str, shortcut: str) -> None:
        super().__init__(title)
        theme.follow(self)
        self._icon = icon
        theme.role(self, "nav")
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setIconSize(QSize(26, 18))
        self.setToolTip(tr("{title} ({keys})", title=title, keys=_keys(shortcut)))
        self._title, self._badge = title, 0
        self.setAccessibleName(title)
        self.toggled.connect(self.apply_theme)
        self.apply_theme()

    def set_badge(self, count: int, what: str) -> None:
        """Set the number of unseen items, with a description for screen readers."""
        self._badge = count
        self.setAccessibleName(
            tr("{title}, {count} {what}", title=self._title, count=count, what=what) if count else self._title
        )
        self.update()

    def badge(self) -> int:
        """The number shown; 0 if there is none."""
        return self._badge

    def paintEvent(self, event: QPaintEvent) -> None:
        """The button, with its badge on the right."""
        super().paintEvent(event)
        if not self._badge:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(theme.font(11, QFont.Weight.DemiBold))
            words = str(self._badge) if self._badge < MOST else f"{MOST - 1}+"
            width = max(BADGE, painter.fontMetrics().horizontalAdvance(words) + 10)
            area = QRectF(self.width() - width - 10, (self.height() - BADGE) / 2, width, BADGE)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            painter.drawRoundedRect(area, BADGE / 2, BADGE / 2)
            painter.setPen(theme.color("on_accent"))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, words)

    def apply_theme(self) -> None:
        """The icon has the accent colour on the current page."""
        self.setIcon(theme.icon(self._icon, "accent_text" if self.isChecked() else "muted", 18, room=8))


def _keys(shortcut: str) -> str:
    return QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)


class Sidebar(QFrame):
    """`pages` are (title, icon, shortcut)."""

    page_chosen = Signal(int)

    def __init__(self, pages: Sequence[tuple[str, str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "sidebar")
        self.setFixedWidth(WIDTH)
        self.setAccessibleName(tr("Pages"))
        self._group = QButtonGroup(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 16, MARGIN, 14)
        column.setSpacing(3)
        column.addLayout(self._logo())
        column.addSpacing(16)
        for number, page in enumerate(pages):
            button = NavButton(*page)
            self._group.addButton(button, number)
            column.addWidget(button)
        column.addStretch(1)
        column.addWidget(label(tr("Engine").upper(), "heading"))
        self._engine = ElidedLabel(tr("starting"), "muted")
        column.addWidget(self._engine)
        self._group.idClicked.connect(self.page_chosen)

    def _logo(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(4, 0, 0, 0)
        row.setSpacing(9)
        row.addWidget(Logo())
        row.addWidget(label(tr("Burnish"), "logo"))
        row.addStretch(1)
        return row

    def set_narrow(self, narrow: bool) -> None:
        """Use no more width than the titles need."""
        widest = max(button.minimumSizeHint().width() for button in self.buttons()) + MARGIN * 2
        self.setFixedWidth(max(NARROW_WIDTH, min(WIDTH, widest)) if narrow else WIDTH)

    def buttons(self) -> list[QPushButton]:
        """The pages' buttons, in order."""
        return [self._group.button(number) for number in range(len(self._group.buttons()))]  # type: ignore[misc]

    def set_page(self, number: int) -> None:
        """Mark the current page."""
        self._group.button(number).setChecked(True)

    def set_badge(self, number: int, count: int, what: str) -> None:
        """Set a page's number of unseen items; 0 removes the badge."""
        button = self._group.button(number)
        assert isinstance(button, NavButton)
        button.set_badge(count, what)

    def set_engine(self, text: str) -> None:
        """Show what the engine is doing."""
        self._engine.setText(text)
