"""The view of an answered question: the answers marked in the context, and the best ones below."""

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, ClassVar

from app.core.formatting import number
from app.core.i18n import tr
from app.core.predictions.predicted_row import PredictedRow
from app.widgets.card import label
from app.widgets.plots.label_bars import Bar, LabelBars
from app.widgets.row_views.row_view import RowOrder, RowView, section_of
from app.widgets.text.marked_text import TextRun

NO_ANSWER = tr("No answer")
SHOWN = 20
Span = tuple[int, int]


class SpanView(RowView):
    """The predicted answer has a background, the right ones an outline."""

    own: ClassVar[frozenset[str]] = frozenset({"score", "start", "end", "null_score", "n_best"}) | frozenset(
        {f"predicted_{name}" for name in ("score", "start", "end", "null_score", "n_best")}
    )
    orders: ClassVar[tuple[RowOrder, ...]] = (
        RowOrder(tr("Lowest score first"), "score", False),
        RowOrder(tr("Highest score first"), "score", True),
    )
    folded: ClassVar[tuple[str, ...]] = ("context", "id")
    roles: ClassVar[tuple[str, ...]] = ("question", "context")

    @classmethod
    def fits(cls, columns: Collection[str]) -> bool:
        """Whether an answer has a position in its context."""
        return "n_best" in columns or "predicted_n_best" in columns

    def build(self) -> None:
        """Question, context, answers."""
        self.question = self.add_text(tr("Question"))
        self.answer = self.add_text(tr("Answer"))
        self.context = self.add_text(tr("Context"), fills=True)
        self.best = LabelBars(tr("Best answers"))
        self.add(tr("Best answers"), self.best)
        self.facts = label("", "caption", wrap=True)
        self.column.addWidget(self.facts)

    def show_parts(self, row: PredictedRow) -> None:
        """Show both answers in their context."""
        self.question.show_text(row.text("question"))
        self.answer.show_pieces(_verdict(row))
        self.context.show_pieces(_mark_runs(row))
        best = [one for one in row.as_list("n_best") if isinstance(one, dict)][:SHOWN]
        section_of(self.best).setVisible(bool(best))
        chosen = next((place for place, one in enumerate(best) if one.get("text") == row.prediction), -1)
        self.best.show_bars([_bar(one, row, place == chosen) for place, one in enumerate(best)])
        facts = {tr("score"): row.number("score"), tr("null score"): row.number("null_score")}
        self.facts.setText(" · ".join(f"{name} {number(value)}" for name, value in facts.items() if value is not None))


def _verdict(row: PredictedRow) -> list[TextRun]:
    right = row.actual is None or row.prediction == row.actual
    ground = "info_soft" if row.actual is None else "success_soft" if right else "danger_soft"
    pieces = [TextRun(row.prediction or NO_ANSWER, ground)]
    if not right:
        pieces += [TextRun(f"   {tr('actual')}  ", ink="muted"), TextRun(row.actual or NO_ANSWER, outline="success")]
    return pieces


def _bar(one: Mapping[str, Any], row: PredictedRow, chosen: bool) -> Bar:
    text = str(one.get("text") or "")
    if chosen:
        mark = "predicted" if row.actual is None else "right" if text == row.actual else "wrong"
    else:
        mark = "actual" if row.actual is not None and text == row.actual else ""
    return Bar(text or NO_ANSWER, float(one.get("probability") or 0.0), mark)


def _mark_runs(row: PredictedRow) -> list[TextRun]:
    """The context split at every answer boundary."""
    context = row.text("context")
    predicted, right = _predicted_span(row, context), _right_spans(row, context)
    edges = sorted({0, len(context), *(predicted or ()), *(edge for span in right for edge in span)})
    ground = "info_soft" if row.actual is None else "success_soft" if row.prediction == row.actual else "danger_soft"
    return [
        TextRun(
            context[start:end],
            ground if predicted and predicted[0] <= start and end <= predicted[1] else "",
            "success" if any(a <= start and end <= b for a, b in right) else "",
        )
        for start, end in pairwise(edges)
    ]


def _predicted_span(row: PredictedRow, context: str) -> Span | None:
    start, end = row.number("start"), row.number("end")
    if start is None or end is None or not 0 <= start < end <= len(context):
        return None
    return int(start), int(end)


def _right_spans(row: PredictedRow, context: str) -> list[Span]:
    """The spans given with the answers; else the first occurrence of the actual text."""
    answers = row.part("answers")
    spans: list[Span] = []
    if isinstance(answers, Mapping) and answers.get("text"):
        starts = answers.get("answer_start") or []
        spans = [
            (start, start + len(text))
            for start, text in zip(starts, answers["text"], strict=False)
            if start is not None and context[start : start + len(text)] == text
        ]
    if not spans and row.actual and (place := context.find(row.actual)) >= 0:
        spans = [(place, place + len(row.actual))]
    return _apart(spans)


def _apart(spans: list[Span]) -> list[Span]:
    """Merge overlapping answers."""
    joined: list[Span] = []
    for start, end in sorted(set(spans)):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
