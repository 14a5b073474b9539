"""The Lengths page of one split: lengths against the limits, unknown tokens, and padding."""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app import theme
from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.backend_words import capitalize, translate_word
from app.core.formatting import group_digits
from app.core.i18n import thin, tr, trn
from app.core.table_rows import TableRows
from app.core.text.length_bins import LengthBins, length_bins
from app.core.text.training_data import percent, short_place
from app.pages.tokenizer.tokenizer_tab import READING, waiting_question
from app.services.backend_client import BackendClient
from app.widgets.boxes import hbox, holder, scroll_area, vbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.plots.length_histogram import LengthHistogram
from app.widgets.progress import ThinProgressBar, WaitingStack
from app.widgets.tables.row_table import ROW_HEIGHT, RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.training_data import LengthMeasure, PaddingRule, TrainingLengths, UnknownRow

UNKNOWN_COLUMNS = ("share", "row", "text")
UNKNOWN_WIDTHS = {"share": 66, "row": 112, "text": 80}
PADDING_TITLES = {
    "length_buckets": tr("Grouped by length"),
    "random": tr("Random order"),
    "in_order": tr("Original order"),
    "fixed": tr("Padded to the limit"),
}

LIMIT_COLUMNS = ("limit", "rows", "share")
LIMIT_WIDTHS = {"limit": 110, "rows": 76, "share": 76}
LIMIT_TITLES = {
    "cut": tr("Rows that are truncated"),
    "windows": tr("Rows in several windows"),
    "blocks": tr("Rows longer than a block"),
}

SIDE_WIDTH = 320
NOT_SHOWN = tr("This can't be shown")
STOPPED = (tr("Stopped"), tr("Rows that are already tokenized are kept."), tr("Continue"))


class LengthsPage(WaitingStack):
    """`ask` starts a measurement; nothing is measured twice."""

    settings_chosen = Signal(dict)
    row_chosen = Signal(int)
    measured = Signal(object)
    """TrainingLengths."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        self.lengths, self.limits = LengthsCard(), LimitsCard()
        self.unknown, self.padding = UnknownCard(), PaddingCard()
        super().__init__(self._lay_out(), parent)
        self.answer: TrainingLengths | None = None
        self._question = waiting_question(
            self, client, "training_lengths", self._on_lengths, opened="subject", failed=NOT_SHOWN, stopped=STOPPED
        )
        self._arguments: Mapping[str, Any] = {}
        self._can_set = False
        self.lengths.settings_chosen.connect(self.settings_chosen)
        for card in (self.limits, self.padding):
            card.settings_chosen.connect(self.settings_chosen)
        self.lengths.measure_shown.connect(lambda measure: self.limits.show_measure(measure, can_set=self._can_set))
        self.unknown.row_chosen.connect(self.row_chosen)

    def _lay_out(self) -> QWidget:
        return holder(hbox((self.lengths, 1), self._side(), spacing=14))

    def _side(self) -> QWidget:
        """Three cards, which scroll in a low window."""
        area = scroll_area(holder(vbox((self.limits, 1), self.unknown, self.padding, spacing=14)))
        area.setFixedWidth(SIDE_WIDTH)
        return area

    def ask(self, arguments: Mapping[str, Any], *, can_set: bool) -> None:
        """Measure this data, unless it was measured last."""
        if arguments != self._arguments or (self.answer is None and not self._question.open):
            self._arguments, self._can_set, self.answer = dict(arguments), can_set, None
            self._question.stop()
            self.show_waiting(READING)
            self._question.ask(arguments)

    def _on_lengths(self, answer: TrainingLengths) -> None:
        self.answer = answer
        self.lengths.show_lengths(answer, can_set=self._can_set)
        self.unknown.show_lengths(answer)
        self.padding.show_lengths(answer, can_set=self._can_set)
        self.measured.emit(answer)


class LengthsCard(Card):
    """One histogram per limit of the task."""

    settings_chosen = Signal(dict)
    measure_shown = Signal(object)
    """LengthMeasure."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Lengths"), parent, spacing=8)
        self._measures: list[LengthMeasure] = []
        self._can_set = False
        self._place = 0
        self._bins = LengthBins(1, [0], False, 1)
        self._choices: QWidget | None = None
        self.sentence = label("", "section", wrap=True)
        self.use = QPushButton()
        theme.role(self.use, "primary")
        self.use.clicked.connect(self._on_use)
        self.histogram = LengthHistogram()
        self.histogram.bar_hovered.connect(lambda _: self._say())
        self.said = label("", "muted", wrap=True)
        self.notes = label("", "muted", wrap=True)
        top = hbox((self.sentence, 1), spacing=14)
        top.addWidget(self.use, 0, Qt.AlignmentFlag.AlignTop)
        self.add_all(top, (self.histogram, 1), vbox(self.said, self.notes, spacing=2))

    def show_lengths(self, lengths: TrainingLengths, *, can_set: bool) -> None:
        """Show the measurements; `can_set` offers a better limit to the run being set up."""
        self._measures, self._can_set = lengths.measures, can_set
        self.notes.setText(thin(" ".join(lengths.notes)))
        self.notes.setVisible(bool(lengths.notes))
        self._offer([capitalize(translate_word(measure.what)) for measure in lengths.measures])
        self.show_measure(0)

    def show_measure(self, place: int) -> None:
        """Show one of the limits."""
        self._place = place
        measure = self._measures[place]
        self._bins = length_bins(measure.lengths, measure.counts, measure.limit)
        self.sentence.setText(thin(measure.sentence))
        if measure.suggestion is not None:
            self.use.setText(tr("Set {suggestion:,}", suggestion=measure.suggestion))
            self.use.setToolTip(
                tr(
                    "Use {suggestion:,} as the {setting} of the run you are setting up",
                    suggestion=measure.suggestion,
                    setting=measure.setting,
                )
            )
        self.use.setVisible(self._can_set and measure.suggestion is not None)
        self.histogram.show_bins(self._bins, measure.limit, measure.suggestion, self._bar_words)
        self.histogram.setAccessibleDescription(f"{thin(measure.sentence)} {quantile_words(measure)}")
        self._say()
        self.measure_shown.emit(measure)

    def _offer(self, titles: list[str]) -> None:
        if self._choices is not None:
            self.corner.removeWidget(self._choices)
            self._choices.deleteLater()
            self._choices = None
        if len(titles) > 1:
            _, row = chips(titles, self.show_measure)
            row.setContentsMargins(0, 0, 0, 0)
            self._choices = holder(row)
            self.corner.addWidget(self._choices)

    def _bar_words(self, place: int) -> str:
        measure = self._measures[self._place]
        rows, end = self._bins.counts[place], (place + 1) * self._bins.width
        words = f"{self._bins.words(place)}: {trn('{count} row', '{count} rows', rows)}"
        if place == len(self._bins.counts) - 1:
            return words
        return words + tr(" · {percent} have more than {end:,}", percent=percent(measure.share_beyond(end)), end=end)

    def _say(self) -> None:
        """Describe what is under the mouse, else the quantiles."""
        self.said.setText(self.histogram.hover_text() or quantile_words(self._measures[self._place]))

    def _on_use(self) -> None:
        measure = self._measures[self._place]
        if measure.suggestion is not None:
            self.settings_chosen.emit({measure.setting: measure.suggestion})


def quantile_words(measure: LengthMeasure) -> str:
    """`17.2 tokens on average · half have at most 15 · 95 % at most 35 · the longest has 91`."""
    found = measure.quantiles
    return tr(
        "{mean:,.1f} tokens on average · half have at most {found:,} · 95% at most {found_2:,} · "
        "99% at most {found_3:,} · the longest has {found_4:,}",
        mean=measure.mean,
        found=found["50 %"],
        found_2=found["95 %"],
        found_3=found["99 %"],
        found_4=found["100 %"],
    )


class LimitsCard(Card):
    """A double click or Enter on a limit sets it for the run being set up."""

    settings_chosen = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Limits"), parent, spacing=6)
        self._measure: LengthMeasure | None = None
        self._can_set = False
        self.table = RowTable(name=tr("Common limits"), titles=COLUMN_TITLES)
        self.table.activated.connect(lambda index: self._on_activated(index.row()))
        self.add(self.table, 1)

    def show_measure(self, measure: LengthMeasure, *, can_set: bool) -> None:
        """Show the common limits for these lengths."""
        self._measure, self._can_set = measure, can_set
        self.set_title(LIMIT_TITLES[measure.beyond])
        rows = [
            (
                group_digits(one.limit) + (tr(" (current)") if one.limit == measure.limit else ""),
                group_digits(one.rows),
                percent(one.share),
            )
            for one in measure.losses
        ]

        def color(row: int, column: str) -> str:
            return "accent_text" if measure.losses[row].limit == measure.limit else ""

        self.table.show_rows(TableRows(LIMIT_COLUMNS, rows, color), LIMIT_WIDTHS, ["limit"])
        self.table.setMinimumHeight(self.table.horizontalHeader().height() + ROW_HEIGHT * len(measure.losses) + 2)
        self.table.setToolTip(tr("Double-click a limit, or press Enter, to set it") if can_set else "")

    def _on_activated(self, row: int) -> None:
        if self._measure is not None and self._can_set:
            self.settings_chosen.emit({self._measure.setting: self._measure.losses[row].limit})


class UnknownCard(Card):
    """`row_chosen` names a row to show."""

    row_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Unknown tokens"), parent, spacing=8)
        self._rows: list[UnknownRow] = []
        self.rate, self.sentence = label("", "section"), label("", "muted", wrap=True)
        self.corner.addWidget(self.rate)
        self.table = RowTable(name=tr("Rows with the largest share of unknown tokens"), titles=COLUMN_TITLES)
        self.table.setToolTip(tr("Double-click or press Enter to see a row as the model sees it"))
        self.table.setMinimumHeight(108)
        self.table.activated.connect(lambda index: self.row_chosen.emit(self._rows[index.row()].row))
        self.add_all(self.sentence, (self.table, 1))

    def show_lengths(self, lengths: TrainingLengths) -> None:
        """Show how much is unknown, and where."""
        unknown = lengths.unknown
        self._rows = unknown.worst
        share = unknown.unknown / max(1, unknown.tokens)
        self.rate.setText(percent(share) if unknown.token else tr("None"))
        self.sentence.setText(thin(unknown.sentence))
        self.table.setVisible(bool(unknown.worst))
        grows = QSizePolicy.Policy.Preferred if unknown.worst else QSizePolicy.Policy.Maximum
        self.setSizePolicy(QSizePolicy.Policy.Preferred, grows)
        rows = [
            (percent(one.unknown / max(1, one.tokens)), short_place(one.place, 12), one.text) for one in unknown.worst
        ]
        self.table.show_rows(TableRows(UNKNOWN_COLUMNS, rows), UNKNOWN_WIDTHS, ["text"])


class PaddingCard(Card):
    """One bar per way of batching; those that can be set have a button."""

    settings_chosen = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Padding"), parent, spacing=9)
        self._lines: QWidget | None = None
        self.sentence = label("", "muted", wrap=True)
        self.add(self.sentence)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def show_lengths(self, lengths: TrainingLengths, *, can_set: bool) -> None:
        """Show each rule's padding cost."""
        self.setVisible(bool(lengths.padding))
        if self._lines is not None:
            self.body.removeWidget(self._lines)
            self._lines.deleteLater()
        chosen = next((rule for rule in lengths.padding if rule.chosen), None)
        most = chosen.padding if chosen is not None and can_set else 0.0
        lines = [
            _rule_line(rule, bool(rule.setting) and rule.padding < most, self.settings_chosen.emit)
            for rule in lengths.padding
        ]
        self._lines = self.add(holder(vbox(*lines, spacing=9)))
        self.sentence.setText(
            tr(
                "{percent} of the tokens computed in batches of {batch_size:,} are padding.",
                batch_size=lengths.batch_size,
                percent=percent(chosen.padding),
            )
            if chosen
            else ""
        )


def _rule_line(rule: PaddingRule, saves: bool, use: Callable[[dict], None]) -> QWidget:
    line = QWidget()
    line.setToolTip(
        tr(
            "{title}: {tokens:,} tokens per epoch, {padding:.1%} of them padding",
            title=rule.title,
            tokens=rule.tokens,
            padding=rule.padding,
        )
    )
    line.setAccessibleName(line.toolTip())
    title = ElidedLabel(PADDING_TITLES[rule.name], "section" if rule.chosen else "muted")
    title.setToolTip(line.toolTip())
    bar = ThinProgressBar()
    bar.set_fraction(rule.padding, "accent" if rule.chosen else "plot_1_raw")
    share = label(percent(rule.padding), "section" if rule.chosen else "muted")
    share.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    share.setMinimumWidth(48)
    top = hbox((title, 1))
    if saves:
        button = QPushButton(tr("Use this"))
        theme.role(button, "chip")
        button.setAccessibleName(tr("Use: {title}", title=rule.title))
        button.clicked.connect(lambda: use(dict(rule.setting)))
        top.addWidget(button)
    elif rule.chosen:
        top.addWidget(label(tr("current"), "faint"))
    top.addWidget(share)
    vbox(top, bar, spacing=3, parent=line)
    return line
