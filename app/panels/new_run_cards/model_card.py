"""Owns the choice of the model, and what its folder holds."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QGridLayout, QHBoxLayout, QLabel, QPushButton, QWidget

from app import theme
from app.core import wording
from app.core.draft import Draft
from app.panels.new_run_cards.path_field import dropped_paths
from app.panels.new_run_cards.rows import Rows
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.elided_label import ElidedLabel
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.path_line import PathLine
from app.widgets.pill import Pill
from app.widgets.progress_bar import ThinProgressBar
from app.widgets.quiet_combo_box import QuietComboBox
from backend.contract.demo_models import DEMO_MODELS, demo_model
from backend.contract.queries import CachedModel, ModelDescription, Progress

HINT = "A model folder, or a hub id such as google/mt5-small"
OLD_WEIGHTS = {
    "bin": "This model has only old weights (pytorch_model.bin). A throwaway process can convert them once, reading numbers and "
    "nothing else",
    "flax": "This model has only Flax weights (flax_model.msgpack). They can be converted once, for both engines",
}
FACTS = ("Architecture", "Parameters", "On disk", "Licence", "Tokenizer", "Longest input")


class ModelCard(Card):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)
    conversion_agreed = Signal()
    trust_agreed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("3 · Model", parent)
        self.state = label("", "faint")
        self.pill = Pill()
        self.corner.addWidget(self.state)
        self.corner.addWidget(self.pill)
        self._build_choice()
        self.banner = Banner()
        self.convert = IconButton("Convert once", "refresh", "primary")
        self.convert.clicked.connect(self.conversion_agreed)
        self.trust = IconButton("I have read it, run its code", "warning", "danger")
        self.trust.clicked.connect(self.trust_agreed)
        self.banner.buttons.addWidget(self.convert)
        self.banner.buttons.addWidget(self.trust)
        self.bar = ThinProgressBar()
        self.facts: dict[str, QLabel] = {name: ElidedLabel("–") for name in FACTS}
        self.facts["Tokenizer"] = label("–", wrap=True)
        self._facts = self._facts_grid()
        self.notes = label("", "muted", wrap=True)
        for widget in (self.banner, self.bar, self._facts, self.notes):
            self.add(widget)
        self.show_nothing()
        self.setAcceptDrops(True)

    def _build_choice(self) -> None:
        self.name = QuietComboBox()
        self.name.setEditable(True)
        self.name.setInsertPolicy(QuietComboBox.InsertPolicy.NoInsert)
        self.name.setMinimumContentsLength(20)
        line = PathLine(placeholderText="Folder or hub id")
        self.name.setLineEdit(line)
        self.name.setToolTip(HINT)
        line.editingFinished.connect(self._on_edited)
        # What is offered says more than a name, so it must not complete what is typed.
        self.name.setCompleter(None)  # type: ignore[arg-type]
        self.name.activated.connect(self._on_offer_chosen)
        self.name.setAccessibleName("Model folder or hub id")
        browse = IconToolButton("folder", "Choose a model folder")
        browse.clicked.connect(self._on_browse)
        self.embedded = QPushButton()
        theme.role(self.embedded, "chip")
        self.embedded.clicked.connect(lambda: self.choose(str(self._embedded.folder)))
        self._embed("")
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self.name, 1)
        row.addWidget(browse)
        row.addWidget(self.embedded)
        holder = QWidget()
        row.setContentsMargins(0, 0, 0, 0)
        holder.setLayout(row)
        rows = Rows()
        rows.add("Model", holder, self.name)
        self.body.addLayout(rows)
        self._chosen = ""

    def _facts_grid(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(5)
        for number, (name, value) in enumerate(self.facts.items()):
            grid.addWidget(label(name, "muted"), number, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, number, 1)
        grid.setColumnMinimumWidth(0, 104)
        grid.setColumnStretch(1, 1)
        return holder

    # The choice

    def set_offers(self, recent: Sequence[str], cached: Sequence[CachedModel]) -> None:
        """Offer the embedded models, those used before, and those in the hub library's cache."""
        text = self.name.currentText()
        self.name.clear()
        sizes = {model.name: f"in the cache, {wording.megabytes(model.size_mb)}" for model in cached}
        for model in DEMO_MODELS:
            self._offer(str(model.folder), model.name, f"embedded, {model.use}")
        for name in dict.fromkeys([*recent, *sizes]):
            self._offer(name, wording.short_path(name), sizes.get(name, "used before"))
        self.name.setCurrentIndex(-1)
        self.name.setCurrentText(text)

    def _offer(self, name: str, title: str, where: str) -> None:
        if self.name.findData(name) < 0:
            self.name.addItem(f"{title} · {where}", name)
            self.name.setItemData(self.name.count() - 1, name, Qt.ItemDataRole.ToolTipRole)

    def _embed(self, task: str) -> None:
        """One click chooses the embedded model that goes with the task."""
        self._embedded = demo_model(task)
        self.embedded.setText(self._embedded.name)
        self.embedded.setToolTip(f"An embedded model: {self._embedded.use}")

    def show_draft(self, draft: Draft) -> None:
        """Show what the draft says."""
        self._embed(str(draft.get("task.type") or ""))
        chosen = str(draft.get("model.name_or_path") or "")
        if chosen != self._chosen:
            self.show_nothing()
        self._chosen = chosen
        if self.name.currentText() != self._chosen:
            self.name.setCurrentText(self._chosen)
        self.name.setToolTip(self._chosen or HINT)

    def choose(self, name: str) -> None:
        """As if a person had chosen it."""
        if name != self._chosen:
            self._chosen = name
            # What is known, and what can be agreed to, belongs to the model before.
            self.show_nothing()
            self.name.setCurrentText(name)
            self.changed.emit("model.name_or_path", name)

    def _on_offer_chosen(self, number: int) -> None:
        name = self.name.itemData(number)
        self.name.setCurrentIndex(-1)
        self.name.setCurrentText(name)
        self.choose(name)

    def _on_edited(self) -> None:
        self.choose(self.name.currentText().strip())

    def _on_browse(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Model folder", self._chosen)
        if path:
            self.choose(path)

    def mark(self, field: str, sentence: str) -> bool:
        """Show a mistake that belongs to this card; says whether it does."""
        if not field.startswith("model"):
            return False
        self._say("error", sentence)
        return True

    # What it is

    def show_nothing(self) -> None:
        """Nothing is known of the model, or none is chosen."""
        for widget in (self._facts, self.notes, self.pill, self.bar):
            widget.hide()
        self.state.setText("")
        self._say("", "")

    def show_reading(self, progress: Progress | None = None) -> None:
        """The model is being looked at, downloaded or converted; meanwhile there is nothing to agree to."""
        self._say("", "")
        self.state.setText(progress.text if progress and progress.text else "Looking…")
        self.bar.setVisible(progress is not None)
        if progress is not None:
            self.bar.set_fraction(progress.done / progress.total if progress.total else None)

    def show_problem(self, sentence: str) -> None:
        """The model cannot be used."""
        self.show_nothing()
        self._say("error", sentence)

    def show_description(self, model: ModelDescription, trusted: bool) -> None:
        """What its folder holds, and what stands in the way."""
        self.state.setText("")
        self.bar.hide()
        self._show_facts(model)
        self.notes.setText("\n".join(f"•  {note}" for note in model.notes))
        self.notes.setVisible(bool(model.notes))
        self._show_safety(model)
        if model.needs_conversion:
            self._say("warning", f"{OLD_WEIGHTS[model.weights_format]}; the copy is used from then on.")
            self.convert.show()
        elif model.needs_remote_code and not trusted:
            self._say("warning", "This model runs Python code of its own. Read that code before you agree to run it.")
            self.trust.show()
        else:
            self._say("error" if model.problem else "", wording.sentence(model.problem))

    def _show_facts(self, model: ModelDescription) -> None:
        self._facts.show()
        values = {
            "Architecture": model.architecture or model.model_type or "unknown",
            "Parameters": wording.short_count(model.parameters) if model.parameters else "unknown",
            "On disk": f"{wording.megabytes(model.size_mb)}{f' · {wording.dtype(model.dtype)}' if model.dtype else ''}",
            "Licence": model.licence or "not stated",
            "Tokenizer": model.tokenizer or "none",
            "Longest input": f"{wording.grouped(model.max_length)} tokens" if model.max_length else "not stated",
        }
        for name, value in values.items():
            self.facts[name].setText(value)
        theme.role(self.facts["Tokenizer"], "" if model.tokenizer_fits else "warning")

    def _show_safety(self, model: ModelDescription) -> None:
        kinds = {
            "safetensors": ("Safe weights", "success"),
            "bin": ("Old weights", "warning"),
            "flax": ("Flax weights", "warning"),
            "none": ("No weights", "neutral"),
            "lfs-pointer": ("Weights missing", "danger"),
            "broken": ("Damaged", "danger"),
        }
        text, kind = kinds.get(model.weights_format, (model.weights_format, "neutral"))
        self.pill.set(text if model.safe else "Not safe", kind if model.safe else "danger")
        self.pill.setVisible(bool(text))

    def _say(self, kind: str, sentence: str) -> None:
        self.convert.hide()
        self.trust.hide()
        if sentence:
            self.banner.show_message(kind, sentence)
        else:
            self.banner.clear()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A folder dropped on the card is a model."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Take it."""
        paths = dropped_paths(event)
        if paths:
            event.accept()
            self.choose(paths[0])
