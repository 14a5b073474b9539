"""Owns the window in which a model is chosen: what is here, what the hub has, each with whether it fits the run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QDialog, QFileDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.core import model_rows, wording
from app.core.model_rows import Sought
from app.panels.new_run_cards.inquiry import Inquiry
from app.panels.new_run_cards.model_parts.download import ModelDownload
from app.panels.new_run_cards.model_parts.download_bar import DownloadBar
from app.panels.new_run_cards.model_parts.marked_model import MarkedModel
from app.panels.new_run_cards.model_parts.model_list import ModelList
from app.services.backend_client import BackendClient
from app.widgets.card import label, rule
from app.widgets.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.waiting_stack import WaitingStack
from backend.contract.catalog import TaskEntry
from backend.contract.model_choices import HubModel, HubSearch, ModelChoice, ModelChoices
from backend.contract.queries import Mistake

SIDES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("All here", ("demo", "recent", "run", "cache")),
    ("Demo", ("demo",)),
    ("Recent", ("recent",)),
    ("My runs", ("run",)),
    ("In the cache", ("cache",)),
    ("Hub", ("hub",)),
)
HUB = len(SIDES) - 1
HUB_DELAY_MS = 450
_EMPTY = {
    "recent": ("Nothing used before", "Models that you start a run with are remembered here."),
    "run": ("No run has made a model yet", "When a run has ended, its model can be the beginning of the next one."),
    "cache": ("The hub's cache is empty", "What is downloaded from the hub once is here for every later run."),
}

AskWish = Callable[[], Mapping[str, Any]]


class ModelChooser(QDialog):
    """Beside the window, which can be used meanwhile; a download goes on when it is closed."""

    chosen = Signal(str)

    def __init__(
        self, client: BackendClient, download: ModelDownload, ask_wish: AskWish, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._wish, self._download = ask_wish, download
        self._recent: list[str] = []
        self._here: list[ModelChoice] = []
        self._on_hub: list[ModelChoice] = []
        self._current = ""
        self._hub_state = ""
        self.setWindowTitle("Choose a model")
        self.resize(980, 680)
        self.setMinimumSize(720, 480)
        self._build()
        self._place()
        self._connect()
        self._choices = Inquiry(
            client, "model_choices", self._choice_arguments, self._on_here, self._on_no_here, delay_ms=0, parent=self
        )
        self._search = Inquiry(
            client,
            "hub_search",
            self._search_arguments,
            self._on_found,
            self._on_unfound,
            delay_ms=HUB_DELAY_MS,
            parent=self,
        )
        self._details = Inquiry(
            client,
            "hub_model",
            self._details_arguments,
            self._on_details,
            self._on_no_details,
            delay_ms=250,
            parent=self,
        )

    # Widgets

    def _build(self) -> None:
        self.title, self.subtitle = label("Choose a model", "title"), label("", "muted", wrap=True)
        self.words = QLineEdit(placeholderText="Name, family, licence…", clearButtonEnabled=True)
        self.words.setAccessibleName("Search for a model")
        self.task = QuietComboBox()
        self.task.setMinimumContentsLength(18)
        self.task.setAccessibleName("Only models that can do this task")
        self.fitting = QCheckBox("Only what fits")
        self.fitting.setToolTip(
            "Leaves out what goes neither with the task, nor the engine, nor the memory of this run"
        )
        self.sides, self._chips = chips([name for name, _ in SIDES])
        self.list = ModelList()
        self.stack = WaitingStack(self.list)
        self.marked = MarkedModel()
        self.progress = DownloadBar(self._download)
        self.more = label("", "faint")
        self.browse = IconButton("Browse folder…", "folder")
        self.cancel = IconButton("Cancel", "close")
        self.choose = IconButton("Choose", "check", "primary")
        for button in (self.browse, self.cancel, self.stack.stop):
            button.setAutoDefault(False)
        self.choose.setDefault(True)

    def _place(self) -> None:
        top = QHBoxLayout()
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.title)
        words.addWidget(self.subtitle)
        top.addLayout(words, 1)
        top.addWidget(self.browse, 0, Qt.AlignmentFlag.AlignTop)
        search = QHBoxLayout()
        search.setSpacing(10)
        search.addWidget(self.words, 1)
        search.addWidget(self.task)
        search.addWidget(self.fitting)
        self._chips.addStretch(1)
        self._chips.addWidget(self.more)
        buttons = QHBoxLayout()
        buttons.setSpacing(10)
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.choose)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        for part in (top, search, self._chips):
            column.addLayout(part)
        column.addWidget(self.stack, 1)
        column.addWidget(rule())
        column.addWidget(self.marked)
        column.addWidget(self.progress)
        column.addLayout(buttons)

    def _connect(self) -> None:
        self.words.textChanged.connect(self._on_words)
        self.words.returnPressed.connect(self._on_return)
        self.task.activated.connect(self._show)
        self.fitting.toggled.connect(self._show)
        self.sides.idToggled.connect(lambda place, on: self._on_side() if on else None)
        self.list.marked.connect(self._on_marked)
        self.list.chosen.connect(self._on_chosen)
        self.browse.clicked.connect(self._on_browse)
        self.cancel.clicked.connect(self.reject)
        self.choose.clicked.connect(lambda: self._on_chosen(self.list.current()))
        self.marked.download_asked.connect(self._download.start)
        self._download.changed.connect(self._on_download_changed)
        self.stack.stopped.connect(self._on_stop_search)
        self.stack.again.connect(self._on_again)

    def set_tasks(self, tasks: Sequence[TaskEntry]) -> None:
        """What the list can be limited to."""
        self.task.clear()
        self.task.addItem("For any task", "")
        for task in tasks:
            self.task.addItem(f"For {task.title.lower()}", task.name)

    # Opening

    def open_on(self, current: str, recent: Sequence[str], subtitle: str, *, fitting: bool = False) -> None:
        """Show it with the chosen model marked."""
        self._current, self._recent = current, list(recent)
        self.subtitle.setText(subtitle)
        self.fitting.setChecked(fitting)
        self.words.clear()
        self._on_hub, self._hub_state = [], ""
        self.sides.button(0).setChecked(True)
        self.refresh()
        self.show()
        self.raise_()
        self.activateWindow()
        self.words.setFocus()

    def refresh(self) -> None:
        """Ask again what is here, as after a download or for another task."""
        if not self._here:
            self.stack.show_waiting("Looking for models")
        self._choices.ask_now()
        if self._is_on_hub():
            self._search.ask_now()

    def show_hub(self) -> None:
        """Look on the hub."""
        self.sides.button(HUB).setChecked(True)

    def _is_on_hub(self) -> bool:
        return self.sides.checkedId() == HUB

    # What is asked and answered

    def _choice_arguments(self) -> dict[str, Any]:
        return {"wish": self._wish(), "recent": self._recent}

    def _search_arguments(self) -> dict[str, Any]:
        self._hub_state = "searching"
        self.list.set_lines([])  # nothing of the last search can be chosen meanwhile
        words = self.words.text().strip()
        self.stack.show_waiting(f"Searching the hub for “{words}”" if words else "Asking the hub for popular models")
        return {"wish": self._wish(), "words": words}

    def _details_arguments(self) -> dict[str, Any] | None:
        model = self.list.current()
        return {"name": model.name, "wish": self._wish()} if model is not None and not model.is_here else None

    def _on_here(self, found: ModelChoices) -> None:
        self._here = found.models
        self._show()

    def _on_no_here(self, mistake: Mistake) -> None:
        self.stack.show_sentence("The models could not be listed", wording.sentence(mistake.message), "Try again")

    def _on_found(self, found: HubSearch) -> None:
        self._on_hub, self._hub_state = found.models, "found"
        self.more.setText(f"The {len(found.models)} most downloaded; more words find others" if found.is_cut else "")
        self._show()

    def _on_unfound(self, mistake: Mistake) -> None:
        self._on_hub, self._hub_state = [], wording.sentence(mistake.message)
        self._show()

    def _on_details(self, found: HubModel) -> None:
        self.marked.show_hub_model(found)

    def _on_no_details(self, mistake: Mistake) -> None:
        self.marked.show_unasked(wording.sentence(mistake.message, mistake.field))

    # What is shown

    def _show(self) -> None:
        groups = SIDES[max(0, self.sides.checkedId())][1]
        sought = Sought(self.words.text(), groups, self.task.currentData() or "", self.fitting.isChecked())
        if self._is_on_hub() and self._hub_state != "found":
            if self._hub_state != "searching":
                self.stack.show_sentence("The hub cannot be asked", f"{self._hub_state}.", "Try again")
                self.list.set_lines([])
            return
        self.list.set_lines(model_rows.lines([*self._here, *self._on_hub], sought), self._current)
        if self.list.models:
            self.stack.show_content()
        else:
            self.stack.show_sentence(*self._nothing(groups))
        for place, (name, side) in enumerate(SIDES[:HUB]):
            count = sum(one.group in side for one in self._here)
            self.sides.button(place).setText(f"{name} · {count}" if count else name)

    def _nothing(self, groups: tuple[str, ...]) -> tuple[str, str, str]:
        words = self.words.text().strip()
        if self._is_on_hub():
            return "Nothing found", "Try fewer or other words, or another task; the hub looks at names alone.", ""
        if words or self.fitting.isChecked() or self.task.currentData():
            return "Nothing here matches", "The hub may have what you look for.", "Search the hub"
        return (*_EMPTY.get(groups[0], ("Nothing here", "")), "Search the hub")

    def _on_marked(self, model: ModelChoice | None) -> None:
        self.marked.show_model(model)
        self._on_download_changed()
        may = model is not None and not model.problem
        self.choose.setEnabled(may)
        self.choose.setToolTip("" if may or model is None else wording.sentence(model.problem))
        self._details.cancel()
        if model is not None and not model.is_here:
            self._details.ask_soon()

    def _on_download_changed(self) -> None:
        self.marked.set_downloading(self._download.goes_on)

    # What people do

    def _on_words(self) -> None:
        if self._is_on_hub():
            self._search.ask_soon()
        else:
            self._show()

    def _on_return(self) -> None:
        if not self._is_on_hub() and not self.list.models:
            self.show_hub()
        elif self._is_on_hub() and self._hub_state != "found":
            self._search.ask_now()
        else:
            self.list.setFocus()

    def _on_side(self) -> None:
        self.more.setText("")
        if self._is_on_hub():
            self._search.ask_now()
        else:
            self._search.cancel()
            self._show()

    def _on_stop_search(self) -> None:
        self._search.cancel()
        self._choices.cancel()
        self._hub_state = "The search was stopped"
        self._show()

    def _on_again(self) -> None:
        if self._is_on_hub():
            self._search.ask_now()
        elif self._here:
            self.show_hub()
        else:
            self.refresh()

    def _on_chosen(self, model: ModelChoice | None) -> None:
        if model is not None and not model.problem:
            self.chosen.emit(model.name)
            self.accept()

    def _on_browse(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Model folder", self._current)
        if path:
            self.chosen.emit(path)
            self.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Down goes from the search into the list; Enter in the search line is the search's."""
        if event.key() == Qt.Key.Key_Down and self.words.hasFocus():
            self.list.setFocus()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.words.hasFocus():
            return
        super().keyPressEvent(event)

    def done(self, result: int) -> None:
        """Nothing is asked for a closed window."""
        for inquiry in (self._choices, self._search, self._details):
            inquiry.cancel()
        super().done(result)
