"""The Runs page: every run of this user, also after a restart; compares and deletes runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QHBoxLayout,
    QLineEdit,
    QMessageBox,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core.actions import Action
from app.core.formatting import short_name
from app.core.i18n import inside, tr, trn
from app.core.page_actions import RUNS
from app.core.runs.run_library import RunSummary, count_words, in_queue
from app.core.runs.run_list import GROUPS, RunListOptions, arrange, matching
from app.core.runs.run_obstacles import QUEUE_MOVES, move_obstacles, selection_obstacles
from app.pages.runs.run_table import RunTable
from app.services.context import AppContext
from app.services.trash import TrashResult, move_to_trash, take_back
from app.widgets.banner import Banner
from app.widgets.boxes import PageStack, hbox
from app.widgets.card import Card, label
from app.widgets.commands import button_action
from app.widgets.desktop import open_folder
from app.widgets.empty_state import EmptyState
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.notes_bar import NotesBar
from app.widgets.icon_label import IconButton
from app.widgets.page_layout import MARGIN, PageHeader, fit_words, page_layout
from app.widgets.question import Question
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.notes import RunNotes

if TYPE_CHECKING:
    from app.pages.runs.compare_view import CompareView

BUTTONS = {
    "open": (tr("Open"), "chart", "primary"),
    "resume": (tr("Resume"), "play", ""),
    "start_now": (tr("Start now"), "play", ""),
    "stop": (tr("Stop"), "stop", "danger"),
    "predictions": (tr("Predictions"), "target", ""),
    "compare": (tr("Compare"), "chart", ""),
    "duplicate": (tr("Duplicate"), "copy", ""),
    "folder": (tr("Open folder"), "folder", ""),
    "delete": (tr("Delete"), "trash", "danger"),
}
"""Key → words, icon, role."""
MOVES = {
    "move_next": (tr("Start next"), "first"),
    "move_earlier": (tr("Start earlier"), "chevron-left"),
    "move_later": (tr("Start later"), "chevron-right"),
}
"""Of a queued run: key → words, icon."""
WORDLESS = ("duplicate", "folder", "delete", "compare", "predictions", "start_now", "stop", "resume")
"""Buttons that show their icon alone where there is little room, the first of them first."""
SPACING = 8


class Page(QWidget):
    """Lists runs; actions are emitted as signals or sent to the services."""

    message = Signal(str, str)
    run_selected = Signal(str)
    duplicate_requested = Signal(str)
    predictions_requested = Signal(str)
    new_run_requested = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._options = RunListOptions()
        self._resuming: set[Path] = set()
        self._unfolded: set[Path] = set()
        """Groups whose runs are listed."""
        self._obstacles = {**selection_obstacles([]), **move_obstacles(None, [])}
        self.header = PageHeader(tr("Runs"))
        self.search = QLineEdit(placeholderText=tr("Search runs or #tag"), clearButtonEnabled=True)
        self.search.setToolTip(tr("Search by name, model, data, notes or #tag"))
        self.search.setMinimumWidth(230)
        self.search.setMaximumWidth(300)
        self.search.setAccessibleName(tr("Search runs"))
        self.search.textChanged.connect(self._show_runs)
        self.group = QuietComboBox()
        self.group.setAccessibleName(tr("Group runs by"))
        self.group.setMinimumContentsLength(13)
        for key, words in GROUPS.items():
            self.group.addItem(tr("Group by {words}", words=inside(words)) if key else words, key)
        self.group.currentIndexChanged.connect(self._show_runs)
        self.header.buttons.addWidget(self.group)
        self.header.buttons.addWidget(self.search, 1)
        self.table = RunTable()
        self.table.run_chosen.connect(self._on_chosen)
        self.table.run_opened.connect(self.run_selected)
        self.table.unfold_requested.connect(self._on_unfold_requested)
        self.table.sort_requested.connect(self._on_sort_requested)
        self.notes = NotesBar()
        self.notes.written.connect(self._on_notes_written)
        self.notes.message.connect(self.message)
        self.deletion = RunDeletion(self)
        self.deletion.message.connect(self.message)
        self.deletion.changed.connect(context.library_watcher.refresh_now)
        self.compared: CompareView | None = None
        self.detail = label("", "muted", wrap=True, selectable=True)
        self.moves = {
            key: IconButton(words, icon, "quiet", clicked=lambda _=False, key=key: self._on_move(key))
            for key, (words, icon) in MOVES.items()
        }
        self.empty = EmptyState(
            "runs",
            tr("No runs yet"),
            tr("Everything you train is listed here, even after a restart."),
            tr("Start the demo"),
        )
        self.empty.action_clicked.connect(self.start_demo)
        self.bars = (*self.moves.values(), self.notes)
        self._build()
        theme.follow(self)
        context.library_watcher.changed.connect(self._on_runs_changed)
        self._show_runs()

    def _build(self) -> None:
        self._whole = PageStack(self)
        every = QWidget(self._whole)
        self._pages = PageStack(every)
        self.buttons: dict[str, IconButton] = {}
        bar = QHBoxLayout()
        bar.setSpacing(SPACING)
        for key, (words, icon, role) in BUTTONS.items():
            button = self.buttons[key] = IconButton(words, icon, role)
            button.clicked.connect(getattr(self, f"_on_{key}"))
            if key == "delete":
                bar.addStretch(1)
            bar.addWidget(button)
        card = Card()
        theme.role(card, "card")
        layout = card.layout()
        assert layout is not None
        layout.setContentsMargins(1, 1, 1, 1)
        card.add(self.table, 1)
        listed = QWidget(self._pages)
        column = QVBoxLayout(listed)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(bar)
        column.addWidget(self.deletion.banner)
        column.addWidget(card, 1)
        column.addLayout(hbox((self.detail, 1), *self.moves.values(), spacing=4))
        column.addWidget(self.notes)
        self.nothing = EmptyState("runs", tr("No results"), tr("Try a different search."), tr("Clear the search"))
        self.nothing.action_clicked.connect(self.search.clear)
        for part in (self.empty, listed, self.nothing):
            self._pages.addWidget(part)
        page = page_layout(every)
        page.addWidget(self.header)
        page.addWidget(self._pages, 1)
        self._whole.addWidget(every)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._whole)

    def resizeEvent(self, event) -> None:
        """Hide some button texts if there is little room."""
        self.apply_theme()
        super().resizeEvent(event)

    def apply_theme(self) -> None:
        """Hide some button texts if they have become too large for the page."""
        room = self.width() - 2 * MARGIN - SPACING * (len(BUTTONS) + 1)
        losing: dict[QAbstractButton, str] = {self.buttons[key]: BUTTONS[key][0] for key in WORDLESS}
        lack = lambda: sum(button.sizeHint().width() for button in self.buttons.values()) - room  # noqa: E731
        fit_words(losing, lack)
        self._show_hints()

    def _show_hints(self) -> None:
        """Say why a button cannot be pressed, else its name if it shows none."""
        for key, button in self.buttons.items():
            hint = tr("Move to trash") if key == "delete" else "" if button.text() else BUTTONS[key][0]
            button.setToolTip(self._obstacles[key] or hint)
            button.setAccessibleName(BUTTONS[key][0])
        for key, button in self.moves.items():
            button.setToolTip(self._obstacles[key])

    def on_shown(self) -> None:
        """The page came to the front: refresh at once."""
        self._context.library_watcher.refresh_now()

    def on_chosen_again(self) -> None:
        """The page was chosen while it is in front: lead back to the list."""
        if self.compared is not None and self._whole.currentWidget() is self.compared:
            self.compared.close_view()

    def offered_actions(self) -> list[Action]:
        """For the palette and the keyboard."""
        return [
            RUNS["search"].bind(self._find),
            *(
                button_action(button, RUNS[key], lambda key=key: self._obstacles[key])
                for key, button in (self.buttons | self.moves).items()
            ),
        ]

    def _find(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    # What is listed

    def _on_runs_changed(self) -> None:
        if self.isVisible() or not self.window().isVisible():  # behind another page it waits for `showEvent`
            self._refresh(keeps_place=True)

    def _refresh(self, *, keeps_place: bool = False) -> None:
        self._show_runs(keeps_place=keeps_place)
        if self.compared is not None:
            self.compared.follow()

    def showEvent(self, event: QShowEvent) -> None:
        """Show changes made while another page was visible."""
        self._refresh()
        super().showEvent(event)

    def _show_runs(self, *_: object, keeps_place: bool = False) -> None:
        every, groups = self._context.library.runs, self._context.library.groups
        self._options = replace(self._options, words=self.search.text(), group=self.group.currentData())
        found = matching(every, self._options.words)
        self.table.set_lines(arrange(every, self._options, groups, self._unfolded), keeps_place=keeps_place)
        self._pages.setCurrentIndex(1 if self.table.runs else 2 if every or groups else 0)
        self.search.setVisible(bool(every))
        self.group.setVisible(bool(every))
        self.header.set_subtitle(_counts(every, found) if every else str(self._context.library.root))

    def _on_unfold_requested(self, group: Path, on: bool) -> None:
        (self._unfolded.add if on else self._unfolded.discard)(group)
        self._show_runs()

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        self._options = replace(self._options, column=column, descending=descending)
        self._show_runs()

    def _on_chosen(self, run: RunSummary | None) -> None:
        several = self.table.chosen_runs()
        queue = in_queue(self._context.library.runs)
        self._obstacles = {**selection_obstacles(several), **move_obstacles(run, queue)}
        if run is not None and run.path in self._resuming:
            self._obstacles["resume"] = tr("The run is being resumed.")
        for key, button in (self.buttons | self.moves).items():
            button.setEnabled(not self._obstacles[key])
        for button in self.moves.values():
            button.setVisible(len(queue) > 1 and run in queue)
        self._show_hints()
        chosen = (
            tr("{count} selected", count=trn("{count} run", "{count} runs", len(several))) if len(several) > 1 else ""
        )
        self.detail.setText(" · ".join(filter(None, [run.message, str(run.path)])) if run else chosen)
        self.notes.show_notes(run.path if run else None, run.notes if run else RunNotes())

    # What is done with one

    def _on_open(self) -> None:
        if run := self.table.chosen():
            self.run_selected.emit(str(run.path))

    def _on_resume(self) -> None:
        if run := self.table.chosen():
            self._resuming.add(run.path)
            self._on_chosen(run)
            self._context.jobs.resume(
                run.path,
                lambda path: self._on_resumed(run.path, path),
                lambda sentence: self._on_refused(run.path, sentence),
            )

    def _on_resumed(self, run: Path, path: str) -> None:
        self._resuming.discard(run)
        self._on_started(path)

    def _on_started(self, path: str) -> None:
        self._context.library_watcher.refresh_now()
        self.run_selected.emit(path)

    def _on_refused(self, run: Path, sentence: str) -> None:
        self._resuming.discard(run)
        self._on_chosen(self.table.chosen())
        self.message.emit("error", sentence)

    def _on_start_now(self) -> None:
        if run := self.table.chosen():
            if problem := self._context.jobs.start_now(run.path):
                self.message.emit("error", problem)
            self._context.library_watcher.refresh_now()

    def _on_move(self, key: str) -> None:
        if run := self.table.chosen():
            if problem := self._context.jobs.move_in_queue(run.path, QUEUE_MOVES[key]):
                self.message.emit("error", problem)
            self._context.library_watcher.refresh_now()

    def _on_stop(self) -> None:
        if run := self.table.chosen():
            problem = self._context.jobs.request(run.path, "stop")
            sentence = tr("Stopping {title}… saving a checkpoint and the model.", title=run.title)
            if run.waits:
                sentence = tr("Removed {title} from the queue.", title=run.title)
            self.message.emit("error" if problem else "info", problem or sentence)

    def _on_predictions(self) -> None:
        if run := self.table.chosen():
            self.predictions_requested.emit(str(run.path))

    def _on_duplicate(self) -> None:
        if run := self.table.chosen():
            self.duplicate_requested.emit(str(run.path))

    def _on_folder(self) -> None:
        if (run := self.table.chosen()) and (problem := open_folder(run.path)):
            self.message.emit("info", problem)

    def _on_delete(self) -> None:
        if runs := self.table.chosen_runs():
            self.deletion.ask([*(member for run in runs for member in self._context.library.members(run)), *runs])

    def _on_compare(self) -> None:
        from app.pages.runs.compare_view import CompareView  # the list needs no plotting library

        if self.compared is None:
            self.compared = CompareView(self._context.library, self._context.client)
            self.compared.message.connect(self.message)
            self.compared.closed.connect(self._on_compare_closed)
            self._whole.addWidget(self.compared)
        self.compared.show_runs(self.table.chosen_runs())
        self._whole.setCurrentWidget(self.compared)

    def _on_compare_closed(self) -> None:
        self._whole.setCurrentIndex(0)
        self.table.setFocus()

    def _on_notes_written(self, path: Path, notes: RunNotes) -> None:
        if problem := self._context.library_watcher.annotate(path, notes):
            self.message.emit("error", problem)

    # The demo

    def start_demo(self) -> None:
        """Start the embedded demo."""
        self.empty.setEnabled(False)
        self._context.client.ask("demo_spec", {}, self._on_demo_spec, self._on_no_demo)

    def _on_demo_spec(self, answer: dict[str, Any]) -> None:
        self._context.jobs.start(
            answer["spec"], self._on_demo_started, lambda reply: self._on_no_demo(ErrorReply(reply))
        )

    def _on_demo_started(self, path: str) -> None:
        self.empty.setEnabled(True)
        self._on_started(path)

    def _on_no_demo(self, mistake: ErrorReply) -> None:
        self.empty.setEnabled(True)
        self.message.emit("error", mistake.message)


def _counts(every: list[RunSummary], found: list[RunSummary]) -> str:
    lost = sum(run.state == "lost" for run in every)
    parts = [
        tr("{number} of {number_2} runs", number=len(found), number_2=len(every))
        if len(found) < len(every)
        else tr("{number} runs", number=len(every))
    ]
    if len(every) == 1 and len(found) == 1:
        parts = [tr("1 run")]
    parts += count_words(every)
    if lost:
        parts.append(tr("1 lost, can be resumed") if lost == 1 else tr("{lost} lost, can be resumed", lost=lost))
    return " · ".join(parts)


class RunDeletion(QObject):
    """`banner` is placed on the page; it is hidden while there is nothing to undo."""

    message = Signal(str, str)
    changed = Signal()
    """Runs went to the trash, or came back."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._page = parent
        self.question: Question | None = None
        self._deleted: list[TrashResult] = []
        self.banner = Banner()
        self.undo = IconButton(tr("Undo"), "undo")
        self.undo.clicked.connect(self._on_undo)
        self.banner.buttons.addWidget(self.undo)

    def ask(self, runs: Sequence[RunSummary]) -> None:
        """Ask whether to delete these runs."""
        place = str(runs[0].path if len(runs) == 1 else runs[0].path.parent)
        explanation = tr("This also moves its checkpoints, model and predictions.\n{place}", place=place)
        if len(runs) > 1:
            explanation = tr("This also moves their checkpoints, models and predictions.\n{place}", place=place)
        title = tr("Delete run") if len(runs) == 1 else tr("Delete runs")
        question = Question(self._page, title, tr("Move {named} to the trash?", named=_name_words(runs)), explanation)
        self.question = question
        delete = question.addButton(tr("Move to trash"), QMessageBox.ButtonRole.DestructiveRole)
        question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole))
        delete.clicked.connect(lambda: self.delete(runs))
        question.finished.connect(question.deleteLater)
        question.open()

    def delete(self, runs: Sequence[RunSummary]) -> None:
        """Move runs to the trash; active ones are refused."""
        moved = [move_to_trash(run.path) for run in runs]
        self.changed.emit()
        for refused in (each for each in moved if each.problem):
            self.message.emit("error", refused.problem)
        gone = [run for run, each in zip(runs, moved, strict=True) if not each.problem]
        if not gone:
            return
        sentence = tr("Moved {named} to the trash.", named=_name_words(gone))
        self._deleted = [each for each in moved if each.place is not None]
        if self._deleted:
            self.banner.show_message("info", sentence)
        else:
            self.message.emit("success", sentence)

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
                "success", tr("Restored {count} from the trash.", count=trn("{count} run", "{count} runs", back))
            )


def _name_words(runs: Sequence[RunSummary]) -> str:
    count = sum(not run.members for run in runs)  # not the folders of groups
    return f"“{short_name(runs[0].title)}”" if len(runs) == 1 else trn("{count} run", "{count} runs", count)
