"""Owns what the card says of the chosen model: its facts, its notes, and whether its weights are safe to open."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app import theme
from app.core import wording
from app.panels.new_run_cards.rows import CAPTION_WIDTH
from app.widgets.card import label
from app.widgets.elided_label import ElidedLabel
from backend.contract.queries import ModelDescription

FACTS = ("Architecture", "Parameters", "On disk", "Licence", "Tokenizer", "Longest input", "From")
_SAFETY = {
    "safetensors": ("Safe weights", "success"),
    "bin": ("Old weights", "warning"),
    "flax": ("Flax weights", "warning"),
    "none": ("No weights", "neutral"),
    "lfs-pointer": ("Weights missing", "danger"),
    "broken": ("Damaged", "danger"),
}
_FOUND = {
    "folder": "a folder",
    "cache": "the hub's cache",
    "hub": "the hub",
    "converted": "a copy whose weights were converted",
}


class ModelFacts(QWidget):
    """Hidden until a model is described."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.values: dict[str, QLabel] = {name: ElidedLabel("–") for name in FACTS}
        self.values["Tokenizer"] = label("–", wrap=True)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(5)
        for number, (name, value) in enumerate(self.values.items()):
            grid.addWidget(label(name, "muted"), number, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, number, 1)
        grid.setColumnMinimumWidth(0, CAPTION_WIDTH)
        grid.setColumnStretch(1, 1)

    def show_model(self, model: ModelDescription) -> None:
        """Show what its folder, or the hub, says."""
        for name, value in _texts(model).items():
            self.values[name].setText(value)
        theme.role(self.values["Tokenizer"], "" if model.tokenizer_fits else "warning")
        self.show()


def safety(model: ModelDescription) -> tuple[str, str]:
    """The words of a pill, and its kind."""
    text, kind = _SAFETY.get(model.weights_format, (model.weights_format, "neutral"))
    return (text, kind) if model.safe else ("Not safe", "danger")


def _texts(model: ModelDescription) -> dict[str, str]:
    family = f" · {model.model_type}" if model.architecture and model.model_type else ""
    commit = f" · commit {model.commit[:12]}" if model.commit else ""
    numbers = f" · {wording.dtype(model.dtype)}" if model.dtype else ""
    return {
        "Architecture": f"{model.architecture or model.model_type or 'unknown'}{family}",
        "Parameters": wording.short_count(model.parameters) if model.parameters else "unknown",
        "On disk": f"{wording.megabytes(model.size_mb)}{numbers}",
        "Licence": model.licence or "not stated",
        "Tokenizer": model.tokenizer or "none",
        "Longest input": f"{wording.grouped(model.max_length)} tokens" if model.max_length else "not stated",
        "From": f"{_FOUND.get(model.found, model.found)}{commit}" if model.found else "–",
    }
