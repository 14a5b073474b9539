"""What a view shows of each token: its text, the text before it that no token covers, and a caption above it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.i18n import tr
from app.core.text.token_table import TokenTable

NORMAL, SPECIAL, UNKNOWN = 0, 1, 2
LONGEST, BEGINNING = 400, 60
"""Characters that are shown of one token, and of a longer one."""
_SPACES = ("Ġ", "▁")
"""The prefix of a piece that includes the space before its word."""


@dataclass(slots=True)
class ShownToken:
    """Tokens that share a character are drawn as a group, in which each has only the text that it adds."""

    text: str
    """Its own text, or its piece if it has none."""
    added: str
    """The text without what the tokens before it in its group have shown."""
    gap: str = ""
    """The text before it that no token covers."""
    kind: int = NORMAL
    """NORMAL, SPECIAL or UNKNOWN."""
    is_piece: bool = False
    """Whether it has no text of its own."""
    is_faint: bool = False
    """Whether it is there without counting: padding, or shared with the window before."""
    is_linked: bool = False
    """Whether it shares its characters with the token before."""
    caption: str = ""
    """What stands above it, on a line of its own."""


def tokens_of_texts(
    texts: Sequence[str], specials: Sequence[bool] | None = None, gaps: Sequence[str] | None = None
) -> list[ShownToken]:
    """Consecutive texts, with the untokenized text before each."""
    specials, gaps = specials or [False] * len(texts), gaps or [""] * len(texts)
    return [
        ShownToken(text, text, gap, SPECIAL if special else NORMAL)
        for text, special, gap in zip(texts, specials, gaps, strict=True)
    ]


def shorten(text: str) -> str:
    """The start of a very long text, and how much more there is."""
    return (
        text
        if len(text) <= LONGEST
        else tr("{text}… {number} more characters", text=text[:BEGINNING], number=len(text) - BEGINNING)
    )


def tokens_of(table: TokenTable) -> tuple[list[ShownToken], str]:
    """The tokens of a table, and the text after the last one that no token covers."""
    reader = _Reader(table)
    names = ("piece", "sequence", "start", "end", "window", "mask")
    for row in zip(*(table.columns[name][:].tolist() for name in names), strict=True):
        reader.read(*row)
    rest = reader.place_rest()
    _add_captions(table, reader.shown)
    return reader.shown, rest


class _Reader:
    """Reads tokens one after the other; `reached` is how far each text is covered in the present window."""

    def __init__(self, table: TokenTable) -> None:
        self._table, self._sources = table, table.sources or [""]
        self.shown: list[ShownToken] = []
        self._window = -1
        self._reached: dict[int, int] = {}
        self._last: dict[int, int] = {}
        """The last token of each text in this window."""
        self._before: dict[int, int] = {}
        """How far the windows before have reached."""
        self._sequence, self._start = -1, 0

    def read(self, piece: int, sequence: int, start: int, end: int, window: int, mask: int) -> None:
        """Add a token."""
        if window != self._window:
            self._begin_window(window)
        facts = self._table.answer.pieces[piece]
        kind = UNKNOWN if facts.unknown else SPECIAL if facts.special else NORMAL
        if sequence < 0:
            self.shown.append(ShownToken(facts.piece, facts.piece, "", SPECIAL, True, mask == 0))
            self._sequence = -1
            return
        source, reached = self._sources[sequence], self._reached.get(sequence, start)
        gap = source[reached:start]
        if facts.piece in _SPACES and not source[start:end].isspace():
            end = start  # a space that was put before the text
        elif facts.piece.startswith(_SPACES) and gap.endswith(" ") and end > start:
            start, gap = start - 1, gap[:-1]
        is_piece = end <= start
        is_linked = not is_piece and sequence == self._sequence and start < reached and end > self._start
        text = facts.piece if is_piece else source[start:end]
        added = source[reached:end] if is_linked else text
        is_faint = mask == 0 or end <= self._before.get(sequence, -1)
        self.shown.append(ShownToken(text, added, gap, kind, is_piece, is_faint, is_linked))
        self._sequence, self._start = sequence, start
        self._reached[sequence] = max(reached, end)
        self._last[sequence] = len(self.shown) - 1

    def _begin_window(self, window: int) -> None:
        for sequence, reached in self._reached.items():
            self._before[sequence] = max(reached, self._before.get(sequence, -1))
        is_first = self._window < 0 and not self._table.first
        self._reached = dict.fromkeys(range(len(self._sources)), 0) if is_first else {}
        self._window, self._last, self._sequence = window, {}, -1

    def place_rest(self) -> str:
        """Put text after the last token before the special token that follows, else return it."""
        answer = self._table.answer
        if not self.shown or self._table.first + len(self._table) < answer.tokens + answer.padding:
            return ""
        rest = ""
        for sequence, source in enumerate(self._sources):
            # A text without tokens in a further part has them before it.
            left = source[self._reached.get(sequence, len(source) if self._table.first else 0) :]
            after = self._last.get(sequence, 0) + 1
            if left and after < len(self.shown) and self.shown[after].is_piece:
                self.shown[after].gap = left
            elif sequence == len(self._sources) - 1:
                rest = left
        return rest


def _add_captions(table: TokenTable, shown: list[ShownToken]) -> None:
    """Captions above windows and chat turns, and where the model stops reading."""
    answer, columns = table.answer, table.columns
    if answer.windows > 1:
        windows = columns["window"][:].tolist()
        for number in dict.fromkeys(windows):
            own = [token for token, window in zip(shown, windows, strict=True) if window == number]
            masks = columns["mask"][:][columns["window"][:] == number]
            own[0].caption = _window_caption(number, answer.windows, own, int((masks == 0).sum()))
        return
    for turn in answer.turns:
        own = (columns["sequence"][:] >= 0) & (columns["start"][:] + table.begin >= turn.start)
        if own.any() and turn.end > turn.start:
            shown[int(own.argmax())].caption = turn.role
    beyond = (answer.limit or 0) - table.first
    if answer.limit and 0 < beyond < len(shown):
        shown[beyond].caption = tr(
            "The model reads {limit:,} tokens; anything after that is beyond its limit", limit=answer.limit
        )


def _window_caption(number: int, windows: int, own: list[ShownToken], filled: int) -> str:
    both = sum(token.is_faint for token in own) - filled
    words = tr(" · {both} (dashed) shared with the previous window", both=both) if both else ""
    padding = tr(" · {filled} padding", filled=filled) if filled else ""
    return tr(
        "Window {number} of {windows} · {end} tokens{padding}{words}",
        number=number + 1,
        windows=windows,
        end=len(own),
        padding=padding,
        words=words,
    )
