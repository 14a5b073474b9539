"""What a run will cost, what would make it fit, and the buttons that measure its time and start it."""

import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QMenu, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft import run_duration
from app.core.i18n import tr
from app.pages.new_run.cost_details import CostDetails, placed_words
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.protocol import Progress
from backend.contract.run.cost import MeasuredTime, MemoryFix

SHOWN_REMEDIES = 3

MEASURING_HINT = tr(
    "Train a few steps with the real model and data to estimate how long the run will take. Nothing is saved."
)

FACTS = (tr("Steps"), tr("Tokens"), tr("Trainable"), tr("Time"), tr("Memory"))


class CostCard(Card):
    """Stays at the bottom of the page, outside of the scrolling part."""

    start_asked = Signal()
    queue_asked = Signal()
    copy_asked = Signal()
    remedy_chosen = Signal(object)
    """A MemoryFix whose settings are to be applied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.values = {name: label("–", "section") for name in FACTS}
        self.subs = {name: ElidedLabel("\u00a0", "faint") for name in FACTS}
        self.plan: RunPlan | None = None
        self.details = QPushButton(tr("Details"))
        theme.role(self.details, "small")
        self.details.setToolTip(tr("How memory, time and tokens are calculated"))
        self.details.clicked.connect(self.show_details)
        self.measure = MeasureButton(self)
        self.shortage = ""
        """Why a measurement had not enough memory, until there is another plan."""
        self.remedies = MemoryFixRow()
        self.remedies.chosen.connect(self.remedy_chosen)
        self.bar = ThinProgressBar()
        self.notes = label("", "faint", wrap=True)
        self.reason = label("", "danger", wrap=True)
        self.start = IconButton(tr("Start training"), "play", "primary")
        self.start.setMinimumWidth(150)
        self.start.clicked.connect(self.start_asked)
        self._others = ""
        self.queue = IconButton(tr("Add to queue"), "plus")
        self.queue.clicked.connect(self.queue_asked)
        self.queue.hide()
        self.copy = IconButton(tr("Copy command"), "copy", "quiet")
        self.copy.clicked.connect(self.copy_asked)
        self.add(self._row())
        self.clear("")

    def _row(self) -> QWidget:
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(20)
        row.addLayout(self._facts(), 1)
        buttons = QVBoxLayout()
        buttons.setSpacing(4)
        buttons.addWidget(self.start)
        buttons.addWidget(self.queue)
        buttons.addWidget(self.copy)
        row.addLayout(buttons)
        return holder

    def _facts(self) -> QVBoxLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(0)
        for column, name in enumerate(FACTS):
            caption = label(name, "caption")
            for fact in (caption, self.values[name]):
                # Sentences below may wrap; what they take must not be taken from the numbers.
                fact.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
            grid.addWidget(caption, 0, column)
            grid.addWidget(self.values[name], 1, column)
            grid.addWidget(self.subs[name], 2, column)
            grid.setColumnStretch(column, 4 if name == FACTS[3] else 3)  # followed by how long ago it was measured
        column = QVBoxLayout()
        column.setSpacing(6)
        column.addLayout(grid)
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(self.bar, 1)
        line.addWidget(self.measure.button)
        line.addWidget(self.details)
        column.addLayout(line)
        column.addWidget(self.measure.row)
        column.addWidget(self.notes)
        column.addWidget(self.reason)
        column.addWidget(self.remedies)
        return column

    def clear(self, words: str) -> None:
        """Show that nothing is known yet; `words` says why or that it is being computed."""
        for name in FACTS:
            self.values[name].setText("–")
            self.subs[name].setText("\u00a0")
        self.plan, self.shortage = None, ""
        self.details.setEnabled(False)
        self.remedies.show_remedies([])
        self.bar.set_fraction(0.0)
        self.show_notes([words] if words else [])

    def show_details(self) -> None:
        """Show the breakdown of what is shown."""
        if self.plan is not None:
            CostDetails(self.plan, self.details).popup_above(self.details)

    def show_notes(self, notes: list[str]) -> None:
        """Show sentences below the numbers."""
        self.notes.setText("  ·  ".join(notes))
        self.notes.setVisible(bool(notes))

    def show_reason(self, reason: str, is_problem: bool) -> None:
        """Show why Start is disabled, whether a problem or a missing choice; empty enables it."""
        theme.role(self.reason, "danger" if is_problem or (self.shortage and not reason) else "muted")
        self.start.setEnabled(not reason)
        self.start.setToolTip(reason)
        self.queue.setEnabled(not reason)
        self.queue.setToolTip(reason or self._others)
        self.reason.setText(reason or self.shortage)
        self.reason.setVisible(bool(reason or self.shortage))
        self.measure.show_reason(reason or ("" if self.plan else tr("The cost is still being estimated.")))

    def show_others(self, words: str) -> None:
        """Show what this run would wait for in the queue; hidden without other runs."""
        self._others = words
        self.queue.setVisible(bool(words))
        if self.queue.isEnabled():
            self.queue.setToolTip(words)

    def show_starting(self, starting: bool) -> None:
        """Show that the run is starting."""
        self.start.setText(tr("Starting…") if starting else tr("Start training"))
        if starting:
            self.start.setEnabled(False)
            self.queue.setEnabled(False)

    def show_shortage(self, found: MeasuredTime) -> None:
        """Show that a measurement ran out of memory, and offer what would need less."""
        self.shortage = formatting.sentence(
            tr("{shortage}, although the estimate said it would fit.", shortage=found.shortage)
        )
        self.remedies.show_remedies(found.remedies)

    def show_plan(self, plan: RunPlan) -> None:
        """Show the numbers of a plan."""
        self.plan, self.shortage = plan, ""
        self.details.setEnabled(True)
        self.remedies.show_remedies(plan.remedies)
        share = plan.memory_mb / plan.available_mb if plan.available_mb else None
        computes = f"{plan.device}, {plan.precision}"
        figures = {
            tr("Steps"): (
                formatting.group_digits(plan.total_steps),
                tr("{steps_per_epoch} per epoch", steps_per_epoch=formatting.group_digits(plan.steps_per_epoch)),
            ),
            tr("Tokens"): (
                formatting.short_count(plan.tokens_per_epoch),
                tr("per epoch"),
            ),
            tr("Trainable"): (
                formatting.short_count(plan.trainable),
                tr("of {parameters}", parameters=formatting.short_count(plan.parameters)),
            ),
            tr("Time"): (
                run_duration.whole(plan),
                run_duration.origin(plan.measured, time.time()) or computes,
            ),
            tr("Memory"): _memory(plan),
        }
        for name, (value, sub) in figures.items():
            self.values[name].setText(value)
            self.subs[name].setText(sub)
        if plan.measured is not None:  # what stood there before is still one look away
            self.subs[tr("Time")].setToolTip(f"{self.subs[tr('Time')].text()} · {computes}")
            self.subs[tr("Memory")].setToolTip(_estimate_words(plan))
        theme.role(self.values[tr("Memory")], "section" if plan.fits else "danger")
        parts = "\n".join(
            [
                *(f"{translate_word(part.name)}: {formatting.megabytes(part.megabytes)}" for part in plan.memory),
                *map(placed_words, plan.placement),
            ]
        )
        self.values[tr("Memory")].setToolTip(parts)
        self.bar.set_fraction(share, "accent" if plan.fits else "danger")
        self.bar.setToolTip(parts)
        self.show_notes([formatting.note(note) for note in plan.notes if note])


def _memory(plan: RunPlan) -> tuple[str, str]:
    """Prefer measured memory to the estimate."""
    seen = run_duration.peak_mb(plan.measured)
    if seen is None:
        return tr("about {memory_mb}", memory_mb=formatting.megabytes(plan.memory_mb)), _free(plan)
    return formatting.megabytes(seen), tr("measured")


def _estimate_words(plan: RunPlan) -> str:
    return tr("estimated {memory_mb} · {free}", memory_mb=formatting.megabytes(plan.memory_mb), free=_free(plan))


def _free(plan: RunPlan) -> str:
    return tr("of {available_mb} free", available_mb=formatting.megabytes(plan.available_mb))


class MeasureButton(QObject):
    """Starts a measurement, or stops the running one. The row shows progress and is hidden otherwise."""

    start_asked = Signal()
    stop_asked = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.busy = False
        self._reason = ""
        self.button = QPushButton(tr("Measure time"))
        theme.role(self.button, "small")
        self.button.clicked.connect(lambda: (self.stop_asked if self.busy else self.start_asked).emit())
        self.row = QWidget()
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        line = QHBoxLayout(self.row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(8)
        line.addWidget(self.words)
        line.addWidget(self.bar, 1)
        self.row.hide()
        self.show_reason(tr("Choose a task, data and a model first."))

    def show_reason(self, reason: str) -> None:
        """Show why nothing can be measured; empty if it can."""
        self._reason = reason
        self.button.setEnabled(self.busy or not reason)
        self.button.setToolTip(tr("Stop the measurement. Nothing is saved.") if self.busy else reason or MEASURING_HINT)

    def show_progress(self, progress: Progress | None) -> None:
        """Show the progress; None if no measurement is running."""
        self.busy = progress is not None
        self.button.setText(tr("Stop measuring") if self.busy else tr("Measure time"))
        self.show_reason(self._reason)
        self.row.setVisible(self.busy)
        if progress is None:
            return
        self.words.setText(f"{run_duration.STAGES.get(progress.part, progress.part)}…")
        self.bar.set_fraction(_fraction(progress))


def _fraction(progress: Progress) -> float | None:
    """None while nothing is known."""
    if not progress.total:
        return None
    inner = min(1.0, progress.part_done / progress.part_total) if progress.part_total else 0.0
    return min(1.0, (progress.done + inner) / progress.total)


class MemoryFixRow(QWidget):
    """The first fixes that fit are buttons, all others are in a menu."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons = [QPushButton() for _ in range(SHOWN_REMEDIES)]
        self._offered: list[MemoryFix] = []
        self.more = QPushButton(tr("Other options"))
        self.menu = QMenu(self.more)
        self.menu.setToolTipsVisible(True)
        self.more.setMenu(self.menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 0)
        row.setSpacing(6)
        row.addWidget(label(tr("To make it fit:"), "muted"))
        for place, button in enumerate(self.buttons):
            theme.role(button, "chip")
            button.clicked.connect(lambda _=False, place=place: self.chosen.emit(self._offered[place]))
            row.addWidget(button)
        theme.role(self.more, "chip")
        row.addWidget(self.more)
        row.addStretch(1)
        self.hide()

    def show_remedies(self, remedies: Sequence[MemoryFix]) -> None:
        """Offer these, those that fit first."""
        ordered = sorted(remedies, key=lambda remedy: not remedy.fits)
        self._offered = [remedy for remedy in ordered if remedy.fits][:SHOWN_REMEDIES]
        for place, button in enumerate(self.buttons):
            button.setVisible(place < len(self._offered))
            if place < len(self._offered):
                remedy = self._offered[place]
                button.setText(_button_words(remedy))
                button.setToolTip(_hint(remedy))
        self.menu.clear()
        for remedy in ordered[len(self._offered) :]:
            action = self.menu.addAction(remedy_words(remedy))
            action.setToolTip(remedy.note)
            action.triggered.connect(lambda _=False, remedy=remedy: self.chosen.emit(remedy))
        self.more.setVisible(len(ordered) > len(self._offered))
        self.setVisible(bool(ordered))


def _button_words(remedy: MemoryFix) -> str:
    """The fix, and the memory that it would use if known."""
    return f"{remedy.title} · {formatting.megabytes(remedy.memory_mb)}" if remedy.memory_mb else remedy.title


def _hint(remedy: MemoryFix) -> str:
    if not remedy.memory_mb:
        return remedy.note
    needed = formatting.megabytes(remedy.memory_mb)
    return tr("{note} It then needs about {memory_mb}.", note=remedy.note, memory_mb=needed)


def remedy_words(remedy: MemoryFix) -> str:
    """`LoRA adapter: about 3.1 GB`, and whether that is still too much."""
    needed = formatting.megabytes(remedy.memory_mb)
    return (
        tr("{title}: about {needed}", title=remedy.title, needed=needed)
        if remedy.fits
        else tr("{title}: about {needed}, still too much", title=remedy.title, needed=needed)
    )
