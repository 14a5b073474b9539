"""Owns the view of a row of a task that the window does not know: every column with its value."""

from app.core.predictions.predicted_row import PredictedRow
from app.widgets.row_views.row_view import RowView, Values


class PlainView(RowView):
    """Prediction and actual value first."""

    def build(self) -> None:
        """One list; what else there is follows as in every view."""
        self.answers = Values()
        self.column.addWidget(self.answers)

    def show_parts(self, row: PredictedRow) -> None:
        """Prediction and actual value."""
        self.answers.show_values({name: row.values[name] for name in ("prediction", "actual") if name in row.values})
