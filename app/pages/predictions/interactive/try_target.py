"""Chooses the model to query: a run or a checkpoint, a demo, recent or cached model, a folder, a hub id."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.core.draft.model_consent import CONVERT, TRUST, question
from app.core.formatting import megabytes, sentence, short_count
from app.core.i18n import inside, tr
from app.core.predictions.interactive import checkpoints_of, has_model, is_run, name_of, run_of, step_of
from app.core.runs.run_comparison import names_of
from app.core.runs.run_library import RunSummary
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.path_field import PathLine
from app.widgets.icon_label import IconButton, IconToolButton
from backend.contract.resources import DEMO_MODELS
from backend.contract.rpc.models import CachedModel, ModelDescription

HINT = tr("Choose a run, or type a model folder or Hub ID and press Enter")
FINAL = tr("Final model")
GONE = tr("This run was deleted. Choose another model.")
UNTRAINED = tr("Not trained for this task. Its answers will be random.")
_FOUND = {"cache": tr("cached"), "hub": tr("on the Hub"), "converted": tr("converted copy")}


class TargetChoice(QWidget):
    """Emits `changed` when another model is chosen; it reads and queries nothing itself."""

    changed = Signal()
    agreed = Signal(str)
    """To `trust` the code of the model, or to `convert` its weights."""

    def __init__(self, name: str = tr("Model"), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs: dict[str, str] = {}
        self.target = QuietComboBox()
        self.target.setEditable(True)
        self.target.setAccessibleName(name)
        self.target.setToolTip(HINT)
        self.target.activated.connect(lambda _: self._on_chosen())
        line = PathLine()
        line.left_out = Qt.TextElideMode.ElideMiddle  # of `title · folder` both ends tell runs apart
        self.target.setLineEdit(line)
        line.editingFinished.connect(self._on_chosen)
        line.textEdited.connect(lambda _: self.show_facts(""))  # they were about another model
        line.setPlaceholderText(tr("Run, folder or Hub ID"))
        self.checkpoint = QuietComboBox()
        self.checkpoint.setAccessibleName(tr("Checkpoint of the {name}", name=inside(name)))
        self.checkpoint.setToolTip(tr("Which checkpoint to use"))
        self.checkpoint.activated.connect(lambda _: self.changed.emit())
        self.checkpoint.setMinimumWidth(122)
        self.checkpoint.hide()
        browse = IconToolButton("folder", tr("Choose a model folder"))
        browse.clicked.connect(self._browse)
        self.facts = label("", "caption", wrap=True)
        self.facts.hide()
        self.row = QHBoxLayout()
        self.row.setSpacing(6)
        self.row.addWidget(self.target, 1)
        self.row.addWidget(self.checkpoint)
        self.row.addWidget(browse)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(self.row)
        column.addWidget(self.facts)
        column.addLayout(self._consent_row())
        self._chosen = ""

    def _consent_row(self) -> QHBoxLayout:
        self.trust, self.convert = IconButton(TRUST, "warning", "danger"), IconButton(CONVERT, "refresh", "primary")
        self.read = IconButton(tr("Open folder"), "folder", "quiet")
        self.trust.clicked.connect(lambda: self.agreed.emit("trust"))
        self.convert.clicked.connect(lambda: self.agreed.emit("convert"))
        self.read.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder)))
        self._folder = ""
        row = QHBoxLayout()
        row.setSpacing(6)
        for button in (self.read, self.trust, self.convert):
            button.hide()
            row.addWidget(button)
        row.addStretch(1)
        return row

    # What can be chosen

    def offer(self, runs: Sequence[RunSummary], models: Sequence[str], cached: Sequence[CachedModel]) -> None:
        """Offer runs with a model or checkpoint, demo models, recently used ones, and those that need no download."""
        there = [run for run in runs if run.has_predictions or (run.step and checkpoints_of(run.path))]
        listed = {str(run.path) for run in there}
        offers = [(name, str(run.path)) for run, name in zip(there, names_of(there), strict=True)]
        kept = (path for path in self._runs if path not in listed and (path == self._chosen or Path(path).is_dir()))
        offers += [(Path(path).name, path) for path in kept]
        offers += [(tr("Demo model ({name})", name=model.name), str(model.folder)) for model in DEMO_MODELS]
        offers += [(name, name) for name in models]
        offers += [(f"{one.name} · {megabytes(one.size_mb)}", one.name) for one in cached if one.name not in models]
        self._runs |= {str(run.path): run.task for run in there}
        if offers != [(self.target.itemText(n), self.target.itemData(n)) for n in range(self.target.count())]:
            kept = self.chosen()
            self.target.clear()
            for title, value in offers:
                self.target.addItem(title, value)
            self._show(run_of(kept))
        self._offer_checkpoints(self._chosen)  # a run in progress saves new checkpoints and deletes old ones

    def show_run(self, run: str, kind: str = "") -> None:
        """Choose a run, or a checkpoint of it."""
        whole = run_of(run)
        self._runs.setdefault(whole, kind)
        if self.target.findData(whole) < 0:
            self.target.insertItem(0, Path(whole).name, whole)
        self._show(whole)
        self._on_chosen()
        place = self.checkpoint.findData(run)
        if place >= 0 and run != whole:
            self.checkpoint.setCurrentIndex(place)
            self.changed.emit()

    def show_model(self, name: str) -> None:
        """Choose a folder or hub id."""
        self._show(name)
        self._on_chosen()

    def show_target(self, target: str, kind: str = "") -> None:
        """Choose a value previously returned by `chosen`."""
        if step_of(target) is not None or target in self._runs:
            self.show_run(target, kind)
        else:
            self.show_model(target)

    def _show(self, value: str) -> None:
        place = self.target.findData(value)
        self.target.setCurrentIndex(place)
        if place < 0:
            self.target.setEditText(value)

    # What is chosen

    def chosen_whole(self) -> str:
        """The run's or model's folder, or a hub id."""
        text = self.target.currentText().strip()
        at = self.target.currentIndex()  # two runs may have one title
        place = at if at >= 0 and self.target.itemText(at).strip() == text else self.target.findText(text)
        return str(self.target.itemData(place)) if place >= 0 else text

    def chosen(self) -> str:
        """The same, or the checkpoint's folder if one was chosen."""
        whole, checkpoint = self.chosen_whole(), self.checkpoint.currentData()
        return str(checkpoint) if checkpoint and run_of(str(checkpoint)) == whole else whole

    @property
    def is_run(self) -> bool:
        """Whether it is a run, whose task is known."""
        return self.chosen_whole() in self._runs

    @property
    def is_gone(self) -> bool:
        """Whether it is a run whose folder was deleted."""
        return self.is_run and not Path(self.chosen_whole()).is_dir()

    @property
    def name(self) -> str:
        """A short name for the model."""
        return name_of(self.chosen())

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Choose a model folder"), str(Path.home()))
        if folder:
            self.show_model(folder)

    def _on_chosen(self) -> None:
        whole = self.chosen_whole()
        line = self.target.lineEdit()
        if line is not None and not line.hasFocus():
            line.setCursorPosition(0)  # of a long name the beginning is seen
        if whole != self._chosen:
            self._chosen = whole
            if is_run(whole):  # one that lies elsewhere than the others
                self._runs.setdefault(whole, "")
            self.show_facts("")
            self.target.setToolTip(f"{whole}\n{HINT}" if whole else HINT)
        self._offer_checkpoints(whole)
        self.changed.emit()

    def _offer_checkpoints(self, whole: str) -> None:
        steps = checkpoints_of(whole) if whole in self._runs else {}
        offers = [(FINAL, "")] if not steps or has_model(whole) else []
        offers += [(tr("Step {step:,}", step=step), folder) for step, folder in steps.items()]
        if offers != [
            (self.checkpoint.itemText(n), self.checkpoint.itemData(n)) for n in range(self.checkpoint.count())
        ]:
            kept = self.checkpoint.currentData()
            self.checkpoint.clear()
            for title, folder in offers:
                self.checkpoint.addItem(title, folder)
            self.checkpoint.setCurrentIndex(max(0, self.checkpoint.findData(kept)))
        self.checkpoint.setVisible(bool(steps))

    # What is known of it

    def ask_consent(self, consent: str, sentence: str, folder: str = "") -> None:
        """Ask to `trust` or to `convert`; an empty `way` asks nothing."""
        self.show_facts(sentence)
        theme.role(self.facts, "warning" if consent else "caption")
        self._folder = folder
        self.trust.setVisible(consent == "trust")
        self.convert.setVisible(consent == "convert")
        self.read.setVisible(consent == "trust" and bool(folder))

    def show_facts(self, text: str, is_problem: bool = False) -> None:
        """Show one line below the choice; empty hides it."""
        for button in (self.trust, self.convert, self.read):
            button.hide()
        self.facts.setText(text)
        self.facts.setVisible(bool(text))
        theme.role(self.facts, "mistake" if is_problem else "caption")

    def show_description(self, one: ModelDescription, trained: str) -> None:
        """Describe the model, or why it does not fit the task; for an untrained head, what to expect.

        `trained` is the ending of architecture names trained for the task.
        """
        if one.problem:
            self.show_facts(sentence(one.problem), is_problem=True)
            return
        prompt, asked = question(one)
        if prompt:
            self.ask_consent(prompt, asked, one.folder)
            return
        words = [
            one.architecture or one.model_type,
            tr("{number} parameters", number=short_count(one.parameters)) if one.parameters else "",
        ]
        words += [_FOUND.get(one.found, "")]
        is_trained = one.architecture.endswith(trained)
        facts = " · ".join(filter(None, words))
        self.show_facts(facts if is_trained else f"{facts}\n{UNTRAINED}")
