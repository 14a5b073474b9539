"""The Tokenizer page: the chosen tokenizer, and the tabs that show it."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from app.core.actions import Action
from app.core.i18n import tr
from app.core.page_actions import TOKENIZER, TOKENIZER_TABS
from app.core.text import tokenizer_list
from app.pages.tokenizer.tokenizer_choice import TokenizerChoice
from app.pages.tokenizer.tokenizer_tab import TokenizerTab
from app.services.context import AppContext
from app.widgets.boxes import PageStack
from app.widgets.forms.chips import chips
from app.widgets.forms.path_field import dropped_paths
from app.widgets.page_layout import PageHeader, page_layout

CLASSES = {
    "text": "text.text_tab.TextTab",
    "vocabulary": "vocabulary.vocabulary_tab.VocabularyTab",
    "compare": "compare.compare_tab.CompareTab",
    "data": "data.data_tab.DataTab",
    "train": "train.train_tab.TrainTab",
}
"""Below `app.pages.tokenizer`; a tab is imported when it is first shown."""
TABS = [(title, CLASSES[name], subtitle) for name, (title, subtitle) in TOKENIZER_TABS.items()]
"""Title, class, subtitle."""


class Page(QWidget):
    """One tokenizer, shown on several tabs."""

    message = Signal(str, str)
    settings_chosen = Signal(dict)
    """Spec keys and values for the run that is being set up."""
    draft_wanted = Signal()
    """Whoever knows the run that is being set up should call `show_draft`."""
    new_run_requested = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._context = context
        self._tabs: dict[int, TokenizerTab] = {}
        self.header = PageHeader(tr("Tokenizer"), parent=self)
        self.titles, row = chips([title for title, _, _ in TABS], self.show_tab)
        self.header.buttons.addLayout(row)
        self.choice = TokenizerChoice(context, self)
        self.choice.chosen.connect(self._on_chosen)
        self.pages = PageStack(self)
        column = page_layout(self)
        column.addWidget(self.header)
        column.addWidget(self.choice)
        column.addWidget(self.pages, 1)
        self.setAcceptDrops(True)
        self.show_tab(0)

    def on_shown(self) -> None:
        """Offer the tokenizers of new runs."""
        self.choice.refresh()
        self.draft_wanted.emit()
        self.tab().on_shown()

    def tab(self) -> TokenizerTab:
        """The current tab."""
        return self.pages.currentWidget()  # type: ignore[return-value]

    def show_tab(self, place: int) -> None:
        """Show a tab, built on first use."""
        if place not in self._tabs:
            self._tabs[place] = self._build(TABS[place][1])
        self.titles.button(place).setChecked(True)
        self.header.set_subtitle(TABS[place][2])
        self.choice.setHidden(self._tabs[place].has_own_tokenizer)
        self.pages.setCurrentWidget(self._tabs[place])
        self.draft_wanted.emit()
        self.tab().use(self.choice.tokenizer())
        self.tab().on_shown()

    def offered_actions(self) -> list[Action]:
        """For the palette."""
        actions = enumerate(TOKENIZER.values())
        return [action.bind(lambda place=place: self.show_tab(place)) for place, action in actions]

    def show_tokenizer(self, name_or_path: str) -> None:
        """Show a folder's, file's or hub id's tokenizer."""
        self.choice.choose(name_or_path)

    def show_draft(self, spec: Mapping[str, Any], lacks: str) -> None:
        """Set the run being set up, for the tabs that need it; `lacks` is a sentence, or empty."""
        self.choice.offer_draft(spec.get("model") or {})
        for tab in self._tabs.values():
            tab.show_draft(spec, lacks)

    def show_data(self) -> None:
        """Show the data of the run being set up."""
        self._data_tab().show_lengths()

    def show_step(self, run: str, step: int) -> None:
        """Show the rows of an optimizer step of a run."""
        self._data_tab().show_step(run, step)

    def _data_tab(self) -> Any:
        self.show_tab([name for _, name, _ in TABS].index("data.data_tab.DataTab"))
        return self.tab()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a folder or file."""
        if dropped_paths(event, specs=True):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Choose a dropped tokenizer; for any other file show its tokens."""
        self.take(Path(dropped_paths(event, specs=True)[0]))
        event.acceptProposedAction()

    def take(self, path: Path) -> None:
        """Show a tokenizer, or the tokens of a text file."""
        if tokenizer_list.is_tokenizer(path):
            self.show_tokenizer(str(tokenizer_list.tokenizer_of(path)))
        else:
            self.show_tab(0)
            self.tab().open_file(str(path))  # type: ignore[attr-defined]  # the first tab takes files

    def _build(self, path: str) -> TokenizerTab:
        module, _, name = path.rpartition(".")
        tab = getattr(import_module(f"app.pages.tokenizer.{module}"), name)(self._context, self.pages)
        for signal in ("message", "settings_chosen", "draft_wanted", "new_run_requested"):
            getattr(tab, signal).connect(getattr(self, signal))
        tab.tokenizer_made.connect(self._on_made)
        tab.made_changed.connect(self.choice.refresh)
        self.pages.addWidget(tab)
        return tab

    def _on_made(self, tokenizer: str) -> None:
        self.choice.refresh()
        self.show_tokenizer(tokenizer)

    def _on_chosen(self, tokenizer: str) -> None:
        self.tab().use(tokenizer)
