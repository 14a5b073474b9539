"""The bar at the bottom of the New run page: time and memory, what blocks the start, and the buttons."""

import time
from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QFont, QFontMetrics, QPaintEvent, QResizeEvent, QTextLayout
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft import run_duration
from app.core.i18n import inside, tr
from app.core.page_actions import NEW_RUN_SECTIONS
from app.pages.new_run.plan_panel import placed_words
from app.pages.new_run.section_state import WRONG, SectionState
from app.widgets.boxes import fill, keep_room
from app.widgets.card import label
from app.widgets.icon_label import IconButton, widest
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.protocol import Progress
from backend.contract.run.cost import MeasuredTime

HEIGHT, MEMORY_WIDTH, TIME_WIDTH, WIDE = 56, 112, 136, 780
"""Pixels; nothing in the bar changes its place or its size."""
MARGINS, SPACING = (16, 12), 10
START_WORDS = (tr("Start training"), tr("Start search"))
MEASURING_HINT = tr(
    "Train for a few seconds with the real model and data, and evaluate and save once, to estimate how long the run will "
    "take. Nothing is kept."
)


class Figure(QWidget):
    """A caption, a value and a thin bar, of one size whatever they show."""

    def __init__(self, caption: str, width: int) -> None:
        super().__init__()
        theme.follow(self)
        self._pixels = width
        self.caption, self.value = label(caption, "caption"), ElidedLabel("–", "strong")
        self.bar = ThinProgressBar()
        keep_room(self.bar)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        self.caption.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        fill(column, (1, self.caption, self.value, self.bar, 1))
        self.apply_theme()

    def apply_theme(self) -> None:
        """The width follows the text size."""
        self.setFixedWidth(theme.pixels(self._pixels))

    def show_value(self, value: str, hint: str = "", role: str = "strong") -> None:
        """Show a value, with its details as a tooltip."""
        theme.role(self.value, role)
        self.value.setText(value)
        self.value.setToolTip(hint or value)


class ReasonButton(QPushButton):
    """One sentence, in two lines if it needs them, that leads to what it is about."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        theme.role(self, "reason")
        keep_room(self)

    def show_sentence(self, sentence: str, hint: str = "", *, is_problem: bool, leads: bool) -> None:
        """Show a sentence, with a longer one as a tooltip; empty hides it."""
        theme.role(self, "reason-danger" if is_problem else "reason")
        self.setText(sentence)
        self.setToolTip(hint or sentence)
        self.setEnabled(leads)
        self.setVisible(bool(sentence))

    def minimumSizeHint(self) -> QSize:
        """A few letters: the sentence is elided."""
        return QSize(40, self.sizeHint().height())

    def sizeHint(self) -> QSize:
        """The height of two lines, whatever the sentence."""
        hint = super().sizeHint()
        return QSize(hint.width(), max(hint.height(), 2 * self.fontMetrics().lineSpacing() + 6))

    def lines(self) -> list[str]:
        """The sentence as it is shown in the current width: one line or two, the second elided."""
        return _two_lines(self.text(), self.font(), self.width() - self._frame_width())

    def fits(self, width: int) -> bool:
        """Whether the whole sentence would be shown in that width."""
        return " ".join(_two_lines(self.text(), self.font(), width - self._frame_width())) == self.text()

    def _frame_width(self) -> int:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        return self.width() - self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self).width()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The sentence in its lines."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = "\n".join(self.lines())
        QStylePainter(self).drawControl(QStyle.ControlElement.CE_PushButton, option)


class StartBar(QFrame):
    """Its height and the places of its parts never change, unless a sentence would be cut beside them."""

    start_requested = Signal()
    queue_requested = Signal()
    machine_requested = Signal(str)
    """To start on the machine with that name."""
    cancel_requested = Signal()
    """To send no more to that machine."""
    copy_requested = Signal()
    measure_requested = Signal()
    stop_requested = Signal()
    place_requested = Signal(str)
    """The section with what blocks the start, or the plan, is wanted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        theme.follow(self)
        self.plan: RunPlan | None = None
        self.shortage = ""
        """Why a measurement had not enough memory, until there is another plan."""
        self.is_measuring = self.is_sending = False
        self._sending = ""
        """How far the copy to another machine is."""
        self._is_search = False
        self._place, self._state, self._others, self._elsewhere = "", SectionState(""), "", ""
        self._is_told = self._shows_plan = self._leads = False
        self.time, self.memory = Figure(tr("Time"), TIME_WIDTH), Figure(tr("Memory"), MEMORY_WIDTH)
        self.measure = QPushButton(tr("Measure time"))
        theme.role(self.measure, "small")
        self.measure.clicked.connect(
            lambda: (self.stop_requested if self.is_measuring else self.measure_requested).emit()
        )
        self.more = QPushButton(tr("More"))
        theme.role(self.more, "small")
        self._build_menu()
        self.reason = ReasonButton()
        self.reason.clicked.connect(lambda: self.place_requested.emit(self._place))
        self.queue = IconButton(tr("Add to queue"), "plus", clicked=self.queue_requested)
        self.queue.hide()
        self.start = IconButton(tr("Start training"), "play", "primary")
        self.start.clicked.connect(lambda: (self.cancel_requested if self.is_sending else self.start_requested).emit())
        self._place_parts()
        self.apply_theme()
        self.clear()

    def _build_menu(self) -> None:
        menu = QMenu(self.more)
        self._menu = menu
        self.details = menu.addAction(tr("Show the plan"), lambda: self.place_requested.emit("settings"))
        self.measure_action = menu.addAction(tr("Measure time"), self.measure.click)
        self.copy = menu.addAction(tr("Copy command"), self.copy_requested.emit)
        self.machines: list[QAction] = []
        self.more.setMenu(menu)

    def _place_parts(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(MARGINS[0], 0, MARGINS[1], 0)
        row.setSpacing(SPACING)
        for part in (self.time, self.memory, self.more, self.measure):  # the last one goes first, and moves nothing
            row.addWidget(part)
        row.addWidget(self.reason, 1)
        row.addWidget(self.queue)
        row.addWidget(self.start)

    def apply_theme(self) -> None:
        """Sizes follow the text size; a button that says something else later has room for it."""
        self.setFixedHeight(theme.pixels(HEIGHT))
        for button, *texts in (
            (self.start, *START_WORDS, tr("Starting…"), tr("Cancel")),
            (self.queue, tr("Add to queue"), tr("Adding…")),
            (self.measure, tr("Measure time"), tr("Stop measuring")),
        ):
            button.setFixedWidth(widest(button, *texts))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Without room for a button there is its line in the menu."""
        super().resizeEvent(event)
        self._show_reason()
        self._make_room()

    def _make_room(self) -> None:
        """Hide what a sentence needs the room of: it says what to do first, and the button has its line in the menu."""
        parts = (self.measure, self.time, self.memory)
        narrow = 0 if self.width() >= theme.pixels(WIDE) else 1
        shown = next((parts[hidden:] for hidden in range(narrow, 4) if self._has_room(parts[hidden:])), ())
        for part in parts:
            part.setVisible(part in shown)

    def _has_room(self, shown: Sequence[QWidget]) -> bool:
        """Whether the sentence is whole beside these parts; while something is measured, all of them are needed."""
        parts = [*shown, *(part for part in (self.more, self.queue, self.start) if not part.isHidden())]
        taken = sum(max(part.minimumWidth(), part.sizeHint().width()) + SPACING for part in parts)
        return self.is_measuring or self.reason.fits(self.width() - sum(MARGINS) - taken)

    def show_kind(self, *, is_search: bool) -> None:
        """Show whether a search is started, or a single run."""
        self._is_search = is_search
        if self.start.text() in START_WORDS:
            self.start.setText(self._start_words())

    def _start_words(self) -> str:
        return START_WORDS[self._is_search]

    # What the run will cost

    def clear(self) -> None:
        """Show that nothing is known about the cost."""
        self.plan, self.shortage = None, ""
        for figure in (self.time, self.memory):
            figure.show_value("–")
        self.memory.bar.set_fraction(0.0)
        self.time.bar.setVisible(self.is_measuring)

    def show_asking(self) -> None:
        """Keep the old values, greyed, while the cost is estimated again."""
        self.plan, self.shortage = None, ""
        for figure in (self.time, self.memory):
            theme.role(figure.value, "asking")
        self.memory.bar.set_fraction(self.memory.bar.fraction(), "track")

    def show_plan(self, plan: RunPlan) -> None:
        """Show time and memory of a plan, with their parts as tooltips."""
        self.plan, self.shortage = plan, ""
        computes = f"{plan.device}, {plan.precision}"
        origin = run_duration.origin(plan.measured, time.time())
        self.time.show_value(run_duration.in_all(plan), " · ".join(filter(None, (origin, computes))))
        seen = run_duration.peak_mb(plan.measured)
        megabytes = formatting.megabytes
        parts = [
            tr("estimated {memory_mb} · {free}", memory_mb=megabytes(plan.memory_mb), free=_free(plan)),
            *(f"{translate_word(part.name)}: {megabytes(part.megabytes)}" for part in plan.memory),
            *map(placed_words, plan.placement),
        ]
        value = megabytes(seen) if seen is not None else tr("about {memory_mb}", memory_mb=megabytes(plan.memory_mb))
        self.memory.show_value(value, "\n".join(parts), "strong" if plan.fits else "danger")
        share = plan.memory_mb / plan.available_mb if plan.available_mb else None
        self.memory.bar.set_fraction(share, "accent" if plan.fits else "danger")
        self.memory.bar.setToolTip("\n".join(parts))

    def show_shortage(self, found: MeasuredTime) -> None:
        """Show that a measurement ran out of memory."""
        self.shortage = formatting.sentence(
            tr("{shortage}, although the estimate said it would fit.", shortage=found.shortage)
        )

    # What can be done

    def show_obstacle(
        self, place: str, state: SectionState, *, is_told: bool = False, shows_plan: bool = False
    ) -> None:
        """Show what blocks the start, and where it is; an empty note if nothing does.

        If the open section says it (`is_told`), or shows the plan with its warnings, only what to do there is said.
        """
        self._leads = bool(place)
        self._place, self._state, self._is_told, self._shows_plan = place or "settings", state, is_told, shows_plan
        reason = state.note
        self.start.setEnabled(not reason)
        self.start.setToolTip(reason)
        self.queue.setEnabled(not reason)
        self.queue.setToolTip(reason or self._others)
        lacks = self._lack_of_cost()
        self.measure.setEnabled(self.is_measuring or not lacks)
        hint = tr("Stop the measurement. Nothing is saved.") if self.is_measuring else lacks or MEASURING_HINT
        self.measure.setToolTip(hint)
        self._show_reason()

    def _show_reason(self) -> None:
        """The whole sentence, or only what to do if it is said elsewhere, or if the figures would have to go for it."""
        if self.is_measuring or self._sending:
            return
        reason, warning = self._state.note, self.warning()
        is_told = self._is_told if reason else self._shows_plan
        is_problem = self._state.kind == WRONG or (bool(warning) and not reason)
        action = self._action()
        for words in (action if is_told and action else reason or warning, action):
            self.reason.show_sentence(words, reason or warning, is_problem=is_problem, leads=self._leads or not reason)
            if not action or self._has_room((self.time, self.memory)):
                break
        self._make_room()

    def _action(self) -> str:
        """What to do about what blocks the start, or about the warning, and where; empty if a sentence says as much."""
        if self._state.note:
            return _lead(NEW_RUN_SECTIONS[self._place], self._state.action) if self._state.kind == WRONG else ""
        if not self.warning():
            return ""
        return _lead(tr("Plan"), tr("Use less memory") if self.shortage else tr("Use less disk space"))

    def warning(self) -> str:
        """That memory or disk is too small for the run, which may start nevertheless: space can be freed meanwhile."""
        return self.shortage or disk_warning(self.plan)

    def _lack_of_cost(self) -> str:
        return self._state.note or ("" if self.plan else tr("The cost is still being estimated."))

    def measure_obstacle(self) -> str:
        """Why no measurement can be started now; empty if one can."""
        return tr("A measurement is in progress.") if self.is_measuring else self._lack_of_cost()

    def show_progress(self, progress: Progress | None) -> None:
        """Show how far a measurement is; None if none is running."""
        self.is_measuring = progress is not None
        self.measure.setText(tr("Stop measuring") if self.is_measuring else tr("Measure time"))
        self.time.bar.setVisible(self.is_measuring)
        self.show_obstacle(self._place, self._state, is_told=self._is_told, shows_plan=self._shows_plan)
        if progress is not None:
            words = tr("Measuring: {stage}…", stage=translate_word(progress.part) or tr("starting"))
            self.reason.show_sentence(words, is_problem=False, leads=False)
            self._make_room()
            self.time.bar.set_fraction(_fraction(progress))

    def show_others(self, words: str) -> None:
        """Show what this run would wait for in the queue; hidden without other runs."""
        self._others = words
        self.queue.setVisible(bool(words))
        self._make_room()
        if self.queue.isEnabled():
            self.queue.setToolTip(words)

    def show_machines(self, names: Iterable[str]) -> None:
        """Offer to start on each of the machines with these names."""
        for action in self.machines:
            self._menu.removeAction(action)
            action.deleteLater()
        self.machines = [
            self._menu.addAction(tr("Start on {machine}", machine=name), partial(self.machine_requested.emit, name))
            for name in names
        ]
        self.enable_machines(self._elsewhere)

    def enable_machines(self, reason: str) -> None:
        """Allow to start on other machines, unless there is a reason not to."""
        self._elsewhere = reason
        for action in self.machines:
            action.setEnabled(not reason)
            action.setToolTip(reason)

    def show_starting(self, starting: bool, *, queue: bool = False) -> None:
        """Show that the run is starting, or is being added to the queue."""
        self.is_sending, self._sending = False, ""
        self.start.setText(tr("Starting…") if starting and not queue else self._start_words())
        self.queue.setText(tr("Adding…") if starting and queue else tr("Add to queue"))
        if starting:
            self.start.setEnabled(False)
            self.queue.setEnabled(False)
            for action in self.machines:
                action.setEnabled(False)

    def show_sending(self, words: str, can_cancel: bool) -> None:
        """Show how far the copy to another machine is; the button that started it cancels it."""
        self.is_sending, self._sending = can_cancel, words
        self.start.setText(tr("Cancel") if can_cancel else tr("Starting…"))
        self.start.setEnabled(can_cancel)
        self.start.setToolTip(tr("Stop sending. What has arrived there is deleted.") if can_cancel else "")
        self.reason.show_sentence(words, is_problem=False, leads=False)
        self._make_room()


def _lead(place: str, action: str) -> str:
    """`Data: fix the label column`."""
    return tr("{place}: {action}", place=place, action=f"{inside(action[:1])}{action[1:]}")


def disk_warning(plan: RunPlan | None) -> str:
    """That the disk is too small for the run, or for all runs of a search, as a sentence; empty if it is not."""
    disk = plan.disk if plan is not None else None
    search = plan.search if plan is not None else None
    free = disk.volumes[0].free_mb if disk is not None and disk.volumes else None
    if search is not None and search.disk_mb is not None and free is not None and search.disk_mb > free:
        return tr(
            "All runs of this search need about {needed}, but {free} are free. Set “Models to keep” in the search.",
            needed=formatting.megabytes(search.disk_mb),
            free=formatting.megabytes(free),
        )
    return formatting.sentence(f"{disk.problem}.") if disk is not None and disk.problem else ""


def _two_lines(text: str, font: QFont, width: int) -> list[str]:
    """A text wrapped between words, the second line elided."""
    layout = QTextLayout(text, font)
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(width)
    layout.endLayout()
    first, rest = text[: line.textLength()].rstrip(), text[line.textLength() :]
    elided = [QFontMetrics(font).elidedText(one, Qt.TextElideMode.ElideRight, width) for one in (first, rest)]
    return [one for one in elided if one]


def _free(plan: RunPlan) -> str:
    return tr("of {available_mb} free", available_mb=formatting.megabytes(plan.available_mb))


def _fraction(progress: Progress) -> float | None:
    """None while nothing is known."""
    if not progress.total:
        return None
    inner = min(1.0, progress.part_done / progress.part_total) if progress.part_total else 0.0
    return min(1.0, (progress.done + inner) / progress.total)
