"""Chooses the view of a row: the one that its task declares, if the columns allow it."""

from collections.abc import Collection

from app.core.tasks import row_view
from app.widgets.row_views.choice_view import ChoiceView
from app.widgets.row_views.entity_view import EntityView
from app.widgets.row_views.label_views import LabelView, NumberView
from app.widgets.row_views.row_view import PlainView, RowView
from app.widgets.row_views.span_view import SpanView
from app.widgets.row_views.text_views import LanguageView, WritingView

ROW_VIEWS: dict[str, type[RowView]] = {
    "label": LabelView,
    "number": NumberView,
    "entities": EntityView,
    "span": SpanView,
    "text": WritingView,
    "language_model": LanguageView,
    "choice": ChoiceView,
}
"""What a task declares as its `row_view` → the form."""
BY_COLUMNS = (SpanView, LabelView)
"""Of a task that declares none: the first whose columns are there."""


def view_of(task: str, columns: Collection[str]) -> type[RowView]:
    """The view for rows of a task with these columns."""
    chosen = ROW_VIEWS.get(row_view(task))
    if chosen is not None and chosen.fits(columns):
        return chosen
    return next((view for view in BY_COLUMNS if view.fits(columns)), PlainView)
