"""Owns the questions about one tokenizer: what it makes of texts, ids and pieces; the last ones are kept open."""

import json
from functools import lru_cache
from typing import Any

import msgspec

from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.safe_files import user_path
from backend.contract.tokens.batches import BatchQuestion, Decoded, PiecesAsText, TokenGrid
from backend.contract.tokens.steps import StepsQuestion, TokenizerSteps
from backend.contract.tokens.tokens import TokenizeQuestion, TokenizerDescription
from backend.helper.query import Arguments, Query, Tell, listed, needed, reporting

MAX_IDS = 1_000_000
KEPT = 4
"""Tokenizers that stay open; a large one takes about a hundred megabytes."""


def _tokenize(arguments: Arguments, tell: Tell) -> Any:
    from backend.tokenizers import answers  # loads transformers

    question = _question(arguments, TokenizeQuestion)
    if question.text is question.file is question.messages is None:
        raise InputError("the question needs 'text', 'file' or 'messages'")
    return answers.tokenized(_tokenizer(arguments), question, reporting(tell))


def _tokenize_batch(arguments: Arguments, tell: Tell) -> TokenGrid:
    from backend.tokenizers import batch

    return batch.grid(_tokenizer(arguments), _question(arguments, BatchQuestion))


def _decode(arguments: Arguments, tell: Tell) -> Decoded:
    from backend.tokenizers import decoding

    ids = needed(arguments, "ids", list)
    rows = ids if any(isinstance(one, list) for one in ids) else [ids]
    try:
        rows = [[int(one) for one in row] for row in rows]
    except (TypeError, ValueError):
        raise InputError("ids: give whole numbers, for example [101, 7592, 102]") from None
    clean_up = arguments.get("clean_up")
    if sum(map(len, rows)) > MAX_IDS:
        raise InputError(f"ids: there are more than {MAX_IDS:,}; decode them in parts")
    return decoding.decoded(
        _tokenizer(arguments),
        rows,
        bool(arguments.get("skip_special", False)),
        None if clean_up is None else bool(clean_up),
    )


def _pieces_to_text(arguments: Arguments, tell: Tell) -> PiecesAsText:
    from backend.tokenizers import decoding

    needed(arguments, "pieces", list)
    given = [str(one) for one in listed(arguments, "pieces", MAX_IDS)]
    return decoding.pieces_to_text(_tokenizer(arguments), given)


def _steps(arguments: Arguments, tell: Tell) -> TokenizerSteps:
    from backend.tokenizers.steps import pipeline

    question = _question(arguments, StepsQuestion)
    if question.text is question.messages is None:
        raise InputError("the question needs 'text' or 'messages'")
    return pipeline.steps(_tokenizer(arguments), question)


def _describe(arguments: Arguments, tell: Tell) -> TokenizerDescription:
    from backend.tokenizers import description

    named = _named(arguments)
    return description.described(_opened(named), named)


def _question(arguments: Arguments, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"the question is not as it should be: {error}") from None


def _tokenizer(arguments: Arguments) -> Any:
    return _opened(_named(arguments))


def _named(arguments: Arguments) -> Any:
    from backend.tokenizers import naming

    options = arguments.get("options") or {}
    return naming.named(needed(arguments, "tokenizer"), str(arguments.get("revision") or "main"), options)


def _opened(named: Any) -> Any:
    age = _age(named.name_or_path) + consents.changed_at()
    return _kept(named.name_or_path, named.revision, json.dumps(named.options, sort_keys=True), age)


@lru_cache(KEPT)
def _kept(name: str, revision: str, options: str, age: float) -> Any:
    from backend.contract.places import is_offline
    from backend.tokenizers import loading

    return loading.open_tokenizer(name, revision, json.loads(options), offline=is_offline())


def _age(name: str) -> float:
    """Changes when a folder or file is written anew, so that no tokenizer is shown that is gone."""
    path = user_path(name)
    try:
        return max((one.stat().st_mtime for one in (path, *path.glob("*token*"))), default=0.0)
    except (OSError, ValueError):
        return 0.0


QUERIES = (
    Query("tokenize", _tokenize, warm_by="tokenizer", as_table=True),
    Query("tokenize_batch", _tokenize_batch, warm_by="tokenizer"),
    Query("decode", _decode, warm_by="tokenizer"),
    Query("pieces_to_text", _pieces_to_text, warm_by="tokenizer"),
    Query("tokenizer_steps", _steps, warm_by="tokenizer"),
    Query("describe_tokenizer", _describe, warm_by="tokenizer"),
)
