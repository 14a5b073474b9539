"""Owns the Tokenizer page: which tokenizer it is about, and the sides that show it."""

from importlib import import_module

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.panels.tokenizer_cards.choice import TokenizerChoice
from app.panels.tokenizer_cards.side import Side
from app.services.context import AppContext
from app.widgets.chips import chips
from app.widgets.page_header import PageHeader, page_layout

SIDES = (
    ("Text", "text_side", "Hover a token to see its id; colours only mark where tokens begin"),
    ("Make", "make_side", "Train a new tokenizer on your texts, or give the chosen one more tokens"),
)
"""Title, module under `tokenizer_cards` with a class `Side`, subtitle; a side is imported when it is first shown."""


class Panel(QWidget):
    """One tokenizer, looked at from several sides."""

    message = Signal(str, str)
    settings_chosen = Signal(dict)
    """Spec keys and values for the run that is being set up."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._context = context
        self._sides: dict[int, QWidget] = {}
        self.header = PageHeader("Tokenizer")
        self.titles, row = chips([title for title, _, _ in SIDES])
        self.titles.idClicked.connect(self.show_side)
        self.header.buttons.addLayout(row)
        self.choice = TokenizerChoice(context)
        self.choice.chosen.connect(self._on_chosen)
        self.pages = QStackedWidget()
        column = page_layout(self)
        column.addWidget(self.header)
        column.addWidget(self.choice)
        column.addWidget(self.pages, 1)
        self.show_side(0)

    def shown(self) -> None:
        """New runs may have brought tokenizers."""
        self.choice.refresh()
        self.side().shown()

    def side(self) -> Side:
        """The side in view."""
        return self.pages.currentWidget()  # type: ignore[return-value]

    def show_side(self, place: int) -> None:
        """Show a side, built if this is its first time."""
        if place not in self._sides:
            self._sides[place] = self._built(SIDES[place][1])
        self.titles.button(place).setChecked(True)
        self.header.set_subtitle(SIDES[place][2])
        self.pages.setCurrentWidget(self._sides[place])
        self.side().use(self.choice.tokenizer())
        self.side().shown()

    def show_tokenizer(self, name_or_path: str) -> None:
        """Look at a folder, file or hub id."""
        self.choice.choose(name_or_path)

    def _built(self, module: str) -> QWidget:
        side = import_module(f"app.panels.tokenizer_cards.{module}").Side(self._context)
        side.message.connect(self.message)
        if hasattr(side, "settings_chosen"):
            side.settings_chosen.connect(self.settings_chosen)
        if hasattr(side, "tokenizer_made"):
            side.tokenizer_made.connect(self.show_tokenizer)
        self.pages.addWidget(side)
        return side

    def _on_chosen(self, tokenizer: str) -> None:
        self.side().use(tokenizer)
