"""Owns the buttons of the Run page: which of them are of use now, and what was asked and not yet answered."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.draft.other_engine import Offer
from app.core.i18n import tr
from app.core.runs.run_status import Outcome
from app.widgets.icon_label import IconButton
from app.widgets.pill import Pill

REQUESTS = {
    "checkpoint": (tr("Checkpoint now"), tr("Saving…"), "save"),
    "pause": (tr("Pause"), tr("Pausing…"), "pause"),
    "stop": (tr("Stop"), tr("Stopping…"), "stop"),
}
"""Kind → words, words while it waits for the answer, icon."""


class RunButtons(QWidget):
    """How the run stands, and what can be asked of it."""

    requested = Signal(str)
    """A key of REQUESTS."""
    resume_asked = Signal()
    start_asked = Signal()
    """A run that waits in the queue is to begin now."""
    predictions_asked = Signal()
    duplicate_asked = Signal()
    folder_asked = Signal()
    other_engine_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pill = Pill()
        self.waiting: dict[str, int] = {}
        """Kind of a request that was not answered yet → how many answers of its kind there were before."""
        self.resuming = self._is_gone = False
        self._offer: Offer | None = None
        self.buttons = {
            "other_engine": IconButton(tr("Other engine"), "gauge"),
            "duplicate": IconButton(tr("Duplicate"), "copy"),
            "predictions": IconButton(tr("Predictions"), "target"),
            "folder": IconButton("", "folder"),
        }
        self.buttons["folder"].setToolTip(tr("Open folder"))
        self.buttons["folder"].setAccessibleName(tr("Open folder"))
        self.buttons["folder"].clicked.connect(self.folder_asked)
        self.buttons["start_now"] = IconButton(tr("Start now"), "play")
        self.buttons["start_now"].setToolTip(tr("Begin at once, whatever else is running (burnish start)"))
        self.buttons["start_now"].clicked.connect(self.start_asked)
        for kind, (words, _, icon) in REQUESTS.items():
            self.buttons[kind] = IconButton(words, icon, "danger" if kind == "stop" else "")
            self.buttons[kind].clicked.connect(lambda _=False, kind=kind: self.requested.emit(kind))
        self.buttons["resume"] = IconButton(tr("Resume"), "play", "primary")
        self.buttons["resume"].clicked.connect(self.resume_asked)
        self.buttons["predictions"].clicked.connect(self.predictions_asked)
        self.buttons["duplicate"].clicked.connect(self.duplicate_asked)
        self.buttons["other_engine"].clicked.connect(self.other_engine_asked)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.pill)
        for button in self.buttons.values():
            button.hide()  # until a run says which are of use; together they are wider than a small window
            row.addWidget(button)

    def set_narrow(self, narrow: bool) -> None:
        """Leave room for what the run is about: the button that says the least shows its icon alone."""
        button = self.buttons["duplicate"]
        button.setText("" if narrow else tr("Duplicate"))
        button.setToolTip(tr("Duplicate") if narrow else "")
        button.setAccessibleName(tr("Duplicate"))

    def forget(self) -> None:
        """Another run, or another life of it."""
        self.waiting, self.resuming, self._is_gone = {}, False, False

    def show_offer(self, offer: Offer | None) -> None:
        """Another engine that could train the same, or why it cannot; None where there is none."""
        self._offer = offer
        self.show_starting(False)

    def show_starting(self, starting: bool) -> None:
        """Whether the same run is just being started with the other engine."""
        button, offer = self.buttons["other_engine"], self._offer
        if offer is not None:
            button.setText(tr("Starting…") if starting else tr("Train with {title}", title=offer.title))
            button.setEnabled(not starting and not self.resuming and not offer.reason)
            anew = tr("Start the same run with {title} and compare the curves", title=offer.title)
            button.setToolTip(offer.reason or (tr("{anew}, or go on with it", anew=anew) if offer.continues else anew))

    def show_outcome(self, outcome: Outcome) -> None:
        """The state as a word; where something helps a failed run, that is the button to press."""
        self.buttons["resume"].set_role("primary" if outcome.mend is None else "")
        self.pill.set(outcome.title, outcome.kind, outcome.doubt)

    def show_gone(self) -> None:
        """The run's folder is no more, so nothing can be asked of it until another run is shown."""
        self._is_gone = True
        self.pill.set(tr("Gone"), "danger")
        for button in self.buttons.values():
            button.setVisible(False)

    def show_usable(self, outcome: Outcome, is_caught_up: bool, has_predictions: bool) -> None:
        """Offer what can be done now."""
        if self._is_gone:
            return
        for kind, (words, doing, _) in REQUESTS.items():
            button = self.buttons[kind]
            button.setVisible(outcome.alive and (kind == "stop" or not outcome.waits))
            button.setEnabled(kind not in self.waiting and "stop" not in self.waiting)
            button.setText(doing if kind in self.waiting else words)
        self.buttons["start_now"].setVisible(outcome.waits)
        self.buttons["start_now"].setEnabled("stop" not in self.waiting)
        self.buttons["resume"].setVisible(outcome.resumable and is_caught_up)
        self.buttons["resume"].setEnabled(not self.resuming)
        self.buttons["resume"].setText(tr("Resuming…") if self.resuming else tr("Resume"))
        self.buttons["duplicate"].setVisible(not outcome.alive)
        self.buttons["other_engine"].setVisible(not outcome.alive and self._offer is not None)
        if self.resuming:
            self.buttons["other_engine"].setEnabled(False)
        self.buttons["predictions"].setVisible(has_predictions)
        self.buttons["folder"].setVisible(True)
