"""Owns the parts of what is written on the Tokenizer page that can be looked at by themselves: messages, words, texts."""

from collections.abc import Sequence

from app.core.i18n import tr
from app.core.text.token_table import TokenTable

MAX_WORDS = 500
"""Words that are offered one by one; a longer list would be slow to open."""
SHOWN = 32
"""Characters of a message."""
TEXTS = [tr("The first text"), tr("The second text")]


def of_messages(messages: Sequence[tuple[str, str]]) -> list[str]:
    """`2. user: What is a …` for each message."""
    return [f"{number}. {role}: {_shortened(content)}" for number, (role, content) in enumerate(messages, 1)]


def of_words(text: str) -> list[str]:
    """`3. terminal` for each word."""
    return [f"{number}. {_shortened(word)}" for number, word in enumerate(text.split()[:MAX_WORDS], 1)]


def part_of_token(table: TokenTable, index: int) -> int | None:
    """The message, word or text of a pair that a token is of; None where it is of none."""
    if not 0 <= index < len(table):
        return None
    turns, place = table.answer.turns, int(table.columns["start"][index]) + table.begin
    if turns:
        return next((number for number, turn in enumerate(turns) if turn.start <= place < turn.end), None)
    name = "sequence" if len(table.answer.sources) > 1 else "word"
    found = int(table.columns[name][index])
    return found if found >= 0 else None


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN].rstrip()}…"
