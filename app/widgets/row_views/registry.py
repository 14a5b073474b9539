"""Owns which task's rows are shown in which form; a new task that needs a form of its own takes one line here."""

from collections.abc import Collection

from app.widgets.row_views.choice_view import ChoiceView
from app.widgets.row_views.entity_view import EntityView
from app.widgets.row_views.label_views import LabelView, NumberView
from app.widgets.row_views.row_view import PlainView, RowView
from app.widgets.row_views.span_view import SpanView
from app.widgets.row_views.text_views import LanguageView, WritingView

ROW_VIEWS: dict[str, type[RowView]] = {
    "text_classification": LabelView,
    "text_regression": NumberView,
    "token_classification": EntityView,
    "question_answering": SpanView,
    "seq2seq_lm": WritingView,
    "causal_lm": LanguageView,
    "masked_lm": LanguageView,
    "multiple_choice": ChoiceView,
}
BY_COLUMNS = (SpanView, LabelView)
"""Of a task that is not known, or not of this window: the first whose columns are there."""


def view_of(task: str, columns: Collection[str]) -> type[RowView]:
    """The form for rows of a task with these columns."""
    chosen = ROW_VIEWS.get(task)
    if chosen is not None and chosen.fits(columns):
        return chosen
    return next((view for view in BY_COLUMNS if view.fits(columns)), PlainView)
