"""Owns the deleting of runs: a question, the trash, and a line that offers to take them out again."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from app.core.formatting import short_name
from app.core.i18n import tr, trn
from app.core.runs.run_library import RunSummary
from app.services.trash import Trashed, move_to_trash, take_back
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from app.widgets.question import Question


class Deletion(QObject):
    """`banner` belongs into the page; it is hidden while there is nothing to undo."""

    message = Signal(str, str)
    changed = Signal()
    """Runs went to the trash, or came back."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._page = parent
        self.question: Question | None = None
        self._deleted: list[Trashed] = []
        self.banner = Banner()
        self.undo = IconButton(tr("Undo"), "undo")
        self.undo.clicked.connect(self._on_undo)
        self.banner.buttons.addWidget(self.undo)

    def ask(self, runs: Sequence[RunSummary]) -> None:
        """Ask whether these runs are to be deleted."""
        place = str(runs[0].path if len(runs) == 1 else runs[0].path.parent)
        said = tr("Its checkpoints, model and predictions go with it.\n{place}", place=place)
        if len(runs) > 1:
            said = tr("Their checkpoints, models and predictions go with them.\n{place}", place=place)
        title = tr("Delete run") if len(runs) == 1 else tr("Delete runs")
        question = Question(self._page, title, tr("Move {named} to the trash?", named=_named(runs)), said)
        self.question = question
        delete = question.addButton(tr("Move to trash"), QMessageBox.ButtonRole.DestructiveRole)
        question.setDefaultButton(question.addButton(tr("Keep"), QMessageBox.ButtonRole.RejectRole))
        delete.clicked.connect(lambda: self.delete(runs))
        question.finished.connect(question.deleteLater)
        question.open()

    def delete(self, runs: Sequence[RunSummary]) -> None:
        """Move runs to the trash; one that is alive is refused."""
        moved = [move_to_trash(run.path) for run in runs]
        self.changed.emit()
        for refused in (each for each in moved if each.problem):
            self.message.emit("error", refused.problem)
        gone = [run for run, each in zip(runs, moved, strict=True) if not each.problem]
        if not gone:
            return
        said = tr("Moved to the trash: {named}.", named=_named(gone))
        self._deleted = [each for each in moved if each.place is not None]
        if self._deleted:
            self.banner.show_message("info", said)
        self.message.emit("success", said)

    def _on_undo(self) -> None:
        problems = [problem for each in self._deleted if (problem := take_back(each))]
        back = len(self._deleted) - len(problems)
        self._deleted = []
        self.banner.clear()
        self.changed.emit()
        for problem in problems:
            self.message.emit("error", problem)
        if back:
            self.message.emit(
                "success", tr("{count} taken out of the trash.", count=trn("{count} run", "{count} runs", back))
            )


def _named(runs: Sequence[RunSummary]) -> str:
    return f"“{short_name(runs[0].title)}”" if len(runs) == 1 else trn("{count} run", "{count} runs", len(runs))
