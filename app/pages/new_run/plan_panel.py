"""Shows what a run will cost: its figures, what would make it fit, and memory, time and tokens by their parts."""

import time
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QMenu, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft import run_duration
from app.core.i18n import tr, trn
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.progress import ThinProgressBar
from backend.contract.rpc.plan import DiskPlan, DiskVolume, Placement, RunPlan
from backend.contract.rpc.search import SearchPlan
from backend.contract.run.cost import DiskFix, MemoryFix

AnyFix = MemoryFix | DiskFix
SHOWN_REMEDIES = 3
NAME_WIDTH, VALUE_WIDTH, BAR_WIDTH = 96, 80, 320
"""Pixels of the names, the values and at most of the bars of parts."""
NARROW = 380
"""Pixels; with fewer the words of a part are below its value."""


class PlanView(QWidget):
    """The last plan, greyed while a new one is made; without one it says what is missing."""

    remedy_chosen = Signal(object)
    """A MemoryFix or DiskFix whose settings are to be applied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.plan: RunPlan | None = None
        self.rows: list[tuple[str, str]] = []
        """What is shown, name and value."""
        self.remedies, self.disk_fixes = FixRow(tr("To make it fit:")), FixRow(tr("To need less disk space:"))
        self.problem, self.disk_problem = label("", "danger", wrap=True), label("", "danger", wrap=True)
        for words in (self.problem, self.disk_problem):
            words.hide()
        for row in (self.remedies, self.disk_fixes):
            row.chosen.connect(self.remedy_chosen)
        self.notes = label("", "muted", wrap=True)
        self._parts = QWidget()
        self._content = QWidget()
        self._column = QVBoxLayout(self._content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(10)
        for part in (self.problem, self.remedies, self.disk_problem, self.disk_fixes, self._parts, self.notes):
            self._column.addWidget(part)
        self._column.addStretch(1)
        self.empty = EmptyState("gauge", tr("No plan yet"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for page in (self.empty, self._content):  # in a stack the plan's height would be scrolled without a plan too
            column.addWidget(page)
        self._content.hide()

    def clear(self) -> None:
        """Show that nothing is known."""
        self.plan, self.rows = None, []
        self._show_problem("")
        self.remedies.show_remedies([])
        self._show_disk(None)
        self._content.hide()
        self.empty.show()

    def show_words(self, title: str) -> None:
        """Say in the place of a plan what is being done; what has to be done first is said elsewhere."""
        words = "" if title else tr("Memory, disk space and time appear here once the run can be planned.")
        self.empty.set_words(title or tr("No plan yet"), words)

    def show_asking(self) -> None:
        """Keep the old plan, greyed."""
        self.plan = None
        self._content.setEnabled(False)

    def show_refusal(self, remedies: Sequence[MemoryFix]) -> None:
        """Show that there is no plan, and what would make one possible; why there is none is said at the field."""
        self.clear()
        if remedies:
            self._show_parts(QWidget())
            self.notes.setText("")
            self.remedies.show_remedies(remedies)
            self._show_content()

    def show_problem(self, sentence: str) -> None:
        """Say above all parts what is wrong, if there is no field to say it at."""
        if self.plan is None:
            self._show_parts(QWidget())
            self.notes.setText("")
        self._show_problem(sentence)
        self._show_content()

    def show_shortage(self, sentence: str, remedies: Sequence[MemoryFix]) -> None:
        """Show that a measurement ran out of memory, and what would need less."""
        self._show_problem(sentence)
        self.remedies.show_remedies(remedies)

    def show_plan(self, plan: RunPlan) -> None:
        """Show the numbers of a plan."""
        self.plan = plan
        parts = _PlanParts(plan)
        self.rows = parts.rows
        self._show_parts(parts)
        self._show_problem(formatting.sentence(plan.problems[0]) if plan.problems else "")
        self.remedies.show_remedies(plan.remedies)
        self._show_disk(plan.disk)
        self.notes.setText("\n".join(formatting.note(note) for note in plan.notes if note))
        self._show_content()

    def _show_problem(self, sentence: str) -> None:
        self.problem.setText(formatting.with_full_stop(sentence) if sentence else "")
        self.problem.setVisible(bool(sentence))

    def _show_disk(self, disk: DiskPlan | None) -> None:
        """Say above all parts that the disk is too small, and what needs less."""
        self.disk_problem.setText(formatting.sentence(f"{disk.problem}.") if disk is not None and disk.problem else "")
        self.disk_problem.setVisible(bool(self.disk_problem.text()))
        self.disk_fixes.show_remedies(disk.fixes if disk is not None else [])

    def _show_content(self) -> None:
        self.notes.setVisible(bool(self.notes.text()))
        self._content.setEnabled(True)
        self.empty.hide()
        self._content.show()

    def _show_parts(self, parts: QWidget) -> None:
        self._column.replaceWidget(self._parts, parts)
        self._parts.hide()
        self._parts.deleteLater()
        self._parts = parts


class _PlanParts(QWidget):
    """One plan's figures, and its memory, time and tokens by their parts."""

    def __init__(self, plan: RunPlan) -> None:
        super().__init__()
        self.rows: list[tuple[str, str]] = []
        self._row_words: list[tuple[int, QLabel]] = []
        self._is_narrow = False
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._auto(plan)
        self._grid = QGridLayout()  # one for all sections, so that their values are aligned
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnMinimumWidth(0, NAME_WIDTH)
        self._grid.setColumnMinimumWidth(1, VALUE_WIDTH)
        self._grid.setColumnStretch(2, 1)
        self._column.addLayout(self._grid)
        if plan.search is not None:
            self._search(plan.search)
        self._memory(plan)
        if plan.disk is not None:
            self._disk(plan.disk)
        self._time(plan)
        self._figures(plan)
        for one in plan.placement:
            self._column.addWidget(label(placed_words(one), "faint", wrap=True))

    def _auto(self, plan: RunPlan) -> None:
        reasons = [one.reason for one in plan.auto if one.reason]
        if reasons:
            self._column.addWidget(label(tr("Chosen automatically"), "strong"))
        for reason in reasons:
            self._column.addWidget(label(f"{formatting.sentence(reason)}.", "muted", wrap=True))
        self._column.addSpacing(8 if reasons else 0)

    def _search(self, search: SearchPlan) -> None:
        """What all trials cost, beside a grid; everything below is about one of them."""
        known = formatting.duration(search.seconds) if search.seconds else tr("unknown until measured")
        self._section(tr("Whole search · {known}", known=known))
        again = search.confirmation_steps
        rows = [(tr("Trials"), search.trials, search.steps - again, "")]
        if search.confirmations:
            rows.append((tr("New seeds"), search.confirmations, again, tr("to confirm the best")))
        grid = formatting.duration(search.grid_seconds) if search.grid_seconds else ""
        values = tr("with {count} values of each continuous range", count=search.samples) if search.samples else ""
        rows.append((tr("Full grid"), search.combinations, search.grid_steps, ", ".join(filter(None, (grid, values)))))
        for name, count, steps, words in rows:
            said = ", ".join(filter(None, (trn("{count} step", "{count} steps", steps), words)))
            self._row(name, formatting.group_digits(count), label(said, "faint", wrap=True))
        if search.disk_mb is not None:
            self._row(tr("Disk"), formatting.megabytes(search.disk_mb), label(tr("of all runs"), "faint"))
        note = label(tr("Below: one trial, with values from the middle."), "faint", wrap=True)
        note.setContentsMargins(0, 2, 0, 0)
        self._line(note)

    def _memory(self, plan: RunPlan) -> None:
        self._section(
            tr(
                "Memory · about {memory_mb} of {available_mb}",
                memory_mb=formatting.megabytes(plan.memory_mb),
                available_mb=formatting.megabytes(plan.available_mb),
            )
        )
        for part in plan.memory:
            bar = ThinProgressBar()
            bar.setMaximumWidth(theme.pixels(BAR_WIDTH))
            bar.set_fraction(part.megabytes / plan.memory_mb if plan.memory_mb else 0.0)
            self._row(translate_word(part.name), formatting.megabytes(part.megabytes), bar)

    def _disk(self, disk: DiskPlan) -> None:
        needed = formatting.megabytes(disk.needed_mb)
        self._section(tr("Disk · about {needed}", needed=needed))
        for part in disk.parts:
            size = formatting.megabytes(part.megabytes) if part.megabytes >= 1 else tr("under 1 MB")
            self._row(translate_word(part.name), size, label(part.words, "faint", wrap=True))
        for volume in disk.volumes:
            words = label(volume_words(volume), "faint" if volume.fits else "danger", wrap=True)
            words.setContentsMargins(0, 2, 0, 0)
            self._line(words)

    def _time(self, plan: RunPlan) -> None:
        known = run_duration.whole(plan) if plan.seconds is not None else tr("unknown until measured")
        self._section(tr("Time · {known}", known=known))
        for part in plan.time:
            words = label(run_duration.basis_words(part), "faint", wrap=True)
            self._row(translate_word(part.name), run_duration.of_part(part), words)
        if plan.measured is not None:
            words = " ".join(run_duration.details(plan.measured, plan.memory_mb, time.time()))
            note = label(words, "faint", wrap=True)
            note.setContentsMargins(0, 2, 0, 0)
            self._line(note)

    def _figures(self, plan: RunPlan) -> None:
        self._section(tr("Steps and tokens"))
        counted = formatting.group_digits
        per_epoch = tr("{steps_per_epoch} per epoch", steps_per_epoch=counted(plan.steps_per_epoch))
        whole = tr("of {parameters}", parameters=formatting.short_count(plan.parameters))
        passes = (
            f"{plan.accumulation} × {plan.micro_batch_size}" if plan.accumulation > 1 else str(plan.micro_batch_size)
        )
        rows = [
            (tr("Steps"), counted(plan.total_steps), per_epoch),
            (tr("Batch size"), counted(plan.batch_size), tr("micro-batches of {passes}", passes=passes)),
            (tr("Tokens"), formatting.short_count(plan.tokens_per_epoch), tr("per epoch, excluding padding")),
            (tr("Trainable"), formatting.short_count(plan.trainable), whole),
        ]
        if plan.padding is not None:
            rows.append((tr("Padding"), tr("about {padding:.0%}", padding=plan.padding), tr("of all tokens computed")))
        if plan.longest:
            rows.append((tr("Longest row"), trn("{count} token", "{count} tokens", plan.longest), ""))
        for name, value, words in rows:
            self._row(name, value, label(words, "faint", wrap=True))

    def _section(self, title: str) -> None:
        words = label(title, "strong", wrap=True)
        words.setContentsMargins(0, 10 if self.rows else 0, 0, 2)
        self._line(words)

    def _line(self, words: QLabel) -> None:
        self._grid.addWidget(words, self._grid.rowCount(), 0, 1, 3)

    def _row(self, name: str, value: str, beside: QWidget) -> None:
        self.rows.append((name, value))
        row = self._grid.rowCount()
        for column, part in enumerate((label(name, "muted"), label(value), beside)):
            self._grid.addWidget(part, row, column)
        if isinstance(beside, QLabel) and beside.text():
            self._row_words.append((row, beside))
            self._grid.setRowMinimumHeight(
                row + 1, 0
            )  # where the words go if there is no room for them beside the value

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The words of a row are below its value if there is little room beside it."""
        super().resizeEvent(event)
        is_narrow = event.size().width() < theme.pixels(NARROW)
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        for row, words in self._row_words:
            self._grid.removeWidget(words)
            self._grid.addWidget(words, *((row + 1, 1, 1, 2) if is_narrow else (row, 2, 1, 1)))


def placed_words(one: Placement) -> str:
    """What is placed on one of several devices."""
    weights, optimizer = formatting.megabytes(one.weights_mb), formatting.megabytes(one.optimizer_mb)
    processes = trn("{count} process", "{count} processes", one.processes)
    return tr(
        "{device}: micro-batches of {count}, weights {weights}, optimizer {optimizer}",
        device=one.device if one.processes == 1 else f"{one.device} ({processes})",
        count=trn("{count} row", "{count} rows", one.rows),
        weights=weights,
        optimizer=optimizer,
    )


def volume_words(volume: DiskVolume) -> str:
    """How much of one disk is free, and how much the run needs of it."""
    return tr(
        "{needed} needed, {free} free at {folder}",
        needed=formatting.megabytes(volume.needed_mb),
        free=formatting.megabytes(volume.free_mb),
        folder=volume.folder,
    )


class FixRow(QWidget):
    """The first fixes that fit are buttons, all others are in a menu."""

    chosen = Signal(object)

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons = [QPushButton() for _ in range(SHOWN_REMEDIES)]
        self._shown_fixes: list[AnyFix] = []
        self.more = QPushButton(tr("Other options"))
        self.menu = QMenu(self.more)
        self.menu.setToolTipsVisible(True)
        self.more.setMenu(self.menu)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(label(title, "strong"))
        for place, button in enumerate(self.buttons):
            button.clicked.connect(lambda _=False, place=place: self.chosen.emit(self._shown_fixes[place]))
            column.addWidget(button)
        column.addWidget(self.more)
        self.hide()

    def show_remedies(self, remedies: Sequence[AnyFix]) -> None:
        """Offer these, those that fit first."""
        ordered = sorted(remedies, key=lambda remedy: not remedy.fits)
        self._shown_fixes = [remedy for remedy in ordered if remedy.fits][:SHOWN_REMEDIES]
        for place, button in enumerate(self.buttons):
            button.setVisible(place < len(self._shown_fixes))
            if place < len(self._shown_fixes):
                remedy = self._shown_fixes[place]
                button.setText(_button_words(remedy))
                button.setToolTip(_hint(remedy))
        self.menu.clear()
        for remedy in ordered[len(self._shown_fixes) :]:
            action = self.menu.addAction(remedy_words(remedy))
            action.setToolTip(remedy.note)
            action.triggered.connect(lambda _=False, remedy=remedy: self.chosen.emit(remedy))
        self.more.setVisible(len(ordered) > len(self._shown_fixes))
        self.setVisible(bool(ordered))


def _needed_mb(remedy: AnyFix) -> float:
    """Megabytes of memory, or of disk space."""
    return remedy.disk_mb if isinstance(remedy, DiskFix) else remedy.memory_mb


def _button_words(remedy: AnyFix) -> str:
    """The fix, and what it would use if known."""
    needed = _needed_mb(remedy)
    return f"{remedy.title} · {formatting.megabytes(needed)}" if needed else remedy.title


def _hint(remedy: AnyFix) -> str:
    if not _needed_mb(remedy):
        return remedy.note
    return tr(
        "{note} It then needs about {memory_mb}.", note=remedy.note, memory_mb=formatting.megabytes(_needed_mb(remedy))
    )


def remedy_words(remedy: AnyFix) -> str:
    """`LoRA adapter: about 3.1 GB`, and whether that is still too much."""
    needed = formatting.megabytes(_needed_mb(remedy))
    return (
        tr("{title}: about {needed}", title=remedy.title, needed=needed)
        if remedy.fits
        else tr("{title}: about {needed}, still too much", title=remedy.title, needed=needed)
    )
