"""Answers a query about one text: as one value if it is short, as an Arrow file if it is long."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
import psutil

from backend.contract.errors import InputError
from backend.contract.messages import table_of
from backend.contract.tokens.tokens import LONG_TEXT, MAX_IN_JSON, TokenizeQuestion, Tokens
from backend.data.sources.source import Report
from backend.tokenizers import AnyTokenizer, chat, tokenize
from backend.tokenizers.long_text import Stream
from backend.tokenizers.text import File, Text
from backend.tokenizers.token_table import Arrays, Table

REST, MESSAGES = b"answer", b"messages"
"""Metadata: the answer without its columns, and how its sentences were made, as JSON."""
_KINDS = dict.fromkeys(("piece", "start", "end", "byte_start", "byte_end", "word", "type", "window"), np.int32) | {
    "sequence": np.int8, "partial": np.uint8, "mask": np.int8,
}  # fmt: skip
_LARGE = 2**31 - 1
_MAX_BYTES = 300_000
"""A long text goes into a file too, however few its tokens are."""
_PREFIX, _SUFFIX, _PART = "burnish-", ".arrow", ".part"


def answer_tokenize(tokenizer: AnyTokenizer, question: TokenizeQuestion, report: Report) -> Tokens | dict[str, str]:
    """The answer, or `{"arrow": PATH}`. Raises InputError."""
    table = tokenize_short(tokenizer, question)
    if table is None:
        source = File(question.file) if question.file is not None else Text(question.text or "")
        stream = Stream(tokenizer, source, question.special_tokens)
        return {"arrow": _write(stream.arrays(report), stream.facts, is_large=source.size > _LARGE)}
    if len(table.columns["piece"]) <= MAX_IN_JSON and table.rest.bytes <= _MAX_BYTES:
        return table.answer()
    return {"arrow": _write([table.columns], lambda: table.rest)}


def tokenize_short(tokenizer: AnyTokenizer, question: TokenizeQuestion) -> Table | None:
    """The tokens of a short text; None for a long one. Raises InputError."""
    if question.messages is not None:
        said = chat.render_chat(tokenizer, question.messages, question.chat_template, question.generation_prompt)
        plain = msgspec.structs.replace(question, special_tokens=False)
        return tokenize.tokenize(tokenizer, said.text, plain, None, said.turns, said.notes)
    simple = question.plain and question.pair is None
    if question.file is not None:
        if not simple:
            raise InputError("a file is tokenized as is; for pairs, windows, padding or words, send its text instead")
        return None
    text = question.text or ""
    if simple and len(text) > LONG_TEXT and tokenizer.is_fast:
        return None
    return tokenize.tokenize(tokenizer, text, question, question.pair)


def _write(parts: Iterable[Arrays], facts: Callable[[], Tokens], *, is_large: bool = False) -> str:
    """An Arrow file of all parts; everything else, which may be known only afterwards, is beside its last batch."""
    import pyarrow as pa

    kinds = {name: np.int64 if is_large and kind is np.int32 else kind for name, kind in _KINDS.items()}
    schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name, kind in kinds.items()])

    def batch(arrays: Arrays) -> "pa.RecordBatch":
        return pa.record_batch([pa.array(arrays[name].astype(kind)) for name, kind in kinds.items()], schema=schema)

    with unfinished_file() as (file, path), pa.ipc.new_file(file, schema) as writer:
        for arrays in parts:
            writer.write_batch(batch(arrays))
        writer.write_batch(batch({name: np.zeros(0) for name in kinds}), custom_metadata=_metadata(facts()))
    return str(path)


def _metadata(rest: Tokens) -> dict[bytes, bytes]:
    return {REST: msgspec.json.encode(rest), MESSAGES: msgspec.json.encode(table_of(rest))}


@contextmanager
def unfinished_file() -> Iterator[tuple[IO[bytes], Path]]:
    """A temporary file and the name that it gets when complete; on failure nothing is left."""
    _remove_abandoned()
    descriptor, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}-", suffix=_PART)
    part = Path(name)
    whole = part.with_suffix(_SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield opened, whole
        part.replace(whole)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _remove_abandoned() -> None:
    """Remove files of killed processes: cancelling a long answer kills its process, which cannot clean up."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*{_PART}"):
        writer = path.name.removeprefix(_PREFIX).partition("-")[0]
        if writer.isdecimal() and not psutil.pid_exists(int(writer)):
            path.unlink(missing_ok=True)
