"""Owns what the card says of the chosen model: its facts, its notes, and whether its weights are safe to open."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import thin, tr
from app.widgets.card import label
from app.widgets.forms.form_grid import CAPTION_WIDTH
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.queries import ModelDescription

FACTS = (
    tr("Architecture"),
    tr("Parameters"),
    tr("On disk"),
    tr("Licence"),
    tr("Tokenizer"),
    tr("Longest input"),
    tr("From"),
)
_SAFETY = {
    "safetensors": (tr("Safe weights"), "success"),
    "bin": (tr("Old weights"), "warning"),
    "flax": (tr("Flax weights"), "warning"),
    "none": (tr("No weights"), "neutral"),
    "lfs-pointer": (tr("Weights missing"), "danger"),
    "broken": (tr("Damaged"), "danger"),
}
_FOUND = {
    "folder": tr("a folder"),
    "cache": tr("the hub's cache"),
    "hub": tr("the hub"),
    "converted": tr("a copy whose weights were converted"),
}


class ModelFacts(QWidget):
    """Hidden until a model is described."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.values: dict[str, QLabel] = {name: ElidedLabel("–") for name in FACTS}
        self.values[tr("Tokenizer")] = label("–", wrap=True)
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
        theme.role(self.values[tr("Tokenizer")], "" if model.tokenizer_fits else "warning")
        self.show()


def safety(model: ModelDescription) -> tuple[str, str]:
    """The words of a pill, and its kind."""
    text, kind = _SAFETY.get(model.weights_format, (model.weights_format, "neutral"))
    if model.needs_remote_code:
        return tr("Own code"), "warning" if model.code_agreed else "danger"
    return (text, kind) if model.safe else (tr("Not safe"), "danger")


def _texts(model: ModelDescription) -> dict[str, str]:
    family = f" · {model.model_type}" if model.architecture and model.model_type else ""
    commit = tr(" · commit {commit}", commit=model.commit[:12]) if model.commit else ""
    numbers = f" · {formatting.dtype(model.dtype)}" if model.dtype else ""
    return {
        tr("Architecture"): f"{model.architecture or model.model_type or 'unknown'}{family}",
        tr("Parameters"): formatting.short_count(model.parameters) if model.parameters else "unknown",
        tr("On disk"): f"{formatting.megabytes(model.size_mb)}{numbers}",
        tr("Licence"): model.licence or tr("not stated"),
        tr("Tokenizer"): thin(model.tokenizer) or "none",
        tr("Longest input"): tr("{max_length} tokens", max_length=formatting.grouped(model.max_length))
        if model.max_length
        else tr("not stated"),
        tr("From"): f"{_FOUND.get(model.found, model.found)}{commit}" if model.found else "–",
    }
