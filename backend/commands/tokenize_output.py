"""Prints the result of `burnish tokenize`: tables for people, one JSON object for scripts."""

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from backend.commands.screen import ProgressScreen
from backend.contract.tokens.batches import BatchQuestion
from backend.contract.tokens.steps import StepsQuestion
from backend.contract.tokens.tokens import COUNTS, TokenizeQuestion, Tokens
from backend.tokenizers import answers, batch, decoding, tokenize, tokenize_file
from backend.tokenizers.long_text import Stream
from backend.tokenizers.steps import pipeline
from backend.tokenizers.text import File, lines_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WIDEST = 60
_TOLD = (*COUNTS, "limit", "stored_truncation", "notes")


def tokens(
    tokenizer: "PreTrainedTokenizerBase", question: TokenizeQuestion, notes: tuple[str, ...], arguments: Namespace
) -> int:
    """Every token with its position, or only counts."""
    if question.file is not None:
        rest = _stream(tokenizer, question)
        _counts(_add_notes(rest, notes), arguments.json)
        return 0
    table = answers.tokenize_short(tokenizer, question) or tokenize.tokenize(tokenizer, question.text or "", question)
    rest = _add_notes(table.rest, notes)
    if arguments.counts:
        _counts(rest, arguments.json)
    elif arguments.json:
        _print_json(tokenize.as_json(tokenize.Table(table.columns, rest)))
    else:
        _table(table.columns, rest)
        _sentences(rest)
    return 0


def print_decoded(tokenizer: "PreTrainedTokenizerBase", rows: Sequence[Sequence[int]], arguments: Namespace) -> int:
    """Ids as text."""
    found = decoding.decode_rows(tokenizer, rows, arguments.skip_special, True if arguments.clean_up else None)
    if arguments.json:
        decoded_rows = msgspec.to_builtins(found)["rows"]
        for row, ids in zip(decoded_rows, rows, strict=True):
            row["missing"] = {"places": row["missing"], "ids": [ids[place] for place in row["missing"]]}
        _print_json({"texts": [row["text"] for row in decoded_rows], "rows": decoded_rows})
        return 0
    for row in found.rows:
        print(row.text)
    missing = [ids[place] for row, ids in zip(found.rows, rows, strict=True) for place in row.missing]
    if missing:
        names = ", ".join(str(one) for one in dict.fromkeys(missing))
        ProgressScreen().line(f"the tokenizer has no token {names}")
    return 0


def print_pieces(tokenizer: "PreTrainedTokenizerBase", given: Sequence[str], as_json: bool) -> int:
    """Pieces as ids and as text."""
    found = decoding.pieces_to_text(tokenizer, given)
    if as_json:
        _print_json(msgspec.to_builtins(found))
        return 0
    for piece, number in zip(given, found.ids, strict=True):
        print(f"{number if number >= 0 else 'none':>8}  {piece}")
    print(found.text)
    return 0


def batch_of_lines(tokenizer: "PreTrainedTokenizerBase", question: TokenizeQuestion, as_json: bool) -> int:
    """The lines of the text as the padded batch that a model receives."""
    names = set(BatchQuestion.__struct_fields__) & set(TokenizeQuestion.__struct_fields__) - {"padding"}
    given: dict[str, Any] = {name: getattr(question, name) for name in names}
    lines = lines_of(question.text or "")
    found = batch.grid(tokenizer, BatchQuestion(texts=lines, padding=question.padding or "longest", **given))
    grids = {name: np.array(getattr(found, name)).reshape(found.rows, found.width) for name in ("ids", "mask", "types")}
    if as_json:
        encoded = msgspec.to_builtins(found)
        keys = {"ids": "ids", "mask": "attention_mask", "types": "type_ids"}
        lists = {keys[name]: values.tolist() for name, values in grids.items()}
        _print_json({**{name: value for name, value in encoded.items() if name not in grids}, **lists})
        return 0
    for row, mask in zip(grids["ids"].tolist(), grids["mask"].tolist(), strict=True):
        print(" ".join(f"{number}" if known else f"({number})" if number >= 0 else "" for number, known in zip(row, mask, strict=True)))  # fmt: skip
    print(f"{found.rows} rows of {found.width} tokens, {int((grids['mask'] == 0).sum())} of them padding (in brackets)")
    return 0


def write_lines(tokenizer: "PreTrainedTokenizerBase", question: TokenizeQuestion, arguments: Namespace) -> int:
    """Tokenize the lines of a file into an Arrow file."""
    screen = ProgressScreen()
    screen.start_stage("tokenising", announce=False)
    rows, count = tokenize_file.write(tokenizer, arguments.file, arguments.output, question, _advancing(screen))
    screen.close()
    screen.line(f"{rows:,} rows, {count:,} tokens")
    if arguments.json:
        _print_json({"rows": rows, "tokens": count, "path": str(arguments.output.absolute())})
    else:
        print(arguments.output.absolute())
    return 0


def steps(tokenizer: "PreTrainedTokenizerBase", question: TokenizeQuestion, part: int | None, as_json: bool) -> int:
    """The text, or a part of it (counted from 0), after each step."""
    given = {name: getattr(question, name) for name in TokenizeQuestion.__struct_fields__}
    found = pipeline.steps(tokenizer, StepsQuestion(**given, part=part))
    if as_json:
        _print_json(msgspec.to_builtins(found))
        return 0
    for note in found.notes:
        print(note)
    for step in found.steps:
        print(f"{step.stage:15}{step.name}: {step.sentence}")
        unchanged = "nothing changed" if step.known else "not known"
        print("   " + (" | ".join(part.text for part in step.parts) if step.changed else unchanged))
    for word in found.words:
        print(f"{word.word} → {' '.join(word.pieces)}{'  ' + word.sentence if word.sentence else ''}")
        for merge in word.merges:
            print(f"   merge {merge.rank}: {merge.left} + {merge.right}")
        if word.score is not None:
            second = f"; next {' '.join(word.runner_up)} ({word.runner_up_score:.3f})" if word.runner_up else ""
            print(f"   log-probability {word.score:.3f}{second}")
    return 0


def _stream(tokenizer: "PreTrainedTokenizerBase", question: TokenizeQuestion) -> Tokens:
    stream = Stream(tokenizer, File(question.file or ""), question.special_tokens)
    screen = ProgressScreen()
    screen.start_stage("tokenising", announce=False)
    for _ in stream.arrays(_advancing(screen)):
        pass
    screen.close()
    return stream.facts()


def _advancing(screen: ProgressScreen) -> Callable[[int, int, str], None]:
    return lambda done, total, unit: screen.advance(done, total, unit)


def _table(columns: dict[str, np.ndarray], rest: Tokens) -> None:
    rows = zip(*(columns[name].tolist() for name in ("piece", "start", "end", "word", "mask", "window")), strict=True)
    last = -1
    for place, start, end, word, mask, window in rows:
        if rest.windows > 1 and window != last:
            print(f"window {window + 1}")
            last = window
        piece = rest.pieces[place]
        number = word if word >= 0 else ""
        print(f"{piece.id:>8}  {start:>6}-{end:<6}  {number:>5}  {mask}  {_escape_piece(piece.piece)}")


def _sentences(rest: Tokens) -> None:
    cut = f", {rest.left_out} cut off" if rest.left_out else ""
    print(
        f"{rest.tokens} tokens, {rest.characters} characters, {rest.words} words, {rest.unknown} unknown{cut}"
        + (f", the model reads at most {rest.limit}" if rest.limit is not None and rest.tokens > rest.limit else "")
    )
    screen = ProgressScreen()
    trip = rest.round_trip
    if not trip.same:
        screen.line(f"decoded it differs from character {trip.place}: {trip.decoded_part!r} for {trip.text_part!r}")
    for note in (*rest.notes, rest.stored_truncation, "Offsets are guessed: this tokenizer reports none." if rest.offsets_guessed else ""):  # fmt: skip
        if note:
            screen.line(note)


def _counts(rest: Tokens, as_json: bool) -> None:
    counts = {name: value for name, value in msgspec.to_builtins(rest).items() if name in _TOLD}
    if as_json:
        _print_json(counts)
        return
    for name, value in counts.items():
        if value or name in ("tokens", "unknown"):
            words = (
                format(value, ",") if isinstance(value, int) else " ".join(value) if isinstance(value, list) else value
            )
            print(f"{name.replace('_', ' '):18}{words}")


def _add_notes(rest: Tokens, notes: tuple[str, ...]) -> Tokens:
    return msgspec.structs.replace(rest, notes=[*notes, *rest.notes])


def _print_json(values: dict[str, Any]) -> None:
    print(json.dumps(values, ensure_ascii=False))


def _escape_piece(piece: str) -> str:
    """A piece escaped to fit on one terminal line."""
    plain = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in piece)
    return plain if len(plain) <= WIDEST else plain[:WIDEST] + "…"
