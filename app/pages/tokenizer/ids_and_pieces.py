"""Ids and pieces as people write them, and what they stand for."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtWidgets import QWidget

from app.core.i18n import tr, trn
from app.core.text.invisible_characters import visible
from app.services.backend_client import BackendClient, OnProgress
from app.services.latest_question import LatestQuestion
from app.widgets.text.marked_text import MarkedText, TextRun
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.safe_text import parse_json
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText

EMPTY = tr("Enter IDs such as 101, 7592, 102, or pieces such as un ##believ ##able.")
_MISSING = re.compile(r"(⟨no (?:token|piece) [^⟩]*⟩)")
_VARIANTS = (
    (tr("With special tokens"), "with_special"),
    (tr("Without special tokens"), "without_special"),
    (tr("Spaces cleaned up"), "cleaned"),
)
MAX_ROWS = 200
MAX_PIECES = 5000
"""Pieces of all lists together; drawing more would stop the window."""


class DecodedView(MarkedText):
    """Selectable text; unknown ids and pieces are outlined."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Decoded text"), fills=True, parent=parent)

    def show_decoded(self, answer: Decoded) -> None:
        """One list of ids or several."""
        several = len(answer.rows) > 1
        runs: list[TextRun] = []
        room = MAX_PIECES
        shown = 0
        for number, row in enumerate(answer.rows[:MAX_ROWS]):
            if room <= 0:
                break
            runs += _row(row, number, several, room)
            room -= len(row.pieces)
            shown += 1
        left = len(answer.rows) - shown
        if left > 0:
            runs.append(TextRun(tr("and {left:,} more lists", left=left), ink="muted"))
        self.show_pieces(runs)

    def show_pieces_as_text(self, answer: PiecesAsText) -> None:
        """A list of pieces."""
        known = trn("{count} piece", "{count} pieces", len(answer.ids))
        wrong = tr(" · {number} not in the vocabulary", number=len(answer.unknown)) if answer.unknown else ""
        ids = ", ".join("–" if one < 0 else str(one) for one in answer.ids)
        self.show_pieces([*_head(f"{known}{wrong}"), *_mark_runs(answer.text), *_head(tr("\n\nIDs")), TextRun(ids)])

    def say(self, sentence: str) -> None:
        """Show a sentence instead of text."""
        self.show_text(sentence, "muted")


class IdsQuestion:
    """Asks for the text of ids, or the ids of pieces, and shows the answer in `view`; `ended` is called with it."""

    def __init__(
        self,
        client: BackendClient,
        view: DecodedView,
        ended: Callable[[], None] = lambda: None,
        on_progress: OnProgress | None = None,
    ) -> None:
        def ask(query: str, show: Callable[[Any], None]) -> LatestQuestion:
            def on_answer(answer: Any) -> None:
                ended()
                show(answer)

            return LatestQuestion(client, query, on_answer, self._on_mistake, on_progress, parent=view)

        self._view, self._ended = view, ended
        self._decode = ask("decode", view.show_decoded)
        self._pieces = ask("pieces_to_text", view.show_pieces_as_text)
        self.questions = (self._decode, self._pieces)

    def ask(self, text: str, about: Mapping[str, Any]) -> None:
        """Of this text, with the tokenizer in `about`."""
        written = read_lists(text)
        for question in self.questions:
            question.ignore()
        if written.problem or written.nothing:
            self._ended()
            self._view.say(written.problem or EMPTY)
        elif written.ids:
            self._decode.ask({**about, "ids": written.ids})
        else:
            self._pieces.ask({**about, "pieces": [piece for row in written.pieces for piece in row]})

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._ended()
        self._view.say(mistake.message)


def _row(row: DecodedRow, number: int, several: bool, room: int) -> Iterator[TextRun]:
    """What a list stands for, with the first `room` of its pieces."""
    title = f"{number + 1}. " if several else ""
    wrong = tr(" · {number:,} not in the vocabulary", number=len(row.missing)) if row.missing else ""
    yield from _head(f"{title}{trn('{count} ID', '{count} IDs', len(row.pieces))}{wrong}")
    if several:
        yield from _mark_runs(row.text)
        yield TextRun("\n")
    else:
        for words, name in _VARIANTS:
            yield from _head(f"\n{words}")
            yield from _mark_runs(getattr(row, name))
            yield TextRun("\n")
        yield from _head(tr("\nPieces"))
    missing = set(row.missing)
    for place, piece in enumerate(row.pieces[:room]):
        is_missing = place in missing
        yield TextRun(visible(piece) if piece else "?", f"token_{place % 6}", outline="danger" if is_missing else "", ink="token_text")  # fmt: skip
        yield TextRun(" ")
    if len(row.pieces) > room:
        yield TextRun("…", ink="muted")
    yield TextRun("\n\n" if several else "")


def _head(words: str) -> list[TextRun]:
    return [TextRun(f"{words}\n", ink="muted")]


def _mark_runs(text: str) -> Iterator[TextRun]:
    for part in _MISSING.split(text):
        if part:
            yield TextRun(part, outline="danger", ink="danger") if _MISSING.fullmatch(part) else TextRun(part)


# What is written

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Written:
    """Lists of ids or lists of pieces, or why the text is neither."""

    ids: list[list[int]]
    pieces: list[list[str]]
    problem: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the text is empty."""
        return not self.ids and not self.pieces and not self.problem


def read_lists(text: str) -> Written:
    """Numbers are ids and words are pieces; lists may be JSON, Python, or separated by spaces or commas."""
    whole = _json(text)
    rows = whole if whole is not None else [found for line in text.splitlines() if (found := _line(line))]
    rows = [row for row in rows if row]
    if all(isinstance(one, int) for row in rows for one in row):
        return _ids([[one for one in row if isinstance(one, int)] for row in rows])
    return Written([], [[str(one) for one in row] for row in rows])


def _ids(rows: list[list[int]]) -> Written:
    wrong = next((one for row in rows for one in row if not 0 <= one <= LARGEST), None)
    if wrong is not None:
        return Written([], [], tr("{wrong} is not an ID; IDs are whole numbers starting at 0.", wrong=wrong))
    return Written(rows, [])


def _json(text: str) -> list[list[int | str]] | None:
    """A JSON list, or a list of lists, over any number of lines."""
    try:
        found = parse_json(text)
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    rows = found if any(isinstance(one, list) for one in found) else [found]
    return [[_one(item) for item in row] for row in rows if isinstance(row, list)]


def _one(item: object) -> int | str:
    return item if isinstance(item, int) and not isinstance(item, bool) else str(item)


def _line(line: str) -> list[int | str]:
    as_list = _json(line.strip().rstrip(","))
    if as_list is not None:
        return as_list[0] if as_list else []
    bare = re.sub(r"^\s*[\[(]|[\])]\s*,?\s*$", "", line) if re.fullmatch(r"[\s\d,;\[\]()-]*", line) else line
    if re.fullmatch(r"[\s\d,;-]*", bare):
        return [int(word) for word in re.findall(r"-?\d+", bare)]
    if re.match(r"\s*\[\s*['\"]", line):  # a list as Python prints it
        return [_unquote(word) for word in re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", line)]
    return list(line.split())


def _unquote(word: str) -> str:
    return word[1:-1].replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")
