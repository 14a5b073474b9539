"""The tokens of two to four tokenizers in columns, line by line, with their counts below."""

from itertools import zip_longest

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollBar, QSizePolicy, QWidget

from app import theme
from app.core.formatting import group_digits
from app.core.i18n import tr
from app.widgets.boxes import hbox, keep_room, vbox
from app.widgets.card import label
from app.widgets.text.token_view import LINE, TokenView
from backend.contract.tokens.comparison import MOST, ComparedToken, TextComparison, TextCounts

CALM_MS = 40
"""After the last change of width the lines are brought beside each other again."""


class AlignedTokens(QWidget):
    """Scrolls all columns together."""

    token_shown = Signal(str)
    """What is known of the token under the mouse, or nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._columns: list[list[ComparedToken]] = []
        self._text, self._only_differences = "", True
        self.views: list[TokenView] = []
        self._counts = [label("", "faint", wrap=True) for _ in range(MOST)]
        # One for all: a bar that came and went in a column would change its width, and with it the wrapping.
        self.bar = QScrollBar(Qt.Orientation.Vertical)
        self.bar.setAccessibleName(tr("Scroll all tokens"))
        keep_room(self.bar)
        self.bar.valueChanged.connect(self._scroll)
        self._holders = [self._column(number) for number in range(MOST)]
        row = hbox(*((column, 1) for column in self._holders), self.bar, spacing=14, parent=self)
        self.bar_width = self.bar.sizeHint().width() + row.spacing()
        """What stands to the right of the columns."""
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self._align)

    def _column(self, number: int) -> QWidget:
        view = TokenView()
        view.setAccessibleName(tr("Tokens of tokenizer {number}", number=number + 1))
        for signal in (view.token_hovered, view.token_selected):
            signal.connect(lambda index: self._emit_token(number, index))
        view.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.verticalScrollBar().valueChanged.connect(self._scroll)
        view.verticalScrollBar().rangeChanged.connect(lambda low, high: self._show_range())
        self.views.append(view)
        holder = QFrame()
        theme.role(holder, "card")
        holder.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        vbox((view, 1), self._counts[number], margins=(10, 10, 10, 10), parent=holder)
        return holder

    def show_comparison(self, comparison: TextComparison, text: str) -> None:
        """Show another comparison, from its start."""
        self._text = text
        self._columns = [[] for _ in comparison.counts]
        for token in comparison.tokens:
            self._columns[token.tokenizer].append(token)
        self._empty_columns(len(self._columns), first=len(self._columns))
        for counts, own in zip(self._counts, comparison.counts, strict=False):
            counts.setText(_counts_line(own, comparison))
        for view in self.views:
            view.verticalScrollBar().setValue(0)
        self._show_tokens()

    def show_number(self, number: int) -> None:
        """Show this many empty columns before there is a comparison."""
        self._columns = []
        self._empty_columns(number)
        self._show_range()

    def _empty_columns(self, shown: int, first: int = 0) -> None:
        """Show so many columns, and nothing in those from `first` on."""
        for place, holder in enumerate(self._holders):
            holder.setVisible(place < shown)
            if place >= first:
                self.views[place].set_tokens([])
                self._counts[place].setText("")

    def set_only_differences(self, on: bool) -> None:
        """Set whether tokens that are the same in all columns are grey."""
        self._only_differences = on
        self._show_tokens()

    # Side by side

    def _show_tokens(self) -> None:
        for tokens, view in zip(self._columns, self.views, strict=False):
            quiet = [token.special or (self._only_differences and not token.differs) for token in tokens]
            view.set_tokens([_one_line(token) for token in tokens], quiet, self._gaps(tokens))
        self._align()

    def _gaps(self, tokens: list[ComparedToken]) -> list[str]:
        """The text that no token covers before each, and the line breaks between them: each line is a paragraph."""
        gaps, end, line = [], 0, 0
        for token in tokens:
            covers = token.end > token.start  # an unknown token is special, and stands for a text all the same
            space = self._text[end : token.start].replace("\n", " ") if covers else ""
            gaps.append("\n" * (token.line - line) or space)
            end, line = max(end, token.end) if covers else end, token.line
        return gaps

    def _align(self) -> None:
        """Start every line at the same height in all columns."""
        views = self.views[: len(self._columns)]
        heights = [view.line_counts() for view in views]
        tallest = [max(line) for line in zip_longest(*heights, fillvalue=1)]
        for view, own in zip(views, heights, strict=True):
            view.set_lines_below([most - lines for most, lines in zip(tallest, own, strict=False)])
        self._show_range()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Align again: lines wrap differently at another width."""
        super().resizeEvent(event)
        self._calm.start()

    def _show_range(self) -> None:
        bars = [view.verticalScrollBar() for view in self.views[: max(1, len(self._columns))]]
        longest = max(bars, key=lambda bar: bar.maximum())
        self.bar.setRange(0, longest.maximum())
        self.bar.setPageStep(longest.pageStep())
        self.bar.setSingleStep(LINE)
        self.bar.setVisible(longest.maximum() > 0)

    def _scroll(self, value: int) -> None:
        for bar in (self.bar, *(view.verticalScrollBar() for view in self.views)):
            if bar.value() != value:
                bar.setValue(value)

    def _emit_token(self, number: int, index: int) -> None:
        if number >= len(self._columns) or not 0 <= index < len(self._columns[number]):
            self.token_shown.emit("")
            return
        token = self._columns[number][index]
        where = tr("special") if token.special else tr("characters {start}–{end}", start=token.start, end=token.end)
        alike = (
            "" if token.special else tr(", split differently elsewhere") if token.differs else tr(", the same in all")
        )
        self.token_shown.emit(
            tr("{piece} · ID {id} · {where}{alike}", piece=token.piece, id=token.id, where=where, alike=alike)
        )


def _counts_line(own: TextCounts, comparison: TextComparison) -> str:
    tokens = own.tokens - own.special
    parts = [
        tr("{tokens} tokens", tokens=group_digits(own.tokens)),
        tr("{differing} differ", differing=group_digits(own.differing)),
        tr("{own:.2f} per word", own=tokens / comparison.words) if comparison.words else "",
        tr("{characters:.2f} characters per token", characters=comparison.characters / tokens) if tokens else "",
        tr("{unknown} unknown", unknown=group_digits(own.unknown)) if own.unknown else "",
    ]
    return " · ".join(filter(None, parts))


def _one_line(token: ComparedToken) -> str:
    """On one line: line breaks in the text belong to the columns."""
    return (token.text or token.piece).replace("\n", "⏎")
