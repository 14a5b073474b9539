"""Owns what is told of one token, and of a text's tokens as a whole, as words."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core import invisible
from app.core.token_boxes import LONGEST, shortened
from app.core.token_table import TokenTable
from app.core.wording import count, grouped
from backend.contract.tokens import TokenPiece, Tokens


@dataclass(frozen=True)
class Fact:
    """A name and its value; `hint` explains the name."""

    name: str
    value: str
    hint: str = ""


def facts_of(table: TokenTable, index: int, drawing: str = "") -> list[Fact]:
    """Everything that is known of a token, most asked for first; `drawing` is what hinders it from being drawn."""
    at = {name: int(values[index]) for name, values in table.columns.items()}
    piece, text = table.piece(index), table.text(index)
    facts = [
        Fact("Id", str(piece.id)),
        Fact("Piece", piece.piece, "As it stands in the vocabulary"),
        Fact("Text", f"“{invisible.visible(shortened(text))}”" if at["end"] > at["start"] else "none"),
        Fact(
            "Characters",
            _span(at["start"], at["end"], table.begin),
            "Places in the text, counted in code points from 0",
        ),
        Fact("Bytes", _bytes(table, index), "Places in the text as UTF-8, and the bytes themselves"),
        Fact("Word", str(at["word"]) if at["word"] >= 0 else "none", "As the pre-tokenizer counts words, from 0"),
        Fact("Kind", _kind(at, piece)),
        Fact("Type id", str(at["type"]), "token_type_ids: which of two texts the model takes it for"),
        Fact("Attention", str(at["mask"]), "attention_mask: 0 is not looked at"),
        *_score(piece),
    ]
    if table.answer.windows > 1:
        facts.append(Fact("Window", f"{at['window'] + 1} of {table.answer.windows}"))
    if drawing:
        facts.append(Fact("Drawing", drawing, "What the fonts of this machine lack"))
    names = invisible.names_of(text[:LONGEST])
    return [*facts, Fact("Unseen", "\n".join(names), "Characters that have no look of their own")] if names else facts


def hint_of(table: TokenTable, index: int) -> str:
    """What stands in the tooltip: piece and id, bytes where the piece is not its text, names of the unseen."""
    piece = table.piece(index)
    lines = [f"{piece.piece}   {piece.id}"]
    if not table.text(index).isascii() or table.columns["partial"][index]:
        lines.append(_bytes(table, index))
    return "\n".join([*lines, *invisible.names_of(table.text(index)[:LONGEST])])


def _span(start: int, end: int, begin: int) -> str:
    return f"{begin + start}–{begin + end}" if end > start else "none"


def _bytes(table: TokenTable, index: int) -> str:
    start, end = (int(table.columns[name][index]) for name in ("byte_start", "byte_end"))
    if end <= start:
        return "none"
    own = table.raw(index)
    shown = own[:16].hex(" ").upper()
    return f"{table.byte_begin + start}–{table.byte_begin + end}   {shown}{' …' if len(own) > 16 else ''}"


def _kind(at: dict[str, int], piece: TokenPiece) -> str:
    kinds = []
    if at["mask"] == 0:
        kinds.append("padding")
    if piece.special:
        kinds.append("special")
    if piece.unknown:
        kinds.append("unknown")
    if at["partial"]:
        kinds.append("part of a character")
    if at["sequence"] < 0 and not kinds:
        kinds.append("added")
    return ", ".join(kinds) or "usual"


def _score(piece: TokenPiece) -> list[Fact]:
    found = []
    if piece.rank is not None:
        found.append(
            Fact("Merge rank", grouped(piece.rank), "Of the first merge that makes this piece; 0 is merged first")
        )
    if piece.log_probability is not None:
        found.append(Fact("Log-probability", f"{piece.log_probability:.3f}", "Natural logarithm"))
    return found


def counts_of(answer: Tokens) -> list[Fact]:
    """The numbers below the tokens."""
    tokens = answer.tokens
    found = [
        Fact("", count(tokens, "token")),
        Fact("", count(answer.characters, "character")),
        Fact("", count(answer.words, "word")),
    ]
    text_tokens = answer.text_tokens or tokens
    if text_tokens and answer.characters:
        found.append(Fact("", f"{answer.characters / text_tokens:.2f} characters per token"))
        if answer.words:
            found.append(Fact("", f"{answer.words / text_tokens:.2f} words per token"))
    found.append(Fact("", f"{grouped(answer.unknown)} unknown"))
    if answer.byte_fallback and text_tokens:
        found.append(Fact("", f"{answer.byte_fallback / text_tokens:.1%} byte fallback"))
    if answer.partial and answer.partial != answer.byte_fallback:
        found.append(Fact("", f"{grouped(answer.partial)} hold part of a character"))
    if answer.padding:
        found.append(Fact("", f"{grouped(answer.padding)} padding"))
    if answer.windows > 1:
        found.append(Fact("", f"{grouped(answer.windows)} windows"))
    if answer.left_out:
        found.append(Fact("", f"{count(answer.left_out, 'token')} cut off"))
    return found


def counts_line(answer: Tokens) -> str:
    """`408 tokens · 1 862 characters · 4.56 characters per token · 0 unknown`."""
    return " · ".join(fact.value for fact in counts_of(answer))


def against_limit(tokens: int, limit: int | None) -> tuple[str, str]:
    """The share of a limit as words, and the kind of pill that says it; empty where there is no limit."""
    if not limit:
        return "", "neutral"
    if tokens > limit:
        return f"{count(tokens - limit, 'token')} over {grouped(limit)}", "danger"
    share = tokens / limit
    return f"{share:.0%} of {grouped(limit)}", "warning" if share > 0.9 else "success"


def round_trip(answer: Tokens) -> tuple[str, str]:
    """Whether decoding gives the text back, as a sentence and the role of its label; empty where it was not compared."""
    back = answer.round_trip
    if back.skipped:
        return "", "faint"
    if back.same:
        return "Decodes to exactly the same text.", "faint"
    before, after = invisible.visible(back.text_part), invisible.visible(back.decoded_part)
    return f"Decodes differently from character {grouped(back.place)} on: “{before}” becomes “{after}”", "warning"


def ids_line(ids: Sequence[int], most: int) -> str:
    """Ids as people paste them into code, shortened."""
    shown = ", ".join(map(str, ids[:most]))
    left = len(ids) - most
    return f"{shown}, … and {left:,} more" if left > 0 else shown
