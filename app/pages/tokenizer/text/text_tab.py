"""The Text tab: input is tokenized as it is typed, and every card shows its part of the answer."""

from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.core import formatting
from app.core.i18n import thin, tr
from app.core.text import run_handover, tokenizer_input
from app.core.text.token_table import TokenTable
from app.core.text.tokenizer_input import TextOptions
from app.pages.tokenizer.ids_and_pieces import DecodedView, IdsQuestion
from app.pages.tokenizer.text import text_input, tokens_card
from app.pages.tokenizer.text.batch_card import BatchCard
from app.pages.tokenizer.text.options_card import OptionsCard
from app.pages.tokenizer.text.status_rows import CodeQuestion, WorkingRow
from app.pages.tokenizer.text.text_input import CHAT, FILE, PAIR, TEXT, WORDS, TextInput
from app.pages.tokenizer.text.tokens_card import TokenCard, TokensCard
from app.pages.tokenizer.tokenizer_tab import TokenizerTab
from app.services import text_file
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.services.token_answers import part_of, token_table, warm_up
from app.widgets.banner import Banner
from app.widgets.boxes import hbox, vbox
from app.widgets.card import Card
from app.widgets.forms.chips import set_narrow
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.text.text_editor import text_of
from backend.contract.catalog import Catalog, TaskEntry
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.batches import TokenGrid
from backend.contract.tokens.tokens import TokenizerDescription

CALM_MS = 150
AT_ONCE = 20_000
"""Characters up to which every key press is answered; a longer text waits until a person pauses."""
SIDE_WIDTH, NARROW = 300, 760
ROOM_OF_CHAT = 215
TEMPLATE = "task.template"
"""The field of mistakes that a chat template makes."""
RESULTS = {text_input.BATCH: 1, text_input.IDS: 2}


class TextTab(TokenizerTab):
    """The text above its tokens, with options and the selected token beside them."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._tasks: list[TaskEntry] = []
        self._whole: TokenTable | None = None
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.ask)
        self._build()
        self._make_questions()
        self._connect()

    # Building

    def _build(self) -> None:
        self.banner = Banner(self)
        self.code = CodeQuestion(self._context, self.banner, self)
        self.code.agreed.connect(self.ask)
        self._split = RememberedSplitter("text", Qt.Orientation.Vertical, self)
        self.input, answer = TextInput(self._split), self._answer(self._split)
        self._split.hold((self.input, answer), (1, 3), (150, 420))
        column = vbox(self.banner, spacing=14, parent=self)
        row = hbox((self._split, 1), self._beside(), spacing=14)
        column.addLayout(row, 1)
        # What other pages and scripts know this tab by.
        self.text, self.view, self.ids, self.counts = self.input.text, self.tokens.view, self.tokens.ids, self.tokens.counts  # fmt: skip

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a small window, reduce the chips, so that their words fit."""
        super().resizeEvent(event)
        for group in (self.input.modes, self.tokens.chips):
            set_narrow(group, event.size().width() < NARROW)

    def _beside(self) -> QWidget:
        holder = QWidget(self)  # a splitter forgets its fixed width
        holder.setFixedWidth(SIDE_WIDTH)
        split = RememberedSplitter("text-side", Qt.Orientation.Vertical, holder)
        self.token, self.options = TokenCard(split), OptionsCard(split)
        split.hold((self.token, self.options), (1, 3), (236, 380))
        vbox(split, parent=holder)
        return holder

    def _answer(self, parent: QWidget) -> QWidget:
        holder = QWidget(parent)
        self.working = WorkingRow(lambda: any(one.open for one in self._questions if one is not self._steps))
        self.working.stop.clicked.connect(self.stop)
        self.results = QStackedWidget(holder)
        self.tokens, self.batch, decoded = TokensCard(self.results), BatchCard(self.results), Card(tr("As text"))
        self.decoded = DecodedView(decoded)
        decoded.add_all((self.decoded, 100), 1)
        for card in (self.tokens, self.batch, decoded):
            self.results.addWidget(card)
        vbox(self.working, (self.results, 1), spacing=8, parent=holder)
        return holder

    def _connect(self) -> None:
        self.input.changed.connect(self._on_typed)
        self.input.mode_changed.connect(self._on_mode)
        self.input.refused.connect(lambda sentence: self.message.emit("error", sentence))
        self.options.changed.connect(self._on_options)
        self.options.run_requested.connect(self._hand_over)
        self.tokens.message.connect(self.message)
        self.batch.message.connect(self.message)
        self.tokens.view_changed.connect(self._ask_steps)
        self.tokens.part_requested.connect(self._show_part)
        self._link = SelectionLink(self.input, self.tokens, self.token)

    def _make_questions(self) -> None:
        def ask(query: str, on_answer: Any, on_error: Any) -> LatestQuestion:
            return LatestQuestion(self._context.client, query, on_answer, on_error, self.working.show_progress)

        steps = self.tokens.steps
        self._tokens = ask("tokenize", self._on_tokens, self._on_mistake)
        self._steps = ask("tokenizer_steps", steps.show_steps, lambda mistake: steps.say(mistake.message))
        self._batch = ask("tokenize_batch", self._on_batch, self._on_mistake)
        self._ids = IdsQuestion(self._context.client, self.decoded, self._end_work, self.working.show_progress)
        self._describe = ask("describe_tokenizer", self._on_description, lambda _: self.options.show_nothing())
        self._questions = (self._tokens, self._steps, self._batch, *self._ids.questions)

    # What the page asks for

    def _on_tokenizer(self) -> None:
        """Show the text as this tokenizer splits it."""
        self._describe.ask({"tokenizer": self.tokenizer})
        if not len(self.tokens.table):
            self.counts.setText(tr("Opening the tokenizer…"))
        self.ask()

    def on_shown(self) -> None:
        """The text stays until it is changed; what a run takes over depends on its task."""
        if not self._tasks:
            self._context.client.ask("catalog", {}, self._on_catalog, lambda mistake: None)

    def _on_catalog(self, catalog: Catalog) -> None:
        self._tasks = catalog.tasks

    def _hand_over(self) -> None:
        """Make the options the run's as far as it has them, and say what it decides by itself."""
        self.draft_wanted.emit()
        found = run_handover.handover(self.options.options(), run_handover.chosen_task(self._tasks, self._draft))
        rest = " ".join(found.left)
        if not found.settings:
            self.message.emit("info", tr("Your run has none of these settings. {rest}", rest=rest))
            return
        self.settings_chosen.emit(found.settings)
        taken_over = run_handover.taken_over(found.settings)
        said = tr("Your run now uses {taken_over}. {rest}", taken_over=taken_over, rest=rest)
        self.message.emit("success", said.rstrip())

    def open_file(self, path: str) -> None:
        """Show the tokens of a text file."""
        self.input.open_file(path)

    # Questions

    def _on_typed(self) -> None:
        if self.input.length() <= AT_ONCE:
            self.ask()
        else:
            self._calm.start()

    def _on_mode(self) -> None:
        mode = self.input.mode()
        self.results.setCurrentIndex(RESULTS.get(mode, 0))
        self.options.set_mode(is_pair=mode == text_input.PAIR, is_chat=mode == text_input.CHAT)
        upper, lower = self._split.sizes()
        if mode == text_input.CHAT and upper < ROOM_OF_CHAT:
            self._split.setSizes([ROOM_OF_CHAT, upper + lower - ROOM_OF_CHAT])
        self.token.show_nothing()
        self.tokens.forget_part()
        self.ask()

    def _on_options(self) -> None:
        self.tokens.set_cost(self.options.cost())
        self.ask()

    def ask(self) -> None:
        """Query the current input with the current options."""
        self._calm.stop()
        if not self.tokenizer:
            return
        mode = self.input.mode()
        self._stop_other_file()
        self.working.begin()
        if mode == text_input.BATCH:
            self._ignore_all_but(self._batch)
            self._batch.ask(self.options.options().batch_question(self.tokenizer, self.input.texts()))
        elif mode == text_input.IDS:
            self._ignore_all_but(*self._ids.questions)
            about = {"tokenizer": self.tokenizer, "options": self.options.options().construction}
            self._ids.ask(self.input.ids.toPlainText(), about)
        else:
            self._ignore_all_but(self._tokens, self._steps)
            self._tokens.ask(tokenize_arguments(self.input, self.options.options(), self.tokenizer))
            self._ask_steps()

    def _stop_other_file(self) -> None:
        """Stop a large file's query, which takes long, when it is closed or another one is open."""
        is_file = self.input.mode() == text_input.FILE and self.input.pasted is None
        wanted = str(self.input.path) if is_file else None
        if self._tokens.arguments.get("file", wanted) != wanted:
            self._tokens.stop()

    def _ask_steps(self) -> None:
        if self.tokens.view_shown() != tokens_card.STEPS or not self.tokenizer:
            return
        self.tokens.offer_parts(*parts_of(self.input))
        part, options = self.tokens.chosen_part(), self.options.options()
        question = steps_arguments(self.input, options, self.tokenizer, part)
        if question is None:
            self._steps.ignore()
            self.tokens.steps.say(tr("This is too long to show the steps; paste part of it under “Text”."))
        else:
            self._steps.ask(question)

    def _ignore_all_but(self, *wanted: LatestQuestion) -> None:
        """Ignore answers about earlier input, which would overwrite the current results."""
        for question in self._questions:
            if question not in wanted:
                question.ignore()

    def stop(self) -> None:
        """Stop the running query; what is shown stays."""
        for question in self._questions:
            question.stop()
        self.working.end()
        if self.input.mode() == text_input.FILE:
            self.tokens.show_nothing(tr("Stopped."))

    # Answers

    def _on_tokens(self, answer: Any) -> None:
        self.working.end()
        self.options.template.clear_mistake()
        self._whole = token_table(answer)
        self.banner.show_message("info", thin(" ".join(self._whole.answer.notes)))
        self.code.hide()
        self._show_part(0)

    def _on_batch(self, grid: TokenGrid) -> None:
        self._end_work()
        self.batch.show_grid(grid)

    def _end_work(self) -> None:
        self.working.end()
        self.banner.clear()

    def _show_part(self, first: int) -> None:
        if self._whole is None:
            return
        try:
            shown = part_of(self._whole, first)
        except OSError as error:
            self._on_mistake(ErrorReply(text_file.refusal(Path(self._whole.answer.file), error)))
            return
        self.tokens.show_table(shown, self._whole)
        self.token.show_nothing()

    def _on_mistake(self, mistake: ErrorReply) -> None:
        """Clear the tokens: those of another tokenizer would be misleading."""
        self.working.end()
        self._whole = None
        is_of_template, said = mistake.field == TEMPLATE, formatting.sentence(mistake.message, mistake.field)
        self.tokens.show_nothing(said if is_of_template else "")
        self.tokens.steps.say(tr("There are no tokens, so there are no steps."))
        self.batch.show_grid(TokenGrid())
        self.token.show_nothing()
        if is_of_template:  # said beside what is being written, which a banner would move at every key press
            self.banner.clear()
            self.options.template.show_mistake(said, mistake.line)
        else:
            self.banner.show_message("error", said)
        self.code.show_consent(self.tokenizer, mistake)

    def _on_description(self, description: TokenizerDescription) -> None:
        options = self.options.options()
        self.options.show_tokenizer(description)
        if self.options.options() != options:  # this tokenizer refuses a switch of the one before
            self.ask()
        # Now, and not when the first long text is waited for.
        QTimer.singleShot(0, self, warm_up)


def tokenize_arguments(source: TextInput, options: TextOptions, tokenizer: str) -> dict[str, Any]:
    """Arguments of `tokenize`."""
    mode = source.mode()
    if mode == FILE:
        given = {"file": str(source.path)} if source.pasted is None else {"text": source.pasted}
        return options.without_limits().question(tokenizer, **given)
    if mode == CHAT:
        messages = tokenizer_input.messages_of(source.chat.messages())
        prompt = source.chat.generation_prompt.isChecked()
        return options.question(tokenizer, messages=messages, generation_prompt=prompt)
    if mode == WORDS:
        return options.question(tokenizer, text=text_of(source.words), pre_split=True)
    pair = text_of(source.second) if mode == PAIR else None
    return options.question(tokenizer, text=text_of(source.text), pair=pair)


def steps_arguments(source: TextInput, options: TextOptions, tokenizer: str, part: int | None) -> dict[str, Any] | None:
    """Arguments of `tokenizer_steps`, for all of the input or a part of it; None if it has no steps."""
    if source.mode() not in (TEXT, PAIR, WORDS, CHAT):
        return None
    arguments = tokenize_arguments(source, options.without_limits(), tokenizer)
    return arguments if part is None else {**arguments, "part": part}


def parts_of(source: TextInput) -> tuple[str, list[str]]:
    """The display text for the whole input (empty if there is none) and for its parts."""
    mode = source.mode()
    if mode == CHAT:
        return tr("The whole chat"), tokenizer_input.message_titles(source.chat.messages())
    if mode == WORDS:
        return tr("All words"), tokenizer_input.word_titles(text_of(source.words))
    return "", tokenizer_input.TEXT_TITLES if mode == PAIR else []


class SelectionLink:
    """Connects the editor, the tokens and the card of one token."""

    def __init__(self, source: TextInput, tokens: TokensCard, token: TokenCard) -> None:
        self._source, self._tokens, self._token = source, tokens, token
        self._view = tokens.view
        source.selected.connect(self._on_text_selected)
        self._view.token_hovered.connect(self._on_hovered)
        self._view.token_selected.connect(self._on_token)
        self._view.selection_changed.connect(self._on_tokens_selected)

    def _on_hovered(self, index: int) -> None:
        self._on_token(index if index >= 0 else self._view.current())

    def _on_token(self, index: int) -> None:
        table = self._tokens.table
        if not 0 <= index < len(table):
            self._token.show_nothing()
            return
        self._token.show_token(table, index)
        spoken = tr(
            "Token {first}: {shown_text}, id {id}",
            first=table.first + index + 1,
            shown_text=self._view.shown_text(index),
            id=table.piece(index).id,
        )
        self._view.setAccessibleDescription(spoken)

    def _on_tokens_selected(self, first: int, last: int) -> None:
        table = self._tokens.table
        if first == last or last > len(table):
            return
        sequence = int(table.columns["sequence"][self._view.current()])
        own = np.flatnonzero(table.columns["sequence"][first:last] == sequence) + first
        if sequence >= 0 and len(own):
            begin, end = int(table.columns["start"][own].min()), int(table.columns["end"][own].max())
            self._source.show_selection(sequence, table.begin + begin, table.begin + end)

    def _on_text_selected(self, sequence: int, begin: int, end: int) -> None:
        columns = self._tokens.whole.columns
        found = np.flatnonzero((columns["sequence"] == sequence) & (columns["start"] < end) & (columns["end"] > begin))
        if begin == end or not len(found):
            self._view.select(0, 0)
            return
        found = found[columns["window"][found] == columns["window"][found[0]]]
        first = self._tokens.show_token(int(found[0]))
        self._view.select(first, min(first + int(found[-1] - found[0]) + 1, len(self._tokens.table)))
        self._on_token(first)
