"""A tokenizer's pipeline as a page to read: each step with its result, the model word by word."""

from PySide6.QtWidgets import QFrame, QHeaderView, QStackedWidget, QTreeWidget, QTreeWidgetItem, QWidget

from app import theme
from app.core.formatting import group_digits
from app.core.i18n import thin, tr
from app.core.text import pipeline_steps
from app.core.text.invisible_characters import visible
from app.widgets.boxes import hbox, holder, scroll_area, vbox
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.pill import Pill
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.marked_text import MarkedText, TextRun
from backend.contract.tokens.steps import MAX_CHARACTERS, Step, TokenizerSteps, WordTrace

COLORS = 6
MAX_WORDS = 200
TREE_HEIGHT = 260
SHORTENED = tr(
    "These are the steps of the first {MAX_CHARACTERS} characters.", MAX_CHARACTERS=group_digits(MAX_CHARACTERS)
)


class StepsView(QStackedWidget):
    """Steps from top to bottom, or a sentence if there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.empty = EmptyState("text", tr("No steps to show"), tr("Type some text to see how it becomes tokens."))
        self.notes = label("", "muted", wrap=True)
        self._column = vbox(self.notes, 1, spacing=10, margins=(0, 0, 6, 0))
        self.notes.hide()
        self.area = scroll_area(holder(self._column))
        self.area.setAccessibleName(tr("Steps"))
        self.addWidget(self.empty)
        self.addWidget(self.area)
        self.frames: list[QWidget] = []
        self._answer = TokenizerSteps(text="")

    def show_steps(self, answer: TokenizerSteps) -> None:
        """Show other steps, keeping the scroll position."""
        if answer == self._answer and self.frames:
            return
        self._answer = answer
        if not answer.steps:
            self.say(tr("Type some text to see how it becomes tokens."))
            return
        self.notes.setText(" ".join([*map(thin, answer.notes), *([SHORTENED] if answer.shortened else [])]))
        self.notes.setVisible(bool(self.notes.text()))
        self._clear()
        before = answer.text
        for number, step in enumerate(answer.steps, 1):
            frame = _StepFrame(number, step, before, answer)
            self._column.insertWidget(number, frame)  # below the notes
            self.frames.append(frame)
            before = pipeline_steps.text_after(step.parts) or before
        self.setCurrentWidget(self.area)

    def say(self, sentence: str) -> None:
        """Show a sentence instead of steps."""
        self._clear()
        self.empty.set_words(tr("No steps to show"), sentence)
        self.setCurrentWidget(self.empty)

    def _clear(self) -> None:
        for frame in self.frames:
            self._column.removeWidget(frame)
            frame.hide()
            frame.deleteLater()
        self.frames = []


class _StepFrame(QFrame):
    """One step: its name, what it does, the text after it."""

    def __init__(self, number: int, step: Step, before: str, answer: TokenizerSteps) -> None:
        super().__init__()
        theme.role(self, "inset")
        self.step = step
        top = hbox(
            label(f"{number}. {step.name}", "strong"),
            (label(pipeline_steps.STAGES[step.stage], "faint"), 1),
            Pill(pipeline_steps.outcome(step), "accent" if step.changed else "neutral"),
            spacing=8,
        )
        column = vbox(top, spacing=4, margins=(12, 9, 12, 10), parent=self)
        if step.sentence:
            column.addWidget(label(thin(step.sentence), "muted", wrap=True))
        if step.settings:
            settings = " · ".join(f"{name}: {value}" for name, value in step.settings.items())
            column.addWidget(ElidedLabel(settings, "faint"))
        if step.changed or step.stage == "model":
            self.text = MarkedText(tr("Text after step {number}", number=number))
            self.text.show_pieces(_pieces(step, before))
            column.addWidget(self.text)
        if step.stage == "model" and answer.words:
            self.tree = _WordTree(answer.words)
            column.addWidget(self.tree)


def _pieces(step: Step, before: str) -> list[TextRun]:
    if step.stage == "normalizer":
        runs = pipeline_steps.changes(before, pipeline_steps.text_after(step.parts))
        return [_run(run) for run in runs]
    shown = step.parts[: pipeline_steps.MAX_PARTS]
    pieces: list[TextRun] = []
    for number, part in enumerate(shown):
        ground = "token_special" if part.fixed else f"token_{number % COLORS}"
        tag = "" if part.id is None else str(part.id)
        pieces += [TextRun(visible(part.text), ground, ink="token_text", tag=tag), TextRun("  ")]
    left = len(step.parts) - len(shown)
    return [*pieces, TextRun(tr(" and {left:,} more", left=left), ink="muted")] if left else pieces


def _run(run: pipeline_steps.Run) -> TextRun:
    if not run.changed:
        return TextRun(visible(run.text) if run.text else "")
    return TextRun(visible(run.text) if run.text else "⌫", "token_1", ink="token_text")


class _WordTree(QTreeWidget):
    """The model's words; expanding one shows how its pieces were found."""

    def __init__(self, words: list[WordTrace]) -> None:
        super().__init__()
        self.setAccessibleName(tr("Words that the model receives"))
        self.setHeaderLabels([tr("Word"), tr("Pieces"), tr("IDs or score")])
        theme.give_font(self, 12, mono=True)
        self.setFixedHeight(TREE_HEIGHT)
        self.setAlternatingRowColors(False)
        self.setUniformRowHeights(True)
        self.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.header().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.header().setStretchLastSection(False)
        for trace in words[:MAX_WORDS]:
            item = QTreeWidgetItem(list(pipeline_steps.word_row(trace)))
            item.addChildren([self._child(row) for row in pipeline_steps.trace_rows(trace)])
            self.addTopLevelItem(item)
        if len(words) > MAX_WORDS:
            self.addTopLevelItem(
                QTreeWidgetItem(["", tr("and {number:,} more words", number=len(words) - MAX_WORDS), ""])
            )
        longest = max(range(min(len(words), MAX_WORDS)), key=lambda place: len(words[place].pieces), default=-1)
        if longest >= 0:
            self.topLevelItem(longest).setExpanded(True)  # type: ignore[union-attr]

    def _child(self, row: pipeline_steps.Row) -> QTreeWidgetItem:
        item = QTreeWidgetItem(list(row))
        for column, token in enumerate(("faint", "text", "muted")):
            item.setForeground(column, theme.color(token))
            item.setToolTip(column, row[column])
        return item
