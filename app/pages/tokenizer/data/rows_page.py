"""The Rows page: rows of a training step or in data order, and the model's input for the chosen one."""

from collections.abc import Iterator, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app import theme
from app.core.backend_messages import translate_message
from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.i18n import tr
from app.core.table_rows import TableRows
from app.core.text.invisible_characters import SPACES, visible
from app.core.text.training_data import KINDS, feature_words, kinds_there, numbers_at, short_place, step_words
from app.pages.tokenizer.data.lengths_page import NOT_SHOWN, STOPPED
from app.pages.tokenizer.tokenizer_tab import READING, waiting_question
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.widgets.banner import Banner
from app.widgets.boxes import hbox, holder, scroll_area, vbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.forms.inputs import QuietSpinBox
from app.widgets.progress import WaitingStack
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.row_table import RowTable
from app.widgets.text.marked_text import MarkedText, TextRun
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.training_data import FeatureLine, Kind, TokenSequence, TrainingFeature, TrainingRows

CELL_CHARACTERS = 400
POINT_AT_A_TOKEN = tr("Hover over a token to see its ID and label.")

GROUNDS = {
    "token": "token_0", "second": "token_4", "special": "token_special", "target": "token_2", "label": "token_1",
    "hidden": "token_3", "answer": "token_1", "unknown": "danger_soft",
}  # fmt: skip
"""Kind → colour behind a token; the others are only outlined."""
_INKS = {"special": "token_special_text", "ignored": "faint", "padding": "disabled", "unknown": "danger"}

PAGE = 100
BY_STEP, IN_ORDER = 0, 1
PLACE_CHARACTERS = 15
COLUMNS = ("place", "tokens", "label", "text")
NARROWEST, WIDEST = 70, 136


def _table_rows(lines: list[FeatureLine]) -> TableRows:
    places = [f"{one.place} ({one.part + 1})" if one.part else one.place for one in lines]
    rows = [
        (short_place(place, PLACE_CHARACTERS), one.tokens, one.label, one.text)
        for place, one in zip(places, lines, strict=True)
    ]
    return TableRows(COLUMNS, rows)


class RowsPage(WaitingStack):
    """Shows a step or part of the data; selecting a line shows its feature."""

    answered = Signal(object)
    """TrainingRows."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        self.feature_card, self.table = FeatureCard(), RowTable(name=tr("Rows"), titles=COLUMN_TITLES)
        self.said, self.banner = label("", "muted", wrap=True), Banner()
        super().__init__(self._lay_out(), parent)
        self.answer: TrainingRows | None = None
        self._rows = waiting_question(
            self, client, "training_rows", self._on_rows, opened="subject", failed=NOT_SHOWN, stopped=STOPPED
        )
        self._feature = LatestQuestion(
            client, "training_feature", self.feature_card.show_feature, self._on_no_feature, opened="subject"
        )
        self._subject: Mapping[str, Any] = {}
        self._arguments: Mapping[str, Any] = {}
        self._targets = {BY_STEP: 1, IN_ORDER: 1}
        self.table.row_selected.connect(self._on_line)

    def _lay_out(self) -> QWidget:
        self.kinds, kinds = chips((tr("Step"), tr("In order")), lambda _: self._ask())
        self.number = QuietSpinBox(minimum=1, maximum=1)
        self.number.setKeyboardTracking(False)
        self.number.setGroupSeparatorShown(True)
        self.number.setAccessibleName(tr("Step"))
        self.number.valueChanged.connect(self._on_number)
        self.caption, self.of = label(tr("Step"), "muted"), label("", "muted")
        self.table.setMinimumHeight(120)
        card = Card(tr("Rows"), spacing=8)
        card.corner.addLayout(kinds)
        top = hbox(self.caption, self.number, self.of, 1, spacing=8)
        card.add_all(top, self.said, self.banner, (self.table, 1))
        split = RememberedSplitter("rows", Qt.Orientation.Horizontal)
        split.hold((card, self.feature_card), (), (500, 540))
        return holder(vbox(split))

    # What is asked

    @property
    def kind(self) -> int:
        """BY_STEP or IN_ORDER."""
        return self.kinds.checkedId()

    def show_subject(self, arguments: Mapping[str, Any]) -> None:
        """Show other data: start with its first step, or its first row if it has no steps."""
        if arguments != self._subject:
            self._begin(arguments)
            has_steps = arguments.get("split") == "train"
            self.kinds.button(BY_STEP).setEnabled(has_steps)
            self.kinds.button(BY_STEP if has_steps else IN_ORDER).setChecked(True)
            self._targets = {BY_STEP: 1, IN_ORDER: 1}
            self.number.setMaximum(1)
        self._ask()

    def show_step(self, arguments: Mapping[str, Any], step: int) -> None:
        """Show the rows of a step of this training run."""
        self._aim(arguments, BY_STEP, step)

    def show_row(self, arguments: Mapping[str, Any], row: int) -> None:
        """Show a row, counted from 0, and those after it."""
        self._aim(arguments, IN_ORDER, row + 1)

    def _aim(self, arguments: Mapping[str, Any], kind: int, number: int) -> None:
        if arguments != self._subject:
            self._begin(arguments)
        self.kinds.button(BY_STEP).setEnabled(arguments.get("split") == "train")
        self.kinds.button(kind).setChecked(True)
        self._targets[kind] = number
        self._ask()

    def _begin(self, subject: Mapping[str, Any]) -> None:
        """Drop pending queries about other data."""
        self._rows.stop()
        self._feature.stop()
        self._subject, self._arguments, self.answer = dict(subject), {}, None

    def _ask(self) -> None:
        number = self._targets[self.kind]
        wanted = {"step": number, "count": 500} if self.kind == BY_STEP else {"row": number - 1, "count": PAGE}
        arguments = {**self._subject, **wanted}
        if arguments != self._arguments or (self.answer is None and not self._rows.open):
            if self._arguments.keys() != arguments.keys():
                self._rows.ignore()  # rows of the other kind are no longer looked for
            self._arguments = arguments
            if self.answer is None or self.waits:
                self.show_waiting(READING)
            self._rows.ask(arguments)

    def _on_number(self, number: int) -> None:
        self._targets[self.kind] = number
        self._ask()

    # What is answered

    def _on_rows(self, answer: TrainingRows) -> None:
        self.answer = answer
        self._show_number(answer)
        self.said.setText(step_words(answer.step) if answer.step else _span_words(answer))
        self.banner.show_message("warning", answer.step.differs if answer.step else "")
        columns, rows = self._columns(answer), _table_rows(answer.lines)
        self.table.show_rows(rows, _widths(rows, columns), ["text"], columns)
        self.answered.emit(answer)
        if answer.lines:
            self.table.selectRow(0)
        else:
            self.feature_card.show_nothing()

    @staticmethod
    def _columns(answer: TrainingRows) -> list[str]:
        """The columns, without an empty label column."""
        has_labels = any(line.label for line in answer.lines)
        return [name for name in COLUMNS if name != "label" or has_labels]

    def _show_number(self, answer: TrainingRows) -> None:
        by_step = answer.step is not None
        most = max(1, answer.steps if by_step else answer.rows)
        self.number.blockSignals(True)
        self.number.setMaximum(most)
        self.number.setSingleStep(1 if by_step else PAGE)
        self.number.setValue(self._targets[self.kind])
        self.number.blockSignals(False)
        self.caption.setText(tr("Step") if by_step else tr("From row"))
        self.number.setAccessibleName(self.caption.text())
        self.of.setText(tr("of {most:,}", most=most))

    def _on_line(self, line: int) -> None:
        self._feature.ignore()
        if self.answer is None or not 0 <= line < len(self.answer.lines):
            return
        step = self.answer.step.step if self.answer.step else None
        question = {**self._subject, "feature": self.answer.lines[line].feature, "step": step}
        self._feature.ask(question)

    def _on_no_feature(self, mistake: ErrorReply) -> None:
        self.feature_card.show_nothing()
        self.banner.show_message("error", mistake.message)


def _widths(rows: TableRows, columns: list[str]) -> dict[str, int]:
    """Size columns to their longest cells; the text gets the rest."""
    letters = {name: max((len(str(row[COLUMNS.index(name)])) for row in rows.rows), default=0) for name in columns}
    return {name: min(WIDEST, max(NARROWEST, 28 + 7 * most)) for name, most in letters.items()}


def _span_words(answer: TrainingRows) -> str:
    last = answer.start + len(answer.lines)
    same = answer.features == answer.rows
    return (
        tr("Rows {start:,} to {last:,}", start=answer.start + 1, last=last)
        if same
        else tr(
            "Features {start:,} to {last:,} of {features:,}, made from {rows:,} rows",
            start=answer.start + 1,
            last=last,
            features=answer.features,
            rows=answer.rows,
        )
    )


class FeatureCard(Card):
    """The tokens scroll; details of the token under the mouse are below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What the model sees"), parent, spacing=8)
        theme.follow(self)
        self.feature: TrainingFeature | None = None
        self.place = label("", "faint")
        self.corner.addWidget(self.place)
        self.values = label("", wrap=True, selectable=True)
        self.legend = label("", wrap=True)
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.details = label(POINT_AT_A_TOKEN, "mono", wrap=True, selectable=True)
        self.details.setMinimumHeight(36)
        self.details.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.views: list[MarkedText] = []
        self._area = scroll_area(QWidget())
        self.add_all(self.values, (self._area, 1), self.legend, self.details)
        self.show_nothing()

    def show_nothing(self) -> None:
        """Show that no feature is chosen."""
        self.feature = None
        self.place.setText("")
        self.values.setText(tr("Choose a row on the left."))
        self.legend.setText("")
        self.details.setText("")
        self._area.setWidget(QWidget())
        self.views = []

    def show_feature(self, feature: TrainingFeature) -> None:
        """Show this feature."""
        self.feature = feature
        self.place.setText(feature_words(feature))
        self.values.setText(
            " · ".join(f"{translate_message(name)}: {translate_message(text)}" for name, text in feature.values)
        )
        self.views, parts = [], []
        for number, sequence in enumerate(feature.sequences):
            parts += [label(_title(sequence), "muted"), self._view(sequence, number)]
        for name, text in feature.cells:
            parts.append(label(tr("{name} of {place}", name=name, place=feature.place), "muted"))
            parts.append(label(_shorten(text), wrap=True, selectable=True))
        inner = holder(vbox(*parts, 1, spacing=6, margins=(0, 0, 6, 0)))
        inner.setObjectName("scrolled")
        self._area.setWidget(inner)
        self.apply_theme()
        self.details.setText(POINT_AT_A_TOKEN)

    def _view(self, sequence: TokenSequence, number: int) -> MarkedText:
        view = MarkedText(sequence.title)
        theme.give_font(view, 13, mono=True)
        view.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        view.show_pieces(list(_token_runs(sequence)))
        view.mark_hovered.connect(lambda place: self._say(sequence, number, place))
        self.views.append(view)
        return view

    def apply_theme(self) -> None:
        """Write the legend, which holds colours."""
        kinds = kinds_there(self.feature) if self.feature is not None else []
        self.legend.setText("&nbsp;&nbsp;&nbsp;".join(_swatch(kind) for kind in kinds if kind != "token"))
        self.legend.setVisible(bool(self.legend.text()))

    def _say(self, sequence: TokenSequence, number: int, place: int) -> None:
        if place < 0 or self.feature is None:
            self.details.setText(POINT_AT_A_TOKEN)
            return
        said = sequence.labels[place]
        parts = [
            f"#{place}",
            tr("ID {ids}", ids=sequence.ids[place]),
            repr(sequence.texts[place]),
            KINDS[sequence.kinds[place]],
        ]
        parts += [tr("label {said}", said=said)] if said else []
        parts += [f"{name} {value}" for name, value in numbers_at(self.feature, number, place)]
        self.details.setText("  ".join(parts))


def _token_runs(sequence: TokenSequence) -> Iterator[TextRun]:
    """A mark for each token, with its label inside; a border starts a line."""
    borders = {border.place: border.title for border in sequence.borders}
    for place, (text, kind, said) in enumerate(zip(sequence.texts, sequence.kinds, sequence.labels, strict=True)):
        if place in borders:
            yield TextRun("\n" * (place > 0) + f"{borders[place]}\n", ink="accent_text")
        ground = GROUNDS.get(kind, "")
        ink = _INKS.get(kind, "token_text")
        yield TextRun(visible(text), ground, "" if ground else "border", ink, said.translate(SPACES))
        yield TextRun(" ")


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


def _shorten(text: str) -> str:
    return text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}…"
