"""Shows the answer of one model like a row of a file, or two answers side by side with their differences marked."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core.formatting import number
from app.core.i18n import figure, thin, tr
from app.core.predictions.entities import colors_of, entities, kinds_of, words_of
from app.core.predictions.interactive import AnsweredQuestion, LabelPair, agreement, label_pairs, name_of
from app.core.predictions.predicted_row import PredictedRow
from app.core.predictions.word_diff import difference
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.plots.paired_bars import Group, PairedBars
from app.widgets.row_views.choice_view import ChoiceView
from app.widgets.row_views.entity_view import COLORS, EntityView, entity_pieces
from app.widgets.row_views.label_views import LabelView, NumberView
from app.widgets.row_views.registry import view_of
from app.widgets.row_views.row_view import CaptionedSection, RowView
from app.widgets.row_views.span_view import SpanView
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.marked_text import MarkedText, TextRun

MAX_LABELS = 12
"""Labels whose bars are shown; the others are almost nothing at both models."""
GROUNDS, OUTLINES = ("accent_soft", "warning_soft"), ("focus", "warning")
"""How what only the first, and only the second model says is marked."""

KEPT_OPEN = tr(
    "A loaded model answers immediately. It is unloaded after five minutes of inactivity, or "
    "when a run needs its device."
)


class ComparedView(QWidget):
    """Created once; `show_question` shows any pair of answers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.sentence = label("", "strong", wrap=True, selectable=True)
        self.names = (ElidedLabel("", "strong"), ElidedLabel("", "strong"))
        self.facts = (ElidedLabel("", "faint"), ElidedLabel("", "faint"))
        self.texts = (MarkedText(tr("First answer")), MarkedText(tr("Second answer")))
        self.bars = PairedBars()
        self.bars.setAccessibleName(tr("Probabilities of both models"))
        self.context = MarkedText(tr("Context with both answers"), fills=True)
        self._labels = CaptionedSection(tr("Probability"), self.bars)
        self._context = CaptionedSection(tr("In the context (second model outlined)"), self.context)
        columns = QHBoxLayout()
        columns.setSpacing(18)
        for name, facts, text in zip(self.names, self.facts, self.texts, strict=True):
            column = QVBoxLayout()
            column.setSpacing(3)
            for widget in (name, facts, text):
                column.addWidget(widget)
            column.addStretch(1)
            columns.addLayout(column, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 8, 0)
        whole.setSpacing(14)
        whole.addWidget(self.sentence)
        whole.addLayout(columns)
        whole.addWidget(self._labels)
        whole.addWidget(self._context)
        whole.addStretch(1)

    def show_question(self, question: AnsweredQuestion) -> None:
        """Show both answers and their differences."""
        assert question.beside is not None
        rows = PredictedRow(question.row), PredictedRow(question.beside.row)
        names = names_of(question)
        self._head(names, (question.facts(), question.beside.facts()))
        self.sentence.setText(agreement(*rows, names))
        self._show_forms(question.question.task, rows)

    def show_partial(self, names: tuple[str, str], facts: tuple[str, str], texts: tuple[str, str]) -> None:
        """Show the text generated so far."""
        self._head(names, facts)
        self.sentence.setText("")
        self._labels.hide()
        self._context.hide()
        for view, text in zip(self.texts, texts, strict=True):
            view.show_text(text)
            view.show()

    def _head(self, names: tuple[str, str], facts: tuple[str, str]) -> None:
        for place in range(2):
            self.names[place].setText(names[place])
            self.facts[place].setText(facts[place])

    def _show_forms(self, task: str, rows: tuple[PredictedRow, PredictedRow]) -> None:
        pairs = label_pairs(*rows)
        self._labels.setVisible(bool(pairs))
        if pairs:
            self.bars.show_groups(["first", "second"], [_group(pair, rows[0]) for pair in pairs[:MAX_LABELS]])
        form = view_of(task, rows[0].values.keys())
        context = rows[0].text("context") if form is SpanView else ""
        self._context.setVisible(bool(context))
        if context:
            self.context.show_pieces(_spans(context, rows))
        pieces = _FORMS.get(form, _texts)(rows)
        for view, one in zip(self.texts, pieces, strict=True):
            view.show_pieces(one)


def names_of(question: AnsweredQuestion) -> tuple[str, str]:
    """Short names for both models; if they are the same, numbered."""
    assert question.beside is not None
    first, second = question.name, question.beside.name
    return (
        (first, second)
        if first != second
        else (tr("{first} (first)", first=first), tr("{second} (second)", second=second))
    )


def _group(pair: LabelPair, row: PredictedRow) -> Group:
    values = [pair.first or 0.0, pair.second or 0.0]
    words = ["–" if one is None else figure(one, ".1%") for one in (pair.first, pair.second)]
    choices = row.as_list("choices")
    is_choice = bool(choices) and pair.label.isdecimal() and int(pair.label) < len(choices)
    title = pair.title.replace(pair.label, str(choices[int(pair.label)]), 1) if is_choice else pair.title
    return Group(title, values, words, most=1.0)


Rows = tuple[PredictedRow, PredictedRow]
Pieces = tuple[Sequence[TextRun], Sequence[TextRun]]


def _texts(rows: Rows) -> Pieces:
    """Both answers with the words that the other lacks marked."""
    if not rows[0].prediction or not rows[1].prediction:
        empty = [TextRun("nothing", ink="faint")]
        one, other = ([TextRun(row.prediction)] if row.prediction else empty for row in rows)
        return one, other
    ours, theirs = difference(rows[0].prediction, rows[1].prediction)
    first, second = (
        [TextRun(text, "" if same else GROUNDS[place], "" if same else OUTLINES[place]) for text, same in parts]
        for place, parts in enumerate((ours, theirs))
    )
    return first, second


def _whole(rows: Rows) -> Pieces:
    """Labels, numbers and spans unchanged; differing ones are outlined."""
    is_same = rows[0].prediction == rows[1].prediction
    first, second = (
        [TextRun(_answer_text(row), GROUNDS[place], "" if is_same else OUTLINES[place])]
        for place, row in enumerate(rows)
    )
    return first, second


def _answer_text(row: PredictedRow) -> str:
    value = row.values.get("prediction")
    return number(value) if isinstance(value, float) else row.prediction or tr("no answer")


def _tags(rows: Rows) -> Pieces:
    """The sentence twice; entities missing from the other line are outlined."""
    words = words_of(rows[0].part("tokens"))
    ones, others = (entities(row.prediction.split()) for row in rows)
    colors = colors_of(kinds_of(ones, others), COLORS)
    return (
        entity_pieces(words, ones, colors, others, OUTLINES[0]),
        entity_pieces(words, others, colors, ones, OUTLINES[1]),
    )


def _spans(context: str, rows: Rows) -> list[TextRun]:
    """The context split at every answer boundary."""
    spans = [_span(row, context) for row in rows]
    edges = sorted({0, len(context), *(edge for span in spans if span for edge in span)})
    return [
        TextRun(
            context[start:end],
            GROUNDS[0] if _within(start, end, spans[0]) else "",
            OUTLINES[1] if _within(start, end, spans[1]) else "",
        )
        for start, end in pairwise(edges)
    ]


def _span(row: PredictedRow, context: str) -> tuple[int, int] | None:
    start, end = row.number("start"), row.number("end")
    is_one = start is not None and end is not None and 0 <= start < end <= len(context)
    return (int(start), int(end)) if is_one else None  # type: ignore[arg-type]


def _within(start: int, end: int, span: tuple[int, int] | None) -> bool:
    return span is not None and span[0] <= start and end <= span[1]


_FORMS: dict[type[RowView], Callable[[Rows], Pieces]] = {
    LabelView: _whole,
    NumberView: _whole,
    ChoiceView: _whole,
    SpanView: _whole,
    EntityView: _tags,
}
"""Row view → how two answers are written beside each other; any other's are texts whose words differ."""


class AnswerCard(Card):
    """Only displays; actions are emitted as signals."""

    let_go = Signal()
    continued = Signal()
    """The user wants to continue the chat from this answer."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Answer"), parent)
        self.facts = label("", "faint")
        self.corner.addWidget(self.facts)
        self.note = Banner()
        self.cuts = Banner()
        self.empty = EmptyState("target", "")
        self.show_busy(False)
        self.view: RowView | None = None
        self.compared: ComparedView | None = None
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.hide()
        for widget, stretch in ((self.note, 0), (self.cuts, 0), (self.empty, 1), (self._area, 1)):
            self.add(widget, stretch)
        self.add(self._foot())
        self.foot = QHBoxLayout()
        self.body.addLayout(self.foot)

    def _foot(self) -> QWidget:
        self.open = ElidedLabel("", "faint")
        self.release = IconButton(tr("Unload"), "close", "quiet")
        self.release.setToolTip(tr("Unload the models and free their memory"))
        self.release.clicked.connect(self.let_go)
        self.go_on = IconButton(tr("Continue this chat"), "plus", "quiet")
        self.go_on.clicked.connect(self.continued)
        self.go_on.hide()
        self._open_row = QWidget()
        row = QHBoxLayout(self._open_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.open, 1)
        row.addWidget(self.go_on)
        row.addWidget(self.release)
        self.show_open([], {})
        return self._open_row

    # The answer

    def show_question(self, question: AnsweredQuestion) -> None:
        """Show a complete answer, or both if there are two models."""
        both = [one for one in (question, question.beside) if one is not None]
        notes = [
            f"{one.name}: {one.answer.note}" if question.beside else one.answer.note for one in both if one.answer.note
        ]
        self.note.show_message("warning", thin("\n".join(notes)))
        cuts = [f"{one.name}: {cut}" if question.beside else cut for one in both for cut in one.answer.cuts]
        self.cuts.show_message("info", thin("\n".join(cuts)))
        self.go_on.setVisible("messages" in question.question.row)
        if question.beside is None:
            self.facts.setText(f"{question.name} · {question.facts()}")
            self.show_row(question.row, question.answer.task)
        else:
            self.facts.setText(tr("two models"))
            self._make_compared_view().show_question(question)

    def show_row(self, values: Mapping[str, Any], task: str) -> None:
        """Show a row, which may still be being generated."""
        kind = view_of(task, values.keys())
        view = self.view
        if view is None or type(view) is not kind:
            view = self.view = kind()
            self.compared = None
            self._place(view)
        view.show_row(PredictedRow(values))

    def show_partial(self, names: Sequence[str], facts: Sequence[str], texts: Sequence[str]) -> None:
        """Show what two models have generated so far."""
        view = self._make_compared_view()
        view.show_partial((names[0], names[1]), (facts[0], facts[1]), (texts[0], texts[1]))

    def show_busy(self, busy: bool) -> None:
        """Show whether the first answer is pending."""
        if busy:
            self.empty.set_words(tr("Answering…"), "")
        else:
            self.empty.set_words(tr("No answer yet"), tr("Type something on the left and press Enter."))

    def show_nothing(self) -> None:
        """Clear the card: the last answer was removed from the list."""
        self._area.hide()
        self.empty.show()
        self.facts.setText("")
        for banner in (self.note, self.cuts):
            banner.clear()

    def _make_compared_view(self) -> ComparedView:
        if self.compared is None:
            self.compared = ComparedView()
            self.view = None
            self._place(self.compared)
        return self.compared

    def _place(self, view: QWidget) -> None:
        self._area.setWidget(view)
        self.empty.hide()
        self._area.show()

    # Open models

    def show_open(self, targets: Sequence[str], facts: Mapping[str, str]) -> None:
        """Show which models are loaded, with device and memory if known."""
        texts = [f"{name_of(one)} ({facts[one]})" if one in facts else name_of(one) for one in targets]
        self.open.setText(tr("Loaded: {models}", models=", ".join(texts)) if texts else "")
        self.open.setToolTip("\n".join([*targets, KEPT_OPEN]) if texts else "")
        self.release.setVisible(bool(texts))
