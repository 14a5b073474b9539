"""The dialog that lists all changed settings; each can be reset, or shown on the page."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app import theme
from app.core.draft.draft_settings import Difference, value_words
from app.core.i18n import tr
from app.pages.new_run.draft_controller import DraftController
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.elided_label import ElidedLabel

HEADER = (tr("Setting"), tr("Now"), tr("Default"))


class ChangesDialog(QDialog):
    """Stays open beside the page and follows its draft."""

    setting_chosen = Signal(str)
    """The key of a setting to show."""

    def __init__(self, controller: DraftController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Changed settings"))
        self.resize(620, 480)
        self._controller = controller
        self._changes: Sequence[Difference] = ()
        self.title = label("", "section")
        self.reset_all = IconButton(tr("Reset all"), "undo")
        self.reset_all.setAutoDefault(False)
        self.reset_all.clicked.connect(lambda: controller.reset([one.setting.key for one in self._changes]))
        self.nothing = EmptyState(
            "check", tr("All settings have their default values"), tr("Settings that you change are listed here.")
        )
        self._area = QScrollArea(widgetResizable=True)
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.reset_all)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(12)
        column.addLayout(top)
        column.addWidget(self._area, 1)
        column.addWidget(self.nothing, 1)
        controller.history_changed.connect(self.follow)

    def show_changes(self) -> None:
        """Show all changes, beside the page."""
        self._show(self._controller.differences())
        self.show()
        self.raise_()

    def follow(self) -> None:
        """Update for a changed draft."""
        if self.isVisible():
            self._show(self._controller.differences())

    def _show(self, changes: Sequence[Difference]) -> None:
        self._changes = changes
        self.title.setText(
            tr("1 setting is changed")
            if len(changes) == 1
            else tr("{number} settings are changed", number=len(changes))
        )
        for widget in (self.title, self.reset_all, self._area):
            widget.setVisible(bool(changes))
        self.nothing.setVisible(not changes)
        self._area.setWidget(self._rows(changes))

    def _rows(self, changes: Sequence[Difference]) -> QWidget:
        inside = QWidget()
        inside.setObjectName("scrolled")
        grid = QGridLayout(inside)
        grid.setContentsMargins(0, 0, 8, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        for column, words in enumerate(HEADER):
            grid.addWidget(label(words, "caption"), 0, column)
            grid.setColumnStretch(column, (4, 3, 3)[column])
        for row, change in enumerate(changes, start=1):
            for column, widget in enumerate(self._cells(change)):
                grid.addWidget(widget, row, column)
        grid.setRowStretch(len(changes) + 1, 1)
        return inside

    def _cells(self, change: Difference) -> list[QWidget]:
        key, title = change.setting.key, change.setting.title
        name = QPushButton(title)
        theme.role(name, "link")
        name.setAutoDefault(False)
        name.setToolTip(tr("Go to {key}", key=key))
        name.clicked.connect(lambda: self.setting_chosen.emit(key))
        now = ElidedLabel(value_words(change.after, 200), "strong", Qt.TextElideMode.ElideMiddle)
        default = ElidedLabel(value_words(change.before, 200), "muted", Qt.TextElideMode.ElideMiddle)
        back = IconToolButton(
            "undo",
            tr("Reset {title} to {value_words}", title=title, value_words=value_words(change.before)),
            "faint",
            14,
        )
        back.clicked.connect(lambda: self._controller.reset([key]))
        return [name, now, default, back]
