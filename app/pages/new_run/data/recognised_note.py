"""The note that says what dropped or named data was taken for, with the way back, and the task that goes with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QWidget

from app import theme
from app.core.draft import data_messages
from app.core.draft.setting_titles import in_titles
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.icon_label import IconButton, IconLabel
from backend.contract.rpc.data import RecognisedData


class RecognisedNote(QFrame):
    """Hidden while there is nothing to say; its buttons stand below the words, which may be long."""

    undo_asked = Signal()
    """Whatever was recognised shall be as it was before."""
    task_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "banner-info")
        self.words = label("", wrap=True, selectable=True)
        self.task, self.undo = IconButton("", "target", "quiet"), IconButton(tr("Undo"), "undo", "quiet")
        self.undo.setToolTip(tr("Choose again what was chosen before"))
        self.task.clicked.connect(self.task_asked)
        self.undo.clicked.connect(self.undo_asked)
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 9, 8, 5)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        grid.addWidget(IconLabel("info", "info", 18), 0, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.words, 0, 1)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.task)
        buttons.addWidget(self.undo)
        grid.addLayout(buttons, 1, 1)
        self.hide()

    def text(self) -> str:
        """What is said; empty where nothing is."""
        return self.words.text()

    def say(self, found: RecognisedData, task: str) -> None:
        """What was taken, and what was left out; `task` names another one that such data is made for."""
        warnings = map(in_titles, found.warnings)
        said = " ".join(filter(None, (found.words, data_messages.left_out_line(found.left_out), *warnings)))
        self.words.setText(said)
        self.setAccessibleName(said)
        self.setToolTip("\n".join(f"{one.name}: {one.reason}" for one in found.left_out))
        self.task.setText(tr("Switch to {replace}", replace=task.replace("_", " ")))
        self.task.setVisible(bool(task))
        self.show()

    def forget(self) -> None:
        """Say nothing any more."""
        self.words.setText("")
        self.hide()
