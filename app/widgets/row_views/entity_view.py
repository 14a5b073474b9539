"""The view of a tagged sentence: predicted entities above the actual ones, wrong ones outlined."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import ClassVar

from app.core.i18n import tr, trn
from app.core.predictions.entities import Entity, colors_of, entities, kinds_of, words_of
from app.core.predictions.predicted_row import PredictedRow
from app.theme.palette import LIGHT
from app.widgets.card import label
from app.widgets.row_views.row_view import RowOrder, RowView, section_of
from app.widgets.text.marked_text import TextRun

COLORS = sum(name.startswith("token_") and name[6:].isdigit() for name in LIGHT)
LOST = "lost_words"


class EntityView(RowView):
    """Both lines have the same words, so that differences are easy to see."""

    own: ClassVar[frozenset[str]] = frozenset({LOST})
    orders: ClassVar[tuple[RowOrder, ...]] = (
        RowOrder(tr("Most wrong tags first"), "wrong_tags", True, "actual"),
        RowOrder(tr("Most truncated words first"), "lost_words", True, LOST),
    )
    roles: ClassVar[tuple[str, ...]] = ("tokens",)

    @classmethod
    def fits(cls, columns: Collection[str]) -> bool:
        """Whether the prediction itself is tags."""
        return not any(name.startswith("probability_") for name in columns)

    def build(self) -> None:
        """Build predicted and actual line and legend."""
        self.predicted = self.add_text(tr("Predicted"))
        self.actual = self.add_text(tr("Actual"))
        self.legend = self.add_text(tr("Types"))
        self.lost = label("", "warning", wrap=True)
        self.column.addWidget(self.lost)

    def show_parts(self, row: PredictedRow) -> None:
        """Show both lines with a colour per type."""
        words = words_of(row.part("tokens"))
        found = entities(row.prediction.split())
        right = None if row.actual is None else entities(row.actual.split())
        kinds = kinds_of(found, right or [])
        colors = colors_of(kinds, COLORS)
        self.predicted.show_pieces(entity_pieces(words, found, colors, right, "danger"))
        section_of(self.actual).setVisible(right is not None)
        self.actual.show_pieces(entity_pieces(words, right or [], colors, found, "warning"))
        self._show_legend(colors, found, right)
        lost = row.number(LOST) or 0
        self.lost.setText(
            tr(
                "{count} exceeded the model's max length and got no prediction.",
                count=trn("{count} word", "{count} words", int(lost)),
            )
            if lost
            else ""
        )
        self.lost.setVisible(bool(lost))

    def _show_legend(self, colors: dict[str, int], found: Sequence[Entity], right: Sequence[Entity] | None) -> None:
        pieces: list[TextRun] = []
        for kind, color in colors.items():
            shared = found if right is None else [one for one in found if one in right]
            counts = [str(sum(one.kind == kind for one in each)) for each in (shared, right) if each is not None]
            pieces += [TextRun(kind, f"token_{color}"), TextRun(f"  {' of '.join(counts)}     ", ink="muted")]
        if not pieces:
            pieces = [TextRun(tr("No entities"), ink="muted")]
        title = tr("Types") if right is None else tr("Types: found / actual")
        section_of(self.legend).set_title(
            tr("{title} (wrong ones outlined)", title=title) if _differ(found, right) else title
        )
        self.legend.show_pieces(pieces)


def _differ(found: Sequence[Entity], right: Sequence[Entity] | None) -> bool:
    return right is not None and set(found) != set(right)


def entity_pieces(
    words: Sequence[str],
    entities: Sequence[Entity],
    colors: dict[str, int],
    other: Sequence[Entity] | None,
    wrong: str,
) -> list[TextRun]:
    """The sentence with its entities; those missing from the other line are outlined."""
    known = None if other is None else set(other)
    ends = [0, *(place for entity in entities for place in (entity.start, entity.end)), len(words)]
    by_start = {entity.start: entity for entity in entities if entity.start < len(words)}
    pieces: list[TextRun] = []
    for start, end in pairwise(ends):
        text = " ".join(words[start:end])
        if not text:
            continue
        if pieces:
            pieces.append(TextRun(" "))
        entity = by_start.get(start)
        if entity is None or entity.end < end:
            pieces.append(TextRun(text))
        else:
            outline = wrong if known is not None and entity not in known else ""
            pieces.append(TextRun(text, f"token_{colors[entity.kind]}", outline, tag=entity.kind))
    return pieces
