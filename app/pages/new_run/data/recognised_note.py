"""Says what dropped data was taken for, which other task it looks made for, and lets both be changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QPushButton, QWidget

from app import theme
from app.core import formatting
from app.core.backend_words import capitalize
from app.core.draft import data_messages
from app.core.i18n import inside, tr
from app.core.setting_titles import in_titles
from app.widgets.boxes import ButtonRow
from app.widgets.card import label
from app.widgets.icon_label import IconButton, IconLabel
from backend.contract.catalog import TaskEntry
from backend.contract.rpc.data import RecognisedData

MOST_TASKS = 2


@dataclass(frozen=True)
class TaskOffer:
    """A sentence about the task, and the tasks to switch to with the texts of their buttons."""

    sentence: str
    buttons: Sequence[tuple[str, str]] = ()


NO_OFFER = TaskOffer("")


def offer_switch(tasks: Sequence[TaskEntry], reason: str = "") -> TaskOffer:
    """Offer other tasks for the data, for this reason if the words about the data do not say it."""
    tasks = tasks[:MOST_TASKS]
    titles = [inside(task.title) for task in tasks]
    words = tr(" or ").join(titles)
    sentence = (
        tr("{reason}, so it looks like data for {task}.", reason=capitalize(reason), task=words) if reason else ""
    )
    return TaskOffer(
        sentence,
        [(task.name, tr("Switch to {task}", task=title)) for task, title in zip(tasks, titles, strict=True)],
    )


def offer_return(task: TaskEntry, before: TaskEntry, reason: str = "", others: Sequence[TaskEntry] = ()) -> TaskOffer:
    """Say that the data has decided the task; offer others that it suits as well, and the one before."""
    title = inside(task.title)
    switches = [(one.name, tr("Switch to {task}", task=inside(one.title))) for one in others[: MOST_TASKS - 1]]
    return TaskOffer(
        tr("The task is now {task}, because {reason}.", task=title, reason=reason)
        if reason
        else tr("The task is now {task}.", task=title),
        [*switches, (before.name, tr("Back to {task}", task=inside(before.title)))],
    )


class RecognisedNote(QFrame):
    """Hidden while there is nothing to say; its buttons are below the text, which may be long."""

    undo_requested = Signal()
    """The user asked to restore the settings from before the detection."""
    task_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "banner-info")
        self.words = label("", wrap=True, selectable=True)
        self.tasks = [QPushButton() for _ in range(MOST_TASKS)]
        self.undo = IconButton(tr("Undo"), "undo", "quiet")
        self.undo.setToolTip(tr("Restore the previous choice"))
        self.undo.clicked.connect(self.undo_requested)
        for button in self.tasks:
            theme.role(button, "quiet")
            button.clicked.connect(lambda _=False, button=button: self._on_task(button))
        self._found, self._offer = "", NO_OFFER
        grid = QGridLayout(self)
        grid.setContentsMargins(12, 9, 8, 5)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        grid.addWidget(IconLabel("info", "info", 18), 0, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.words, 0, 1)
        grid.addWidget(ButtonRow(*self.tasks, self.undo), 1, 0, 1, 2)  # in a narrow panel they would be cut
        self.hide()

    @property
    def task_buttons(self) -> list[QPushButton]:
        """The buttons of the tasks that are offered."""
        return self.tasks[: len(self._offer.buttons)]

    def _on_task(self, button: QPushButton) -> None:
        self.task_requested.emit(self._offer.buttons[self.task_buttons.index(button)][0])

    def text(self) -> str:
        """The text shown; empty if there is none."""
        return self.words.text()

    def say(self, found: RecognisedData, offer: TaskOffer = NO_OFFER) -> None:
        """Show what was used, and what was left out, with tasks for such data."""
        warnings = (formatting.with_full_stop(in_titles(warning)) for warning in found.warnings)
        self._found = " ".join(filter(None, (found.words, data_messages.left_out_line(found.left_out), *warnings)))
        self.setToolTip("\n".join(f"{one.name}: {one.reason}" for one in found.left_out))
        self.show_offer(offer)

    def show_offer(self, offer: TaskOffer) -> None:
        """Show what is said about the task beside what was recognised."""
        self._offer = offer
        sentence = " ".join(filter(None, (self._found, offer.sentence)))
        self.words.setText(sentence)
        self.setAccessibleName(sentence)
        for button in self.tasks:
            button.setVisible(button in self.task_buttons)
        for button, (_, words) in zip(self.task_buttons, offer.buttons, strict=True):
            button.setText(words)
        self.undo.setVisible(bool(self._found))
        self.setVisible(bool(sentence))

    def forget(self) -> None:
        """Hide the message."""
        self._found = ""
        self.setToolTip("")
        self.show_offer(NO_OFFER)
