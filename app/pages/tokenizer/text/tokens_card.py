"""The coloured tokens of a text, their ids and steps, and everything about the selected one."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr, trn
from app.core.text import token_facts, tokenizer_input
from app.core.text.shown_tokens import tokens_of
from app.core.text.token_facts import Fact, facts_of
from app.core.text.token_table import SHOWN_AT_ONCE, TokenTable, no_tokens
from app.pages.tokenizer.text.steps_view import StepsView
from app.widgets.boxes import hbox, holder, scroll_area, stack, vbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from app.widgets.pill import Pill
from app.widgets.text import glyphs
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.token_view import TokenView
from backend.contract.tokens.tokens import Tokens

NO_TOKEN_CHOSEN = tr("Click a token, or move through them with the arrow keys.")

TOKENS, IDS, STEPS = range(3)
SHOWN_IDS, COPIED_IDS = 2_000, 100_000
"""Ids shown as text, and those that are copied; of more, only the part that is shown."""


class TokensCard(Card):
    """Shows a table of tokens; `part_requested` requests another stretch of a long one."""

    message = Signal(str, str)
    view_changed = Signal()
    part_requested = Signal(int)
    """The user asked for the page that starts at this token."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, spacing=8)
        self.table = self.whole = no_tokens()
        """The shown tokens, and those that they are part of."""
        self._answer = Tokens()
        self._cost: int | None = None
        self._looked_at = -1
        self.chips, row = chips([tr("Tokens"), tr("IDs"), tr("Pipeline")], self.show_view)
        self.whitespace = QCheckBox(tr("Show spaces"))
        self.whitespace.setToolTip(tr("Spaces as dots, line breaks as arrows, other invisible characters by name"))
        self.whitespace.setChecked(True)
        self.copy_button = IconToolButton("copy", tr("Copy all IDs"), clicked=self.copy_ids)
        name = tr("What to show the steps for")
        self.part_box = QuietComboBox(name=name, hint=name, activated=self.view_changed.emit)
        self.part_box.setMaximumWidth(260)
        self.part_box.setMinimumContentsLength(18)
        self.part_box.hide()
        row.setSpacing(4)
        top = hbox(row, 1, self.part_box, self.whitespace, self.copy_button)
        self.view = TokenView()
        self.view.hint = self._hint
        self.whitespace.toggled.connect(self.view.set_whitespace_visible)
        self.ids = QPlainTextEdit(readOnly=True)
        self.ids.setAccessibleName(tr("IDs"))
        theme.role(self.ids, "mono")
        self.steps = StepsView()
        self.pages = stack(self.view, self.ids, self.steps)
        self.add_all(top, (self.pages, 1), self._pager(), self._numbers())

    def _pager(self) -> QHBoxLayout:
        def turn(tokens: int) -> None:
            self.part_requested.emit(max(0, self.table.first + tokens))

        self.before = IconToolButton("chevron-up", tr("Previous tokens"), clicked=lambda: turn(-SHOWN_AT_ONCE))
        self.after = IconToolButton("chevron-down", tr("Next tokens"), clicked=lambda: turn(SHOWN_AT_ONCE))
        self.part = label("", "faint")
        for widget in (self.before, self.after, self.part):
            widget.hide()
        return hbox(self.before, self.after, self.part, 1)

    def _numbers(self) -> QVBoxLayout:
        self.counts = label("", "muted", wrap=True)
        self.back, self.limit = ElidedLabel("", "faint"), Pill()
        self.limit.setToolTip(
            tr("Tokens (in the longest window) compared with the model's limit, or with the one under “Token limit”")
        )
        self.limit.hide()
        return vbox(self.counts, hbox((self.back, 1), self.limit, spacing=12), spacing=4)

    # What is shown

    def show_view(self, place: int) -> None:
        """TOKENS, IDS or STEPS."""
        self.chips.button(place).setChecked(True)
        self.pages.setCurrentIndex(place)
        self.whitespace.setVisible(place == TOKENS)
        self.part_box.setVisible(place == STEPS and self.part_box.count() > 1)
        self._looked_at = self.view.current() if place == STEPS else -1
        self._write_ids()
        self.view_changed.emit()

    def view_shown(self) -> int:
        """TOKENS, IDS or STEPS."""
        return self.pages.currentIndex()

    def offer_parts(self, whole: str, parts: list[str]) -> None:
        """Offer what the steps can be shown for: `whole` (unless empty) and parts; the choice is kept if possible."""
        offered = [(words, number) for number, words in enumerate(parts)]
        offered = [(whole, None), *offered] if whole else offered
        if [self.part_box.itemText(place) for place in range(self.part_box.count())] != [one for one, _ in offered]:
            self.part_box.set_items(offered, self.chosen_part())
        if self._looked_at >= 0:  # the pipeline was opened while a token was chosen
            part = tokenizer_input.part_of_token(self.table, self._looked_at)
            self.part_box.setCurrentIndex(max(0, self.part_box.findData(part)))
            self._looked_at = -1
        self.part_box.setVisible(self.view_shown() == STEPS and len(offered) > 1)

    def chosen_part(self) -> int | None:
        """The part whose steps are shown; None for the whole."""
        return self.part_box.currentData()

    def forget_part(self) -> None:
        """Reset to the whole for new input."""
        self.part_box.clear()

    def show_table(self, table: TokenTable, whole: TokenTable) -> None:
        """Show these tokens, which are all of `whole` or part of it."""
        self.table, self.whole, self._answer = table, whole, table.answer
        self.view.show_tokens(*tokens_of(table))
        is_part = len(whole) > len(table)
        for widget in (self.before, self.after, self.part):
            widget.setVisible(is_part)
        copied = tr("Copy these IDs") if len(whole) > COPIED_IDS else tr("Copy all IDs")
        self.copy_button.setToolTip(copied)
        self.copy_button.setAccessibleName(copied)
        if is_part:
            last = table.first + len(table)
            self.part.setText(
                tr("Tokens {first:,} to {last:,} of {whole:,}", first=table.first + 1, last=last, whole=len(whole))
            )
            self.before.setEnabled(table.first > 0)
            self.after.setEnabled(last < len(whole))
        self._write_ids()
        self._write_numbers()

    def show_nothing(self, words: str = "") -> None:
        """Show no tokens; `words` say why."""
        self.show_table(no_tokens(), no_tokens())
        self.counts.setText(words)

    def show_token(self, token: int) -> int:
        """Show the part with this token of the whole; returns its place there."""
        if not self.table.first <= token < self.table.first + len(self.table):
            self.part_requested.emit(token // SHOWN_AT_ONCE * SHOWN_AT_ONCE)
        return token - self.table.first

    def set_cost(self, limit: int | None) -> None:
        """Compare with this number of tokens, None for the model's limit."""
        self._cost = limit
        self._write_limit()

    def _write_ids(self) -> None:
        if self.view_shown() == IDS:
            self.ids.setPlainText(token_facts.ids_line(self.table.ids.tolist(), SHOWN_IDS))

    def _write_numbers(self) -> None:
        self.counts.setText(token_facts.counts_line(self._answer))
        words, role = token_facts.round_trip(self._answer)
        self.back.setText(words)
        theme.role(self.back, role)
        self._write_limit()

    def _write_limit(self) -> None:
        words, kind = token_facts.against_limit(self.table.longest_window, self._cost or self._answer.limit)
        self.limit.set(words, kind)
        self.limit.setVisible(bool(words) and self._answer.tokens > 0)

    def _hint(self, index: int) -> str:
        if index >= len(self.table):
            return ""
        drawing = glyphs.missing_glyphs(self.table.text(index))
        return "\n".join(filter(None, (token_facts.hint_of(self.table, index), drawing)))

    def copy_ids(self) -> None:
        """Copy the ids to the clipboard."""
        ids = (self.whole if len(self.whole) <= COPIED_IDS else self.table).ids.tolist()
        QGuiApplication.clipboard().setText(", ".join(map(str, ids)))
        self.message.emit("success", tr("Copied {count}.", count=trn("{count} ID", "{count} IDs", len(ids))))


class TokenCard(Card):
    """One name and value per line; values can be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Token"), parent, spacing=4)
        self.place = ElidedLabel("", "faint")
        self.place.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.corner.addWidget(self.place)
        self.nothing = label(NO_TOKEN_CHOSEN, "muted", wrap=True)
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 6, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        self._lines: list[tuple[QLabel, QLabel]] = []
        self._area = scroll_area(holder(self._grid))
        self.add_all(self.nothing, (self._area, 1))
        self.show_nothing()

    def show_nothing(self) -> None:
        """Show that no token is selected."""
        self.place.setText("")
        self._area.hide()
        self.nothing.show()

    def show_token(self, table: TokenTable, index: int) -> None:
        """Show everything about one token of a table."""
        self.nothing.hide()
        self._area.show()
        self.place.setText(
            tr(
                "{first:,} of {tokens:,}",
                first=table.first + index + 1,
                tokens=table.answer.tokens + table.answer.padding,
            )
        )
        facts = facts_of(table, index, glyphs.missing_glyphs(table.text(index)))
        for line, fact in enumerate(facts):
            self._write(line, fact)
        for line, pair in enumerate(self._lines):
            for part in pair:
                part.setVisible(line < len(facts))

    def values(self) -> dict[str, str]:
        """The values shown, by name."""
        return {name.text(): value.text() for name, value in self._lines if not name.isHidden()}

    def _write(self, line: int, fact: Fact) -> None:
        if line == len(self._lines):
            name, value = label("", "caption"), label("", "mono", wrap=True, selectable=True)
            self._grid.addWidget(name, line, 0)
            self._grid.addWidget(value, line, 1)
            self._grid.setRowStretch(line, 0)
            self._grid.setRowStretch(line + 1, 1)
            self._lines.append((name, value))
        name, value = self._lines[line]
        name.setText(fact.name)
        name.setToolTip(fact.hint)
        value.setText(fact.value)
