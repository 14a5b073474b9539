"""The row of compared tokenizers: the page's own first, with one to three others."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.core.text.tokenizer_list import path_of, titles
from app.pages.tokenizer.tokenizer_choice import TokenizerChoice
from app.services.context import AppContext
from app.widgets.boxes import hbox
from app.widgets.card import label
from app.widgets.icon_label import IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.resources import DEMO_MODELS
from backend.contract.tokens.comparison import MOST

COLOR_TOKENS = ("plot_1", "plot_2", "plot_3", "plot_4")
"""Of the tokenizers, in the plots and beside their names."""
NARROW = 230
"""Pixels of a head below which its name needs the room of the button that browses; the page's own button browses too."""
HINT = tr("The tokenizer chosen at the top of the page")


class ComparedTokenizers(QWidget):
    """`tokenizers` and their short `names`; `changed` when one of them changes."""

    changed = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._first = ""
        self._model: Mapping[str, Any] = {}
        self.choices: list[TokenizerChoice] = []
        self._heads: list[QWidget] = []
        self.first = ElidedLabel("", "strong", Qt.TextElideMode.ElideLeft)
        self.row = hbox((_head(0, self.first), 1), spacing=14, parent=self)
        self.add()

    @property
    def tokenizers(self) -> list[str]:
        """Folders, files or hub ids, the page's own first."""
        return [self._first, *(choice.tokenizer() for choice in self.choices)]

    @property
    def names(self) -> list[str]:
        """How they differ."""
        return titles(self.tokenizers)

    @property
    def ready(self) -> bool:
        """Whether each of them is chosen."""
        return all(self.tokenizers)

    def set_first(self, tokenizer: str) -> None:
        """Set the page's own tokenizer; emits nothing."""
        self._first = tokenizer
        if len(self.choices) == 1 and self.choices[0].tokenizer() == tokenizer:
            self._choose_another(self.choices[0])
        self.first.setText(self.names[0])
        self.first.setToolTip(f"{path_of(tokenizer)}\n{HINT}")

    def add(self) -> None:
        """Add one more, up to four."""
        if len(self.tokenizers) == MOST:
            return
        choice = TokenizerChoice(self._context)
        choice.offer_draft(self._model)
        choice.shorten_button()
        self._choose_another(choice)
        choice.chosen.connect(self._on_chosen)
        remove = IconToolButton("close", tr("Remove from the comparison"))
        head = _head(len(self.tokenizers), choice, remove)
        remove.clicked.connect(lambda: self.remove(self._heads.index(head)))
        self.choices.append(choice)
        self._heads.append(head)
        self.row.addWidget(head, 1)
        self._show_removable()

    def remove(self, place: int) -> None:
        """Remove one of the others; at least one stays."""
        if len(self.choices) == 1:
            return
        self.choices.pop(place)
        head = self._heads.pop(place)
        self.row.removeWidget(head)
        head.hide()
        head.deleteLater()
        for number, each in enumerate(self._heads, start=1):
            each.findChild(Dot).set_number(number)  # type: ignore[union-attr]
        self._show_removable()
        self.changed.emit()

    def refresh(self) -> None:
        """Offer the tokenizers of new runs."""
        for choice in self.choices:
            choice.refresh()

    def offer_draft(self, model: Mapping[str, Any]) -> None:
        """Offer the tokenizer of the run being set up (`model` section of its spec)."""
        self._model = model
        for choice in self.choices:
            choice.offer_draft(model)

    def _on_chosen(self, _: str) -> None:
        self.first.setText(self.names[0])
        self.changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give tokenizer names room before buttons."""
        super().resizeEvent(event)
        self._show_browsing()

    def _show_browsing(self) -> None:
        for choice in self.choices:
            choice.browse_button.setVisible(self.width() / len(self.tokenizers) >= NARROW)

    def _show_removable(self) -> None:
        self._show_browsing()
        for head in self._heads:
            head.findChildren(IconToolButton)[-1].setVisible(len(self._heads) > 1)

    def _choose_another(self, choice: TokenizerChoice) -> None:
        """Choose one that is not compared yet, if any is known."""
        known = [str(model.folder) for model in DEMO_MODELS]
        other = next((each for each in known if each not in self.tokenizers), known[-1])
        with QSignalBlocker(choice):
            choice.choose(other)
        choice.line.setCursorPosition(0)  # else the end of a name that is too long is shown


class Dot(QWidget):
    """The colour of a tokenizer, with its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        theme.follow(self)
        self._label = label("●")
        hbox(self._label, parent=self)
        self.set_number(number)

    def set_number(self, number: int) -> None:
        """Set its position in the row."""
        self._number = number
        self.apply_theme()

    def apply_theme(self) -> None:
        """Redraw in the current colours."""
        self._label.setStyleSheet(f"color: {theme.hex_color(COLOR_TOKENS[self._number])};")


def _head(number: int, name: QWidget, *buttons: QWidget) -> QWidget:
    made = QWidget()
    made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)  # as wide as its column below
    hbox(Dot(number), (name, 1), *buttons, spacing=6, parent=made)
    return made
