"""The Make tab: train a new tokenizer on texts, or add tokens to the chosen one."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr, trn
from app.core.text import tokenizer_list
from app.pages.tokenizer.text_source import TextSource
from app.pages.tokenizer.tokenizer_tab import TokenizerTab
from app.pages.tokenizer.train.extender import TokenizerExtender
from app.pages.tokenizer.train.trainer import TokenizerTrainer
from app.pages.tokenizer.train.user_tokenizers_card import UserTokenizersCard
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.boxes import hbox, holder, scroll_area, stack, vbox
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton
from backend.contract.catalog import Catalog
from backend.contract.tokens.training import TrainedTokenizer

TITLES = (tr("Train a new one"), tr("Add tokens to this one"), tr("Your tokenizers"))
MADE_BEFORE = 2

NARROWEST = 400
"""Pixels of the settings, which are not scrolled sideways."""
TEXTS = (tr("Texts"), tr("Count occurrences in (optional)"), tr("Texts"))


class TrainTab(TokenizerTab):
    """Two ways to make a tokenizer, with a shared choice of texts."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._extended = ""
        self.banner = Banner()
        self.use_button = IconButton(tr("Use it in my run"), "bolt", clicked=lambda: self._use_in_run(self._extended))
        self.banner.buttons.addWidget(self.use_button)
        self.texts = TextSource(context.client)
        self.texts.run_requested.connect(lambda: self._take_draft_data(self.texts.take))
        self.training = TokenizerTrainer(context, self.texts, self)
        self.extending = TokenizerExtender(context, self.texts, self)
        self._parts = (self.training, self.extending)
        self.ways, row = chips(TITLES, self.show_way)
        row.addStretch(1)
        for part in self._parts:
            part.message.connect(self.message)
            part.use_requested.connect(self._use_in_run)
            part.failed.connect(self._show_failure)
        self.made_before = UserTokenizersCard(context.preferences)
        self.made_before.open_requested.connect(self.tokenizer_made)
        self.made_before.use_requested.connect(self._use_in_run)
        self.made_before.message.connect(self.message)
        self.made_before.forgotten.connect(self.made_changed)
        self._results = stack(self.training.result, self.extending.result, self.made_before)
        self.training.made.connect(self._on_trained)
        self.extending.made.connect(self._on_extended)
        self._place(row)
        self.show_way(0)
        self._ask_catalog()

    def _place(self, row: QHBoxLayout) -> None:
        # Texts come first if the tokenizer is trained on them, and last if they only help to decide.
        cards = vbox(self.extending.settings, self.texts, self.training.settings, 1, spacing=14)
        self._settings = scroll_area(holder(cards))
        self._settings.setMinimumWidth(NARROWEST)
        middle = hbox((self._settings, 4), (self._results, 5), spacing=14)
        feet = [part.foot for part in self._parts]
        vbox(row, self.banner, (middle, 1), *feet, spacing=14, parent=self)

    def show_way(self, place: int) -> None:
        """Train, or add tokens."""
        self.ways.button(place).setChecked(True)
        self.texts.set_title(TEXTS[place])
        self._results.setCurrentIndex(place)
        self._settings.setVisible(place != MADE_BEFORE)
        self.made_before.refresh()
        for number, part in enumerate(self._parts):
            part.settings.setVisible(number == place)
            part.foot.setVisible(number == place)
        self.banner.clear()

    def _on_tokenizer(self) -> None:
        """Compare with this one, and add tokens to it."""
        self.training.use(self.tokenizer)
        self.extending.use(self.tokenizer)

    def on_shown(self) -> None:
        """Keep the input and choices unchanged."""
        self.made_before.refresh()
        if self.training.form is None:
            self._ask_catalog()

    def _ask_catalog(self) -> None:
        self._context.client.ask("catalog", {}, self._on_catalog, lambda mistake: self._show_failure(mistake.message))

    def _on_catalog(self, catalog: Catalog) -> None:
        self.texts.set_sources(catalog.sources)
        self.training.offer(catalog.tokenizer_training)

    def _show_failure(self, sentence: str) -> None:
        self.use_button.hide()
        self.banner.show_message("error", sentence)

    def _on_trained(self, made: TrainedTokenizer) -> None:
        self._remember(made)
        self.tokenizer_made.emit(made.path)

    def _remember(self, made: TrainedTokenizer) -> None:
        tokenizer_list.remember(self._context.preferences, made)
        self.made_before.refresh()

    def _on_extended(self, made: TrainedTokenizer) -> None:
        self._remember(made)
        self._extended = made.path
        self.use_button.show()
        self.banner.show_message(
            "success",
            tr(
                "Added {count} ({vocabulary} pieces in total) and saved the tokenizer in {path}. A run "
                "that uses it extends its embeddings automatically.",
                count=trn("{count} token", "{count} tokens", made.added),
                vocabulary=formatting.group_digits(made.vocabulary),
                path=made.path,
            ),
        )
        self.tokenizer_made.emit(made.path)

    def _use_in_run(self, path: str) -> None:
        self.settings_chosen.emit({"model.tokenizer": path})
        self.message.emit("success", tr("The new run uses this tokenizer."))
