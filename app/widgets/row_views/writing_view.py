"""Owns the view of a written text: source, prediction and reference, with the words that differ marked."""

from typing import ClassVar

from app.core.i18n import tr
from app.core.predictions.predicted_row import PredictedRow
from app.core.predictions.word_diff import difference, is_comparable
from app.widgets.card import label
from app.widgets.row_views.row_view import Order, RowView, section_of
from app.widgets.text.marked_text import Piece


class WritingView(RowView):
    """What the prediction has too much is red, what it lacks of the reference is green."""

    own: ClassVar[frozenset[str]] = frozenset({"source_text", "predicted_source_text", "tokens"})
    orders: ClassVar[tuple[Order, ...]] = (Order(tr("Highest loss first"), "loss", True),)
    roles: ClassVar[tuple[str, ...]] = ("source", "prefix", "source_language", "target_language", "prompt", "response")

    def build(self) -> None:
        """Source above, both texts below it."""
        self.source = self.add_text(tr("Source"))
        self.prediction = self.add_text(tr("Prediction"))
        self.reference = self.add_text(tr("Reference"))
        self.note = label("", "caption", wrap=True)
        self.column.addWidget(self.note)

    def show_parts(self, row: PredictedRow) -> None:
        """Show the texts and what differs."""
        source = str(row.own("source_text") or "") or row.text("source") or row.text("prompt")
        section_of(self.source).setVisible(bool(source))
        self.source.show_text(source)
        section_of(self.reference).setVisible(row.actual is not None)
        if row.actual is None:
            self.prediction.show_text(row.prediction)
            self.note.hide()
            return
        ours, theirs = difference(row.prediction, row.actual)
        empty = [Piece(tr("nothing was written"), ink="faint")]
        self.prediction.show_pieces([_piece(text, same, "danger_soft") for text, same in ours] or empty)
        self.reference.show_pieces([_piece(text, same, "success_soft") for text, same in theirs])
        self.note.setText(_note(row.prediction, row.actual, ours, theirs))
        self.note.show()


def _piece(text: str, same: bool, ground: str) -> Piece:
    return Piece(text, "" if same else ground)


def _note(prediction: str, actual: str, ours: list[tuple[str, bool]], theirs: list[tuple[str, bool]]) -> str:
    if prediction == actual:
        return tr("The same to the letter.")
    if not is_comparable(prediction, actual):
        return tr("These texts are too long to be compared word by word.")
    added, missing = (sum(not same for _, same in parts) for parts in (ours, theirs))
    return tr(
        "Red is not in the reference ({added}), green is missing from the prediction ({missing}).",
        added=added,
        missing=missing,
    )
