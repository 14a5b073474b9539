"""The sidebar: the logo, one button per page, and two lines about the engine at the bottom."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.text.elided_label import ElidedLabel

WIDTH, NARROW_WIDTH, ICONS_WIDTH = 212, 172, 60
"""Pixels; the narrow one leaves a window of half a screen to its page, that of icons alone a still smaller one."""
NARROW, TINY = 1040, 880
"""Widths of the window below which the sidebar makes room."""
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

    def show_title(self, shows: bool) -> None:
        """Show the title, or the icon alone."""
        self.setText(self._title if shows else "")

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
            if not self.text():
                area.moveTopRight(QPointF(self.width(), 0))
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
        self._name = label(tr("Burnish"), "logo")
        column.addLayout(self._logo())
        column.addSpacing(16)
        for number, page in enumerate(pages):
            button = NavButton(*page)
            self._group.addButton(button, number)
            column.addWidget(button)
        column.addStretch(1)
        self._heading = label(tr("Engine").upper(), "heading")
        self._engine = ElidedLabel(tr("starting"), "muted")
        column.addWidget(self._heading)
        column.addWidget(self._engine)
        self._group.idClicked.connect(self.page_chosen)

    def _logo(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(4, 0, 0, 0)
        row.setSpacing(9)
        row.addWidget(Logo())
        row.addWidget(self._name)
        row.addStretch(1)
        return row

    def fit(self, window_width: int) -> None:
        """In a narrow window use no more width than the titles need, in a tiny one that of the icons."""
        shows_titles = window_width >= TINY
        for button in self.buttons():
            button.show_title(shows_titles)
        for part in (self._name, self._heading, self._engine):
            part.setVisible(shows_titles)
        if not shows_titles:
            self.setFixedWidth(ICONS_WIDTH)
            return
        widest = max(button.minimumSizeHint().width() for button in self.buttons()) + MARGIN * 2
        self.setFixedWidth(WIDTH if window_width >= NARROW else max(NARROW_WIDTH, min(WIDTH, widest)))

    def buttons(self) -> list[NavButton]:
        """The pages' buttons, in order."""
        return [self._group.button(number) for number in range(len(self._group.buttons()))]  # type: ignore[misc]

    def set_page(self, number: int) -> None:
        """Mark the current page."""
        self._group.button(number).setChecked(True)

    def set_badge(self, number: int, count: int, what: str) -> None:
        """Set a page's number of unseen items; 0 removes the badge."""
        self.buttons()[number].set_badge(count, what)

    def set_engine(self, text: str) -> None:
        """Show what the engine is doing."""
        self._engine.setText(text)
