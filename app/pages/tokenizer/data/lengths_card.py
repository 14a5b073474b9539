"""Owns the card of lengths: how many rows a limit cuts, drawn and in a sentence, with a button that sets a better one."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.backend_words import begun, said
from app.core.i18n import thin, tr, trn
from app.core.text.length_bins import LengthBins, length_bins
from app.core.text.training_messages import percent
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.plots.length_histogram import LengthHistogram
from backend.contract.rpc.training_data import LengthMeasure, TrainingLengths


class LengthsCard(Card):
    """One histogram for each limit of the task."""

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
        top = QHBoxLayout()
        top.setSpacing(14)
        top.addWidget(self.sentence, 1)
        top.addWidget(self.use, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.said)
        words.addWidget(self.notes)
        self.body.addLayout(top)
        self.add(self.histogram, 1)
        self.body.addLayout(words)

    def show_lengths(self, lengths: TrainingLengths, *, can_set: bool) -> None:
        """Show what was measured; `can_set` offers a better limit to the run that is being set up."""
        self._measures, self._can_set = lengths.measures, can_set
        self.notes.setText(thin(" ".join(lengths.notes)))
        self.notes.setVisible(bool(lengths.notes))
        self._offer([begun(said(measure.what)) for measure in lengths.measures])
        self.show_measure(0)

    def show_measure(self, place: int) -> None:
        """One of the limits."""
        self._place = place
        measure = self._measures[place]
        self._bins = length_bins(measure.lengths, measure.counts, measure.limit)
        self.sentence.setText(thin(measure.sentence))
        if measure.suggestion is not None:
            self.use.setText(tr("Set {suggestion:,}", suggestion=measure.suggestion))
            self.use.setToolTip(
                tr(
                    "Use {suggestion:,} as {setting} of the run that is being set up",
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
            self._choices = QWidget()
            group, row = chips(titles)
            row.setContentsMargins(0, 0, 0, 0)
            self._choices.setLayout(row)
            group.idClicked.connect(self.show_measure)
            self.corner.addWidget(self._choices)

    def _bar_words(self, place: int) -> str:
        measure = self._measures[self._place]
        rows, end = self._bins.counts[place], (place + 1) * self._bins.width
        beyond = measure.share_beyond(end)
        tail = (
            tr(" · {percent} have more than {end:,}", percent=percent(beyond), end=end)
            if not self._is_last(place)
            else ""
        )
        return f"{self._bins.words(place)}: {trn('{count} row', '{count} rows', rows)}{tail}"

    def _is_last(self, place: int) -> bool:
        return place == len(self._bins.counts) - 1

    def _say(self) -> None:
        """What is under the mouse, else the quantiles."""
        self.said.setText(self.histogram.hovered_words() or quantile_words(self._measures[self._place]))

    def _on_use(self) -> None:
        measure = self._measures[self._place]
        if measure.suggestion is not None:
            self.settings_chosen.emit({measure.setting: measure.suggestion})


def quantile_words(measure: LengthMeasure) -> str:
    """`17.2 tokens on average · half have at most 15 · 95 % at most 35 · the longest has 91`."""
    found = measure.quantiles
    return tr(
        "{mean:,.1f} tokens on average · half have at most {found:,} · 95 % at most {found_2:,} "
        "· 99 % at most {found_3:,} · the longest has {found_4:,}",
        mean=measure.mean,
        found=found["50 %"],
        found_2=found["95 %"],
        found_3=found["99 %"],
        found_4=found["100 %"],
    )
