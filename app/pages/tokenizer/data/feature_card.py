"""Owns the card that shows one feature as the model gets it: its tokens by kind, its labels, and the row it is made of."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app import theme
from app.core.backend_sentences import told
from app.core.i18n import tr
from app.core.text.training_messages import KINDS, feature_words, kinds_there, numbers_at
from app.widgets.card import Card, label
from app.widgets.text.labelled_tokens import GROUNDS, LabelledToken, LabelledTokens
from backend.contract.rpc.training_data import Kind, TokenSequence, TrainingFeature

CELL_CHARACTERS = 400
NOTHING = tr("Point at a token to see its id and label.")


class FeatureCard(Card):
    """Tokens scroll; what is said of the token under the mouse stands below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What the model gets"), parent, spacing=8)
        self.feature: TrainingFeature | None = None
        self.place = label("", "faint")
        self.corner.addWidget(self.place)
        self.values = label("", wrap=True, selectable=True)
        self.legend = label("", wrap=True)
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.details = label(NOTHING, "mono", wrap=True, selectable=True)
        self.details.setMinimumHeight(36)
        self.details.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.views: list[LabelledTokens] = []
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.add(self.values)
        self.add(self._area, 1)
        self.add(self.legend)
        self.add(self.details)
        self.show_nothing()

    def show_nothing(self) -> None:
        """No feature is chosen."""
        self.feature = None
        self.place.setText("")
        self.values.setText(tr("Choose a row on the left."))
        self.legend.setText("")
        self.details.setText("")
        self._area.setWidget(QWidget())
        self.views = []

    def show_feature(self, feature: TrainingFeature) -> None:
        """Show this one."""
        self.feature = feature
        self.place.setText(feature_words(feature))
        self.values.setText(" · ".join(f"{told(name)}: {told(text)}" for name, text in feature.values))
        inner = QWidget()
        inner.setObjectName("scrolled")
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(6)
        self.views = []
        for number, sequence in enumerate(feature.sequences):
            column.addWidget(label(_title(sequence), "muted"))
            column.addWidget(self._view(sequence, number))
        for name, text in feature.cells:
            column.addWidget(label(tr("{name} of {place}", name=name, place=feature.place), "muted"))
            column.addWidget(label(_shortened(text), wrap=True, selectable=True))
        column.addStretch(1)
        self._area.setWidget(inner)
        self._write_legend()
        self.details.setText(NOTHING)

    def apply_theme(self) -> None:
        """The legend holds colours."""
        self._write_legend()

    def _view(self, sequence: TokenSequence, number: int) -> LabelledTokens:
        view = LabelledTokens(sequence.title)
        tokens = zip(sequence.texts, sequence.kinds, sequence.labels, strict=True)
        view.show_tokens(
            [LabelledToken(*token) for token in tokens], [(border.place, border.title) for border in sequence.borders]
        )
        view.token_hovered.connect(lambda place: self._say(sequence, number, place))
        self.views.append(view)
        return view

    def _write_legend(self) -> None:
        there = kinds_there(self.feature) if self.feature is not None else []
        self.legend.setText("&nbsp;&nbsp;&nbsp;".join(_swatch(kind) for kind in there if kind != "token"))
        self.legend.setVisible(bool(self.legend.text()))

    def _say(self, sequence: TokenSequence, number: int, place: int) -> None:
        if place < 0 or self.feature is None:
            self.details.setText(NOTHING)
            return
        said = sequence.labels[place]
        parts = [
            f"#{place}",
            tr("id {ids}", ids=sequence.ids[place]),
            repr(sequence.texts[place]),
            KINDS[sequence.kinds[place]],
        ]
        parts += [tr("label {said}", said=said)] if said else []
        parts += [f"{name} {value}" for name, value in numbers_at(self.feature, number, place)]
        self.details.setText("  ".join(parts))


def _title(sequence: TokenSequence) -> str:
    shown = len(sequence.ids)
    return (
        tr("{title} · the first {shown:,} of {length:,}", title=sequence.title, shown=shown, length=sequence.length)
        if shown < sequence.length
        else sequence.title
    )


def _swatch(kind: Kind) -> str:
    ground = GROUNDS.get(kind)
    sign = f'<span style="color:{theme.hex_color(ground)}">■</span>' if ground else "□"
    return f'<span style="color:{theme.hex_color("muted")}">{sign} {KINDS[kind]}</span>'


def _shortened(text: str) -> str:
    return text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}…"
