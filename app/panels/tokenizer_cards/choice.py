"""Owns the choice of a tokenizer: the demo models', the runs', recent models, a folder, a file or the id of a hub model."""

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from app.services.context import AppContext
from app.widgets.icon_label import IconButton
from app.widgets.quiet_combo_box import QuietComboBox
from backend.contract.demo_models import DEMO_MODELS


class TokenizerChoice(QWidget):
    """A list that may be typed into, and a button that looks for a folder."""

    chosen = Signal(str)
    """The folder, file or hub id that is now to be used."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.box = QuietComboBox()
        self.box.setEditable(True)
        self.box.setAccessibleName("Tokenizer")
        self.box.setToolTip("Choose one, or type a folder or the id of a model on the hub and press Enter")
        self.box.activated.connect(lambda _: self.chosen.emit(self.tokenizer()))
        line = self.box.lineEdit()
        assert line is not None
        line.returnPressed.connect(lambda: self.chosen.emit(self.tokenizer()))
        self.browse_button = IconButton("Browse", "folder")
        self.browse_button.clicked.connect(self._browse)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self.box, 1)
        row.addWidget(self.browse_button)
        self.refresh()

    def refresh(self) -> None:
        """Offer what has come since: new runs bring tokenizers."""
        for model in DEMO_MODELS:
            self._add(f"Demo model ({model.name})", str(model.folder))
        for run in self._context.library.runs:
            if run.state == "finished":
                self._add(f"{run.title} · {run.name}", str(run.path / "model"))
        for name in self._context.preferences.recent_models:
            self._add(name, name)

    def tokenizer(self) -> str:
        """The folder, file or hub id that is chosen or typed."""
        text = self.box.currentText().strip()
        place = self.box.findText(text)
        return self.box.itemData(place) if place >= 0 and self.box.itemData(place) else text

    def choose(self, name_or_path: str) -> None:
        """Use a folder, file or hub id."""
        self._add(name_or_path, name_or_path)
        self.box.setCurrentIndex(self.box.findData(name_or_path))
        self.chosen.emit(name_or_path)

    def _add(self, title: str, value: str) -> None:
        if self.box.findData(value) < 0:
            self.box.addItem(title, value)

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Choose the folder of a model or tokenizer", str(Path.home()))
        if folder:
            self.choose(folder)
