"""Owns what a run will cost, and the button that starts it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.core import wording
from app.panels.new_run_cards.cost_details import CostDetails, placed_words
from app.panels.new_run_cards.remedy_row import RemedyRow
from app.widgets.card import Card, label
from app.widgets.elided_label import ElidedLabel
from app.widgets.icon_label import IconButton
from app.widgets.progress_bar import ThinProgressBar
from backend.contract.queries import RunPlan

FACTS = ("Steps", "Tokens", "Trainable", "Time", "Memory")


class CostCard(Card):
    """Stands at the page's foot, whatever is scrolled above it."""

    start_asked = Signal()
    copy_asked = Signal()
    remedy_chosen = Signal(object)
    """A Remedy whose settings shall be taken over."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.values = {name: label("–", "section") for name in FACTS}
        self.subs = {name: ElidedLabel("\u00a0", "faint") for name in FACTS}
        self.plan: RunPlan | None = None
        self.details = QPushButton("Details")
        theme.role(self.details, "small")
        self.details.setToolTip("What memory, time and tokens are made of")
        self.details.clicked.connect(self.show_details)
        self.remedies = RemedyRow()
        self.remedies.chosen.connect(self.remedy_chosen)
        self.bar = ThinProgressBar()
        self.notes = label("", "faint", wrap=True)
        self.reason = label("", "danger", wrap=True)
        self.start = IconButton("Start training", "play", "primary")
        self.start.setMinimumWidth(150)
        self.start.clicked.connect(self.start_asked)
        self.copy = IconButton("Copy command", "copy", "quiet")
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
            grid.setColumnStretch(column, 1)
        column = QVBoxLayout()
        column.setSpacing(6)
        column.addLayout(grid)
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(self.bar, 1)
        line.addWidget(self.details)
        column.addLayout(line)
        column.addWidget(self.notes)
        column.addWidget(self.reason)
        column.addWidget(self.remedies)
        return column

    def clear(self, words: str) -> None:
        """Nothing is known yet; `words` says why or that it is being worked out."""
        for name in FACTS:
            self.values[name].setText("–")
            self.subs[name].setText("\u00a0")
        self.plan = None
        self.details.setEnabled(False)
        self.remedies.show_remedies([])
        self.bar.set_fraction(0.0)
        self.show_notes([words] if words else [])

    def show_details(self) -> None:
        """The parts of what is shown."""
        if self.plan is not None:
            CostDetails(self.plan, self.details).popup_above(self.details)

    def show_notes(self, notes: list[str]) -> None:
        """Sentences below the numbers."""
        self.notes.setText("  ·  ".join(notes))
        self.notes.setVisible(bool(notes))

    def show_reason(self, reason: str, is_problem: bool) -> None:
        """Why Start cannot be pressed, a problem or just something still to do; empty where it can."""
        theme.role(self.reason, "danger" if is_problem else "muted")
        self.start.setEnabled(not reason)
        self.start.setToolTip(reason)
        self.reason.setText(reason)
        self.reason.setVisible(bool(reason))

    def show_starting(self, starting: bool) -> None:
        """The run is being started."""
        self.start.setText("Starting…" if starting else "Start training")
        if starting:
            self.start.setEnabled(False)

    def show_plan(self, plan: RunPlan) -> None:
        """The numbers of a plan."""
        self.plan = plan
        self.details.setEnabled(True)
        self.remedies.show_remedies(plan.remedies)
        share = plan.memory_mb / plan.available_mb if plan.available_mb else None
        micro = "" if plan.accumulation == 1 else f", {plan.accumulation} × {plan.micro_batch_size}"
        shown = {
            "Steps": (
                wording.grouped(plan.total_steps),
                f"{wording.grouped(plan.steps_per_epoch)} per epoch of {wording.count(plan.rows, 'row')}",
            ),
            "Tokens": (wording.short_count(plan.tokens_per_epoch), f"per epoch, {plan.batch_size} rows a step{micro}"),
            "Trainable": (wording.short_count(plan.trainable), f"of {wording.short_count(plan.parameters)} parameters"),
            "Time": (
                f"about {wording.duration(plan.seconds)}" if plan.seconds else "not known",
                f"{plan.device}, {plan.precision}",
            ),
            "Memory": (f"about {wording.megabytes(plan.memory_mb)}", f"of {wording.megabytes(plan.available_mb)} free"),
        }
        for name, (value, sub) in shown.items():
            self.values[name].setText(value)
            self.subs[name].setText(sub)
        theme.role(self.values["Memory"], "section" if plan.fits else "danger")
        parts = "\n".join(
            [
                *(f"{part.name}: {wording.megabytes(part.megabytes)}" for part in plan.memory),
                *map(placed_words, plan.placement),
            ]
        )
        self.values["Memory"].setToolTip(parts)
        self.bar.set_fraction(share, "accent" if plan.fits else "danger")
        self.bar.setToolTip(parts)
        self.show_notes([wording.note(note) for note in plan.notes if note])
