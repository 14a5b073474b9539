"""The Try box: queries one model or two, keeps a history of answers, and adds rows to a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, SignalInstance
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app import theme
from app.core.draft.model_consent import CODE_FIELD
from app.core.formatting import megabytes, sentence
from app.core.i18n import inside, tr
from app.core.predictions.interactive import AnsweredQuestion, Question, name_of, run_of
from app.core.runs.run_spec import RunTask, answer_role
from app.pages.predictions.interactive.answer_card import AnswerCard
from app.pages.predictions.interactive.feedback import FeedbackController
from app.pages.predictions.interactive.target_facts import TargetFacts
from app.pages.predictions.interactive.try_form import TryForm
from app.services.context import AppContext
from app.services.interactive import InteractiveSession
from app.services.prediction_rows import PredictionRows
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.text.directed_text import DirectedText
from backend.contract.catalog import Catalog, TaskEntry
from backend.contract.rpc.interactive import OpenModels
from backend.contract.rpc.models import CachedModel, CachedModels
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.folder import RunFolder

LONGEST_HINT = 1000

STRIDE = 7919
"""A prime: neighbouring rows of a file are often alike."""

KEPT = 50
"""Answers that stay listed."""
PIECE_MS = 60
"""Text that is being written is drawn at most this often."""
POLL_MS = 30_000
"""Between two looks at which models are still open, while the box is seen."""


class TryBox(QWidget):
    """The form on the left; on the right the current answer above earlier ones."""

    message = Signal(str, str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._questions_asked = 0
        self._has_catalog = False
        self._questions: list[Question] = []
        self._open_facts: dict[str, str] = {}
        self._cached: Sequence[CachedModel] = ()
        self.kept: list[AnsweredQuestion] = []
        self._draw = QTimer(self, interval=PIECE_MS, singleShot=True)
        self._draw.timeout.connect(self._show_written)
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._ask_open)
        self.form, self.card, self.answers = TryForm(), AnswerCard(), AnswerList()
        self.collecting = FeedbackController(context, self)
        self.asking = InteractiveSession(context.client, self)
        self.examples = Examples()
        self.described = TargetFacts(context, self.form, self)
        self.card.foot.addWidget(self.collecting.bar)
        self._connect()
        self._place()
        self.answers.hide()
        self._offer()

    def _connect(self) -> None:
        self.form.answer_requested.connect(self.ask)
        self.form.cancelled.connect(self.cancel)
        self.form.example_wanted.connect(self.fill_example)
        self.card.let_go.connect(self.let_go)
        self.card.continued.connect(self._on_continued)
        self.answers.chosen.connect(self._on_kept_chosen)
        self.answers.again_requested.connect(self._on_again)
        self.answers.removed.connect(self._on_removed)
        self.collecting.changed.connect(self._on_changed)
        self.collecting.message.connect(self.message)
        self.asking.loading_progressed.connect(self._on_loading_progressed)
        self.asking.written.connect(self._on_written)
        self.asking.one_answered.connect(self._on_one_answered)
        self.asking.finished.connect(self._on_finished)
        self.asking.failed.connect(self._on_failed)
        self._context.library_watcher.changed.connect(self._offer)

    def _place(self) -> None:
        right = RememberedSplitter("answers", Qt.Orientation.Vertical)
        right.hold((self.card, self.answers), (3, 1), (520, 190))
        splitter = RememberedSplitter("try")
        splitter.hold((self.form, right), (2, 3), (400, 600))
        row = QVBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(splitter)

    # What can be asked

    def on_shown(self) -> None:
        """Query the tasks and cached models once, and the loaded models every time."""
        self._offer()
        if not self._has_catalog:
            self._context.client.ask("catalog", {}, self._on_catalog, self._on_mistake)
            self._context.client.ask("cached_models", {}, self._on_cached, lambda mistake: None)
        self._ask_open()

    def _on_catalog(self, catalog: Catalog) -> None:
        self._has_catalog = True
        self.form.offer_tasks(catalog.tasks)

    def _on_cached(self, answer: CachedModels) -> None:
        self._cached = answer.models
        self._offer()

    def _offer(self) -> None:
        self.form.offer_targets(self._context.library.runs, self._context.preferences.recent_models, self._cached)

    def fill_example(self) -> None:
        """Fill the form with the next row of the run's validation data, or an example of the task."""
        if (entry := self.form.entry) is None:
            return
        row, columns = self.examples.next(self.form.first.chosen_whole(), self.form.task_chosen, entry)
        if row is None:
            self.message.emit("info", tr("No example available for {title}.", title=inside(entry.title)))
            return
        self.form.fill_row(row, columns)

    # Question and answer

    def ask(self) -> None:
        """Send the input to every chosen model, unless a query is running."""
        if self.asking.open:
            return
        mistake = self.form.mistake_before_asking()
        self.form.show_mistake(mistake)
        if not mistake:
            self._ask(self.form.questions())

    def _ask(self, questions: list[Question]) -> None:
        self._questions_asked += 1
        self._questions = [
            replace(one, settings={**one.settings, "seed": self._questions_asked})
            if one.settings.get("sample")
            else one
            for one in questions
        ]
        self._show_busy(True)
        self._show_loading(0)
        self.asking.ask(self._questions)

    def _show_busy(self, busy: bool) -> None:
        self.form.show_busy(busy)
        self.card.show_busy(busy)

    def cancel(self) -> None:
        """Cancel the running query; the text generated so far stays visible."""
        if self.asking.open:
            self._show_written()
            self.asking.stop()
            self._show_busy(False)
            self.card.facts.setText(tr("Stopped"))
            self._ask_open()

    def _show_loading(self, place: int, how_far: str = "") -> None:
        is_training = any(run.alive and not run.waits for run in self._context.library.runs)
        name = name_of(self._questions[place].target)
        slow = tr("; a run is training on this computer, so this may take longer") if is_training else ""
        self.card.facts.setText(tr("Waiting for {name}…{how_far}{slow}", name=name, how_far=how_far, slow=slow))

    def _on_loading_progressed(self, place: int, done: float, total: float, unit: str) -> None:
        self.form.progress.set_fraction(done / total)
        self._show_loading(place, tr(" {done:,.0f} of {total:,.0f} {unit}", done=done, total=total, unit=unit))

    def _on_written(self, place: int, text: str) -> None:
        if not self._draw.isActive():
            self._draw.start()

    def _on_one_answered(self, place: int, question: AnsweredQuestion) -> None:
        self._note_open(question)
        self.form.progress.set_fraction(None)
        self._show_loading(place + 1)

    def _show_written(self) -> None:
        if not self.asking.open or not (self.asking.text or self.asking.answered):
            return
        self.card.facts.setText(tr("Generating…"))
        if len(self._questions) == 1:
            question = self._questions[0]
            self.card.show_row({**question.row, "prediction": self.asking.text}, question.task)
            return
        texts = [str(one.row.get("prediction") or "") for one in self.asking.answered] + [self.asking.text, ""]
        facts = [one.facts() for one in self.asking.answered] + ["writing…", "waits"]
        self.card.show_partial([name_of(one.target) for one in self._questions], facts, texts)

    def _on_finished(self, question: AnsweredQuestion) -> None:
        self._show_busy(False)
        self._note_open(question)
        self._keep(question)

    def _on_failed(self, place: int, mistake: ErrorReply) -> None:
        self._show_busy(False)
        self.card.facts.setText("")
        text = sentence(mistake.message.removeprefix("input: "), mistake.field)
        if self.asking.answered:
            self._keep(self.asking.answered[0])
        if len(self._questions) > 1:
            text = f"{name_of(self._questions[place].target)}: {text}"
        self.form.show_mistake(text, mistake.field, place)
        if mistake.field == CODE_FIELD:
            self.described.ask_about_code(place)
        self._ask_open()

    # The last answers

    def _keep(self, question: AnsweredQuestion) -> None:
        self.kept = [question, *self.kept][:KEPT]
        self._list(0)

    def _list(self, place: int) -> None:
        self.answers.show_question(self.kept, place)
        self.answers.setVisible(len(self.kept) > 1)
        if self.kept:
            self._show_kept(max(0, self.answers.place))
        else:
            self.card.show_nothing()
            self.collecting.show_question(None)

    def _show_kept(self, place: int) -> None:
        question = self.kept[place]
        self.card.show_question(question)
        entry = self.form.entry_of(question.question.task)
        has_right = entry is not None and bool(answer_role(entry, question.question.chosen))
        self.collecting.show_question(question, has_right)

    def _on_kept_chosen(self, place: int) -> None:
        self._show_kept(place)
        if self.kept[place].question.task == self.form.task_chosen.kind:
            self.form.fill(self.kept[place].question.row)

    def _on_again(self, place: int) -> None:
        if not self.asking.open:
            question = self.kept[place]
            self._ask([one.question for one in (question, question.beside) if one is not None])

    def _on_removed(self, place: int) -> None:
        del self.kept[place]
        self._list(place)

    def _on_continued(self) -> None:
        question = self.kept[max(0, self.answers.place)]
        self.form.parts.fill(question.question.row)
        self.form.parts.continue_chat(str(question.row.get("prediction") or ""))

    def _on_changed(self, question: AnsweredQuestion, now: AnsweredQuestion) -> None:
        """Update an answer that was added to a file, or given a right answer."""
        for place, one in enumerate(self.kept):
            if one is question:
                self.kept[place] = now
                self.answers.show_question(self.kept, self.answers.place)

    # Open models

    def _note_open(self, question: AnsweredQuestion) -> None:
        for one in filter(None, (question, question.beside)):
            memory = one.answer.device_memory_mb or one.answer.memory_mb
            words = [one.answer.device, *([megabytes(memory)] if memory else [])]
            self._open_facts[one.question.target] = ", ".join(words)
        self._ask_open()

    def _ask_open(self) -> None:
        if self.isVisible():
            self._context.client.ask("open_models", {}, self._on_open, lambda mistake: None)

    def let_go(self) -> None:
        """Unload the loaded models."""
        self._context.client.ask("let_go", {}, self._on_open, self._on_mistake)

    def _on_open(self, answer: OpenModels) -> None:
        self.card.show_open(answer.targets, self._open_facts)
        if answer.targets and not self._poll.isActive():
            self._poll.start()
        elif not answer.targets:
            self._poll.stop()

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.form.show_mistake(sentence(mistake.message, mistake.field))


class Examples:
    """Cycles through the examples of each run and task."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def next(self, target: str, task: RunTask, entry: TaskEntry) -> tuple[Mapping[str, Any] | None, Mapping[str, str]]:
        """A row and the column of each role; no row if there is none."""
        run = RunFolder(run_of(target))
        path = run.predictions("validation", "parquet")
        if task.columns and path.is_file():
            return self._of_file(run, path), task.columns
        number = self._count(entry.name)
        return (entry.examples[number % len(entry.examples)] if entry.examples else None), {}

    def _of_file(self, run: RunFolder, path: Path) -> Mapping[str, Any] | None:
        try:
            run.check()
            rows = PredictionRows(path)
        except (OSError, ValueError):
            return None
        number = self._count(str(path))
        row = rows.pages.row(number * STRIDE % rows.row_count) if rows.row_count else None
        rows.close()
        return row

    def _count(self, key: str) -> int:
        number = self._given.get(key, 0)
        self._given[key] = number + 1
        return number


class AnswerList(Card):
    """Latest first; `places` are unfiltered indices from there."""

    chosen = Signal(int)
    again_requested = Signal(int)
    removed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("History"), parent)
        self._shown_questions: Sequence[AnsweredQuestion] = ()
        self.search = QLineEdit(placeholderText=tr("Find"), clearButtonEnabled=True)
        self.search.setAccessibleName(tr("Search history"))
        self.search.setMaximumWidth(180)
        self.search.textChanged.connect(self._filter)
        self.again = IconToolButton("refresh", tr("Ask again"))
        self.again.clicked.connect(lambda: self._emit(self.again_requested))
        self.delete = IconToolButton("trash", tr("Remove from history (Delete)"))
        self.delete.clicked.connect(lambda: self._emit(self.removed))
        for widget in (self.search, self.again, self.delete):
            self.corner.addWidget(widget)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("History"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        theme.role(self.list, "lines")
        self.list.setItemDelegate(DirectedText(self.list))
        self.list.currentRowChanged.connect(self._on_row)
        self.list.itemDoubleClicked.connect(lambda _: self._emit(self.again_requested))
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.list)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(lambda: self._emit(self.removed))
        self.nothing = label(tr("No results."), "faint")
        self.nothing.hide()
        self.add(self.list, 1)
        self.add(self.nothing)

    @property
    def place(self) -> int:
        """The index of the selected answer, −1 for none."""
        return self.list.currentRow()

    def show_question(self, questions: Sequence[AnsweredQuestion], place: int) -> None:
        """List these and select one, without emitting a signal."""
        self._shown_questions = questions
        self.list.blockSignals(True)
        self.list.clear()
        for one in questions:
            item = QListWidgetItem(f"{one.line()}   ✓" if one.added else one.line())
            names = f"{one.name}, {one.beside.name}" if one.beside else one.name
            item.setToolTip(f"{one.line(LONGEST_HINT)}\n{names}")
            self.list.addItem(item)
        self.list.setCurrentRow(min(place, len(questions) - 1))
        self.list.blockSignals(False)
        self._filter()

    def _filter(self) -> None:
        text = self.search.text().strip()
        kept = [not text or one.holds(text) for one in self._shown_questions]
        for place, keep in enumerate(kept):
            self.list.item(place).setHidden(not keep)
        self.nothing.setVisible(bool(kept) and not any(kept))

    def _on_row(self, place: int) -> None:
        if place >= 0:
            self.chosen.emit(place)

    def _emit(self, signal: SignalInstance) -> None:
        if self.place >= 0 and not self.list.item(self.place).isHidden():
            signal.emit(self.place)
