"""The options of a tokenizer call: special tokens, truncation, padding; a run can take them over."""

from typing import Any, cast

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QLabel, QWidget

from app.core.formatting import group_digits
from app.core.i18n import thin, tr
from app.core.text.tokenizer_input import TextOptions
from app.pages.tokenizer.text.template_field import TemplateField
from app.widgets.boxes import fill, holder, scroll_area, vbox
from app.widgets.card import Card, label
from app.widgets.forms.inputs import QuietComboBox, QuietSpinBox
from app.widgets.icon_label import IconButton
from backend.contract.tokens.options import Padding, Side, TokenOptions, Truncation
from backend.contract.tokens.tokens import TokenizerDescription

SIDES = ((tr("Tokenizer default"), None), (tr("Left"), "left"), (tr("Right"), "right"))
BEYOND = ((tr("Truncate"), False), (tr("Split into windows"), True))
FILLS = ((tr("None"), ""), (tr("To the longest text"), "longest"), (tr("To the limit"), "max_length"))
CUTS = (
    (tr("The longer one"), "longest_first"),
    (tr("Only the first"), "only_first"),
    (tr("Only the second"), "only_second"),
)
SWITCHES = {
    "add_prefix_space": (
        tr("Space before the text"),
        tr("add_prefix_space: the first word is treated like a word inside the text"),
    ),
    "do_lower_case": (tr("Lowercase"), tr("do_lower_case: the text is lowercased before it is tokenized")),
}
MOST = 1_000_000
NUMBER_WIDTH = 96
"""Pixels of a number, at least."""
ROW = 32


class OptionsCard(Card):
    """`options()` are the chosen ones; a switch is offered if the tokenizer supports it."""

    changed = Signal()
    run_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Options"), parent, spacing=8)
        self._stored = TokenOptions()
        self._own: dict[str, bool] = {}
        self.facts = label("", "faint", wrap=True)
        self.facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.special = _switch(
            tr("Special tokens"),
            tr("Add the special tokens that the model expects around a text, for example [CLS] and [SEP]"),
        )
        self.special.setChecked(True)
        self.switches = {name: _switch(*words) for name, words in SWITCHES.items()}
        self.max_length = _number(tr("no limit"), tr("Max length in tokens, including special tokens"))
        self.cut_side = _choice(SIDES, tr("Which side of a text is truncated"))
        self.beyond = _choice(BEYOND, tr("What happens to the part of a long text beyond the limit"))
        self.stride = _number("", tr("Number of tokens that a window shares with the previous one"))
        self.pair_cut = _choice(CUTS, tr("Which of two texts is truncated"))
        self.padding = _choice(FILLS, tr("The length that texts are padded to"))
        self.padding_side = _choice(SIDES, tr("Which side is padded"))
        self.multiple = _number("any", tr("The padded length is a multiple of this number"))
        self.cost_limit = _number(tr("the model's"), tr("Number of tokens to compare the token count with"))
        self.template = TemplateField()
        self.stored_note = label("", "faint", wrap=True)
        self.stored_button = IconButton(tr("Use them"), "check", "quiet", clicked=self.use_stored)
        hint = tr("Copy the options that runs support to New run, and list those that a run sets itself")
        self.use_button = IconButton(tr("Use in my run"), "bolt", hint=hint, clicked=self.run_requested)
        self._place()
        self._connect()
        self._show_what_applies()

    def _place(self) -> None:
        column = vbox(self.facts, self.special, *self.switches.values(), self.template, spacing=6)
        area = scroll_area(holder(column))
        for box in self.switches.values():
            box.hide()
        self.form = QFormLayout()
        self.form.setVerticalSpacing(6)
        self.form.setHorizontalSpacing(10)
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for words, widget in (
            (tr("Limit"), self.max_length), (tr("Beyond the limit"), self.beyond), (tr("Overlap"), self.stride),
            (tr("Truncate on"), self.cut_side), (tr("In a pair"), self.pair_cut), (tr("Padding"), self.padding),
            (tr("Pad on"), self.padding_side), (tr("Multiple of"), self.multiple), (tr("Token limit"), self.cost_limit),
        ):  # fmt: skip
            title = QLabel(words)
            title.setBuddy(widget)
            title.setToolTip(widget.toolTip())
            title.setMinimumHeight(ROW)
            title.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
            self.form.addRow(title, widget)
        fill(column, (self.form, self.stored_note))
        column.addWidget(self.stored_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        self.add_all((area, 1), self.use_button)
        self.template.hide()
        self.stored_button.hide()

    def _connect(self) -> None:
        for box in (self.special, *self.switches.values()):
            box.toggled.connect(self._on_changed)
        for number in (self.max_length, self.stride, self.multiple, self.cost_limit):
            number.valueChanged.connect(self._on_changed)
        for choice in (self.cut_side, self.beyond, self.pair_cut, self.padding, self.padding_side):
            choice.currentIndexChanged.connect(self._on_changed)
        self.template.changed.connect(self._on_changed)

    # What is chosen

    def options(self) -> TextOptions:
        """The field values; what does not apply keeps its default."""
        limit = self.max_length.value() or None
        windows = bool(self.beyond.currentData()) and limit is not None
        return TextOptions(
            special_tokens=self.special.isChecked() or self._is_chat,
            construction=self._construction(),
            max_length=limit,
            truncation=cast("Truncation", self.pair_cut.currentData()) if limit and self._is_pair else "longest_first",
            truncation_side=cast("Side | None", self.cut_side.currentData()) if limit else None,
            windows=windows,
            stride=self.stride.value() if windows else 0,
            padding=cast("Padding", self.padding.currentData()),
            padding_side=cast("Side | None", self.padding_side.currentData()) if self.padding.currentData() else None,
            pad_to_multiple_of=(self.multiple.value() or None) if self.padding.currentData() else None,
            chat_template=self.template.changed_template() if self._is_chat else None,
        )

    def cost(self) -> int | None:
        """The limit for the cost comparison, None for the model's."""
        return self.cost_limit.value() or None

    def _construction(self) -> dict[str, Any]:
        chosen = {name: box.isChecked() for name, box in self.switches.items() if name in self._own}
        return {name: on for name, on in chosen.items() if on != self._own[name]}

    # What is offered

    def show_tokenizer(self, description: TokenizerDescription) -> None:
        """Offer this tokenizer's options; the user's choices are kept if possible."""
        chosen = self._construction()
        self._own = {name: on for name, on in description.switches.items() if name in self.switches}
        for name, box in self.switches.items():
            with QSignalBlocker(box):
                box.setVisible(name in self._own)
                box.setChecked(bool(chosen.get(name, self._own.get(name))))
        self.facts.setText(facts_line(description))
        self.template.offer(description.chat_template, description.chat_template_is_plain)
        self._stored = description.stored
        self.stored_note.setText(description.stored_truncation)
        self.stored_note.setVisible(bool(description.stored_truncation))
        self.stored_button.setVisible(self._stored != TokenOptions())

    def show_nothing(self) -> None:
        """Show that no tokenizer is open."""
        self._own, self._stored = {}, TokenOptions()
        for widget in (self.stored_note, self.stored_button, *self.switches.values()):
            widget.hide()
        self.facts.setText("")

    def set_mode(self, *, is_pair: bool, is_chat: bool) -> None:
        """Set whether there are two texts, one of which can be exempt from truncation, or messages for a template."""
        self._is_pair, self._is_chat = is_pair, is_chat
        self.template.setVisible(is_chat)
        self.special.setVisible(not is_chat)  # the template writes them
        self._show_what_applies()

    def use_stored(self) -> None:
        """Turn on the options stored in the tokenizer's file."""
        stored = self._stored
        with QSignalBlocker(self):
            self.max_length.setValue(stored.max_length or 0)
            self.multiple.setValue(stored.pad_to_multiple_of or 0)
            for box, value in (
                (self.padding, stored.padding), (self.pair_cut, stored.truncation),
                (self.cut_side, stored.truncation_side), (self.padding_side, stored.padding_side),
            ):  # fmt: skip
                box.setCurrentIndex(box.findData(value))
        self._on_changed()

    _is_pair = _is_chat = False

    def _on_changed(self) -> None:
        self._show_what_applies()
        self.changed.emit()

    def _show_what_applies(self) -> None:
        limit, filled = self.max_length.value() > 0, bool(self.padding.currentData())
        windows = limit and bool(self.beyond.currentData())
        for widget, applies in (
            (self.beyond, limit), (self.stride, windows), (self.cut_side, limit and not windows),
            (self.pair_cut, limit and self._is_pair), (self.padding_side, filled), (self.multiple, filled),
        ):  # fmt: skip
            self.form.setRowVisible(widget, applies)
        self.stride.setMaximum(max(0, self.max_length.value() - 1))
        self.use_button.setEnabled(self.options() != TextOptions())


def facts_line(description: TokenizerDescription) -> str:
    """`WordPiece · 30 522 pieces · reads 512 tokens · fast`."""
    model = description.model or description.tokenizer_class
    words = [
        tr("{model} (byte-level)", model=model) if description.byte_level else model,
        tr("{vocabulary} pieces", vocabulary=group_digits(description.vocabulary)),
    ]
    if description.byte_fallback:
        words.append(tr("byte fallback"))
    words.append(
        tr("reads {limit} tokens", limit=group_digits(description.limit)) if description.limit else tr("no limit")
    )
    return " · ".join([*words, *map(thin, description.notes)]) if description.fast else " · ".join([*words, "slow"])


def _number(nothing: str, hint: str) -> QuietSpinBox:
    box = QuietSpinBox(minimum=0, maximum=MOST, value=0)
    if nothing:
        box.setSpecialValueText(nothing)
    box.setMinimumWidth(NUMBER_WIDTH)
    box.setToolTip(hint)
    box.setAccessibleDescription(hint)
    box.setKeyboardTracking(True)
    box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return box


def _choice(offered: tuple[tuple[str, Any], ...], hint: str) -> QuietComboBox:
    box = QuietComboBox(hint=hint, items=offered)
    box.setAccessibleDescription(hint)
    return box


def _switch(words: str, hint: str) -> QCheckBox:
    box = QCheckBox(words)
    box.setToolTip(hint)
    return box
