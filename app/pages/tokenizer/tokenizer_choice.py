"""The choice of a tokenizer: from demo models, runs, own, recent and cached ones, a folder, a file or a hub id."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QLineEdit, QMenu, QWidget

from app.core.i18n import tr
from app.core.text import tokenizer_list
from app.services.context import AppContext
from app.widgets.boxes import hbox
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton
from backend.contract.resources import DEMO_MODELS
from backend.contract.rpc.models import CachedModels


class TokenizerChoice(QWidget):
    """An editable list, and a button to browse for a folder or file."""

    chosen = Signal(str)
    """The folder, file or hub id that is now to be used."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._last = ""
        self._draft = ("", "")
        """The tokenizer of the run being set up, and its title."""
        self._added: dict[str, str] = {}
        """What a person has named, and what is in the Hub cache."""
        hint = tr("Choose one, or type a folder or Hub ID and press Enter")
        self.box = QuietComboBox(name=tr("Tokenizer"), hint=hint, activated=self._on_chosen)
        self.line = QLineEdit()
        self.line.returnPressed.connect(self._on_chosen)
        self.line.setAcceptDrops(False)  # what is dropped on the page is the page's
        self.box.setLineEdit(self.line)
        hint = tr("Browse for a model folder, a tokenizer folder or a tokenizer file")
        self.browse_button = IconButton(tr("Browse"), "folder", hint=hint)
        self.browse_button.clicked.connect(lambda: self.browse_button.open_menu(self.browse_menu))
        self.browse_menu = QMenu(self.browse_button)
        self.browse_menu.addAction(tr("Browse folder…"), self._browse)
        self.browse_menu.addAction(tr("Browse file…"), self._browse_file)
        hbox((self.box, 1), self.browse_button, spacing=12, parent=self)
        self.refresh()

    def shorten_button(self) -> None:
        """Show the button that browses by its icon alone."""
        self.browse_button.setText("")
        self.browse_button.setFixedWidth(36)
        self.browse_button.setToolTip(tr("Choose a model or tokenizer folder"))
        self.browse_button.setAccessibleName(tr("Browse"))

    def refresh(self) -> None:
        """Offer new tokenizers, for example from new runs; the choice is kept."""
        self._offer(self.tokenizer())
        if self.isVisible():
            self._context.client.ask("cached_models", {}, self._on_cached, lambda mistake: None)

    def offer_draft(self, model: Mapping[str, Any]) -> None:
        """Offer the tokenizer of the run being set up, with its options (the `model` section of its spec)."""
        before, self._draft = self._draft[0], tokenizer_list.of_draft(model)
        after = self._draft[0]
        if after == before:
            return
        is_chosen = bool(before and after) and self._last == before
        self._offer(after if is_chosen else self.tokenizer())
        if is_chosen:
            self._on_chosen()

    def _offer(self, chosen: str) -> None:
        """List every tokenizer once, and show the chosen one, listed or not."""
        offered = {self._draft[0]: self._draft[1]} if self._draft[0] else {}
        for model in DEMO_MODELS:
            offered.setdefault(str(model.folder), tr("{name} · demo model", name=model.name))
        for run in self._context.library.runs:
            if (run.path / "model").is_dir():
                offered.setdefault(str(run.path / "model"), f"{run.title} · {run.name}")
        made = tokenizer_list.made_tokenizers(self._context.preferences)
        offered |= {one.path: one.title for one in made if one.is_there}
        for name, title in {**{name: name for name in self._context.preferences.recent_models}, **self._added}.items():
            offered.setdefault(name, title)
        self.box.set_items([(title, value) for value, title in offered.items()], chosen)
        if chosen and chosen not in offered:
            self.box.setEditText(chosen)

    def tokenizer(self) -> str:
        """The chosen or typed folder, file or hub id; with options in the format of `contract.tokens.options`."""
        text = self.box.currentText().strip()
        place = self.box.findText(text)
        return self.box.itemData(place) if place >= 0 and self.box.itemData(place) else text

    def choose(self, name_or_path: str) -> None:
        """Use a folder, file or hub id."""
        self._added.setdefault(name_or_path, name_or_path)
        self._offer(name_or_path)
        self._last = name_or_path
        self.chosen.emit(name_or_path)

    def _on_chosen(self) -> None:
        """Enter both activates an entry and is a key press; choose only once."""
        if self.tokenizer() != self._last:
            self._last = self.tokenizer()
            self.chosen.emit(self._last)

    def _on_cached(self, answer: CachedModels) -> None:
        self._added |= {model.name: tr("{name} · in the Hub cache", name=model.name) for model in answer.models}
        self._offer(self.tokenizer())

    def _browse_file(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Choose a tokenizer file"), str(Path.home()), tokenizer_list.PATTERNS
        )
        if path:
            self.choose(str(tokenizer_list.tokenizer_of(Path(path))))

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Choose a model or tokenizer folder"), str(Path.home()))
        if folder:
            self.choose(folder)
