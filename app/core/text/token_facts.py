"""Describes one token, and all tokens of a text, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.formatting import group_digits
from app.core.i18n import figure, tr, trn
from app.core.text import invisible_characters
from app.core.text.shown_tokens import LONGEST, shorten
from app.core.text.token_table import TokenTable
from backend.contract.tokens.tokens import TokenPiece, Tokens


@dataclass(frozen=True)
class Fact:
    """A name and its value; `hint` explains the name."""

    name: str
    value: str
    hint: str = ""


def facts_of(table: TokenTable, index: int, drawing: str = "") -> list[Fact]:
    """Everything known about a token, most useful first; `drawing` is why it cannot be drawn."""
    at = {name: int(values[index]) for name, values in table.columns.items()}
    piece, text = table.piece(index), table.text(index)
    has_text = at["end"] > at["start"]
    span = f"{table.begin + at['start']}–{table.begin + at['end']}" if has_text else "none"
    word = str(at["word"]) if at["word"] >= 0 else "none"
    facts = [
        Fact(tr("ID"), str(piece.id)),
        Fact(tr("Piece"), piece.piece, tr("As in the vocabulary")),
        Fact(tr("Text"), f"“{invisible_characters.visible(shorten(text))}”" if has_text else "none"),
        Fact(tr("Characters"), span, tr("Position in the text, in code points starting at 0")),
        Fact(tr("Bytes"), _bytes(table, index), tr("Byte position in the UTF-8 text, and the bytes themselves")),
        Fact(tr("Word"), word, tr("Index of the word from the pre-tokenizer, starting at 0")),
        Fact(tr("Kind"), _kind(at, piece)),
        Fact(tr("Type ID"), str(at["type"]), tr("token_type_ids: which of the two texts the token belongs to")),
        Fact(tr("Attention"), str(at["mask"]), tr("attention_mask: the model ignores tokens with a 0")),
        *_score(piece),
    ]
    if table.answer.windows > 1:
        facts.append(Fact(tr("Window"), tr("{at} of {windows}", at=at["window"] + 1, windows=table.answer.windows)))
    if drawing:
        facts.append(Fact(tr("Missing glyphs"), drawing, tr("Characters that are missing from all installed fonts")))
    names = invisible_characters.names_of(text[:LONGEST])
    return [*facts, Fact(tr("Invisible"), "\n".join(names), tr("Characters that you can't see"))] if names else facts


def hint_of(table: TokenTable, index: int) -> str:
    """The tooltip: piece and id, bytes if the piece is not its text, names of invisible characters."""
    piece = table.piece(index)
    lines = [f"{piece.piece}   {piece.id}"]
    if not table.text(index).isascii() or table.columns["partial"][index]:
        lines.append(_bytes(table, index))
    return "\n".join([*lines, *invisible_characters.names_of(table.text(index)[:LONGEST])])


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
        kinds.append(tr("part of a character"))
    if at["sequence"] < 0 and not kinds:
        kinds.append("added")
    return ", ".join(kinds) or "usual"


def _score(piece: TokenPiece) -> list[Fact]:
    found = []
    if piece.rank is not None:
        hint = tr("Rank of the first merge that produces this piece; rank 0 is merged first")
        found.append(Fact(tr("Merge rank"), group_digits(piece.rank), hint))
    if piece.log_probability is not None:
        found.append(Fact(tr("Log-probability"), figure(piece.log_probability, ".3f"), tr("Natural logarithm")))
    return found


def counts_line(answer: Tokens) -> str:
    """`408 tokens · 1 862 characters · 4.56 characters per token · 0 unknown`."""
    tokens = answer.tokens
    words = [
        trn("{count} token", "{count} tokens", tokens),
        trn("{count} character", "{count} characters", answer.characters),
        trn("{count} word", "{count} words", answer.words),
    ]
    text_tokens = answer.text_tokens or tokens
    if text_tokens and answer.characters:
        words.append(tr("{characters:.2f} characters per token", characters=answer.characters / text_tokens))
        if answer.words:
            words.append(tr("{words:.2f} words per token", words=answer.words / text_tokens))
    words.append(tr("{unknown} unknown", unknown=group_digits(answer.unknown)))
    if answer.byte_fallback and text_tokens:
        words.append(tr("{byte_fallback:.1%} byte fallback", byte_fallback=answer.byte_fallback / text_tokens))
    if answer.partial and answer.partial != answer.byte_fallback:
        words.append(tr("{partial} contain part of a character", partial=group_digits(answer.partial)))
    if answer.padding:
        words.append(tr("{padding} padding", padding=group_digits(answer.padding)))
    if answer.windows > 1:
        words.append(tr("{windows} windows", windows=group_digits(answer.windows)))
    if answer.left_out:
        words.append(tr("{count} truncated", count=trn("{count} token", "{count} tokens", answer.left_out)))
    return " · ".join(words)


def against_limit(tokens: int, limit: int | None) -> tuple[str, str]:
    """The share of a limit in words, and the kind of its pill; empty if there is no limit."""
    if not limit:
        return "", "neutral"
    if tokens > limit:
        return tr(
            "{count} over {limit}",
            count=trn("{count} token", "{count} tokens", tokens - limit),
            limit=group_digits(limit),
        ), "danger"
    share = tokens / limit
    return tr("{share:.0%} of {limit}", share=share, limit=group_digits(limit)), "warning" if share > 0.9 else "success"


def round_trip(answer: Tokens) -> tuple[str, str]:
    """Whether decoding gives the text back, as a sentence and its label's role; empty if it was not compared."""
    back = answer.round_trip
    if back.skipped:
        return "", "faint"
    if back.same:
        return tr("Decodes to exactly the same text."), "faint"
    before, after = invisible_characters.visible(back.text_part), invisible_characters.visible(back.decoded_part)
    return tr(
        "Decodes differently starting at character {place}: “{before}” becomes “{after}”",
        place=group_digits(back.place),
        before=before,
        after=after,
    ), "warning"


def ids_line(ids: Sequence[int], most: int) -> str:
    """Ids formatted for pasting into code, shortened."""
    shown = ", ".join(map(str, ids[:most]))
    left = len(ids) - most
    return tr("{shown}, … and {left:,} more", shown=shown, left=left) if left > 0 else shown
