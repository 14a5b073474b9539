"""Answers queries about tokenizers: tokenizing texts, comparing tokenizers, and training or extending new ones."""

import json
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.rpc.protocol import Progress
from backend.contract.safe_files import user_path
from backend.contract.tokens.batches import BatchQuestion, Decoded, PiecesAsText, TokenGrid
from backend.contract.tokens.comparison import DataComparison, TextComparison
from backend.contract.tokens.steps import StepsQuestion, TokenizerSteps
from backend.contract.tokens.tokens import TokenizeQuestion, TokenizerDescription
from backend.contract.tokens.training import ProposedTokens, TokenCounts, TrainedTokenizer
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require, require_list

OUTPUT, SETTINGS = "output", "tokenizer"
"""What the window calls the field of the new folder, and the beginning of the keys of its form."""
MAX_TOKENS = 50_000
"""That are looked at or added at once; the terminal adds any number."""
MAX_IDS = 1_000_000
KEPT = 4
"""Tokenizers that stay open; a large one takes about a hundred megabytes."""


def _tokenize(arguments: Arguments, report: ReportProgress) -> Any:
    from backend.tokenizers import answers  # loads transformers

    question = _question(arguments, TokenizeQuestion)
    if question.text is question.file is question.messages is None:
        raise InputError("the query needs 'text', 'file' or 'messages'")
    return answers.answer_tokenize(open_tokenizer(arguments), question, reporting(report))


def _tokenize_batch(arguments: Arguments, report: ReportProgress) -> TokenGrid:
    from backend.tokenizers import batch

    return batch.grid(open_tokenizer(arguments), _question(arguments, BatchQuestion))


def _decode(arguments: Arguments, report: ReportProgress) -> Decoded:
    from backend.tokenizers import decoding

    ids = require(arguments, "ids", list)
    rows = ids if any(isinstance(one, list) for one in ids) else [ids]
    try:
        rows = [[int(one) for one in row] for row in rows]
    except (TypeError, ValueError):
        raise InputError("ids: enter whole numbers, for example [101, 7592, 102]") from None
    if sum(map(len, rows)) > MAX_IDS:
        raise InputError("ids: there are more than {max_ids:,}; decode them in parts", max_ids=MAX_IDS)
    return decoding.decode_rows(open_tokenizer(arguments), rows)


def _pieces_to_text(arguments: Arguments, report: ReportProgress) -> PiecesAsText:
    from backend.tokenizers import decoding

    require(arguments, "pieces", list)
    given = [str(one) for one in require_list(arguments, "pieces", MAX_IDS)]
    return decoding.pieces_to_text(open_tokenizer(arguments), given)


def _steps(arguments: Arguments, report: ReportProgress) -> TokenizerSteps:
    from backend.tokenizers.steps import pipeline

    question = _question(arguments, StepsQuestion)
    if question.text is question.messages is None:
        raise InputError("the query needs 'text' or 'messages'")
    return pipeline.steps(open_tokenizer(arguments), question)


def _describe(arguments: Arguments, report: ReportProgress) -> TokenizerDescription:
    from backend.tokenizers import tokenize

    named = _resolve(arguments)
    return tokenize.describe(_open_named(named), named.note)


def _compare_text(arguments: Arguments, report: ReportProgress) -> TextComparison:
    from backend.tokenizers.compare import compare_text

    text = require(arguments, "text")
    return compare_text(_tokenizers(arguments, report), text, bool(arguments.get("special_tokens", True)))


def _compare_data(arguments: Arguments, report: ReportProgress) -> DataComparison:
    from backend.inspect.column_texts import read_text_column
    from backend.tokenizers.compare import compare_data

    language = arguments.get("language_column")
    column = read_text_column(
        require(arguments, "data", (str, list, dict)),
        str(arguments.get("column") or ""),
        None if language is None else str(language),
        reporting(report),
    )
    total = len(column)
    tokenizers = _tokenizers(arguments, report)
    report(Progress(text="Comparing the data"))
    return compare_data(
        tokenizers,
        column.texts(),
        column.languages(),
        lambda done: report(Progress(done, total, "rows")),
        column.name,
        column.language,
    )


def _tokenizers(arguments: Arguments, report: ReportProgress) -> list[tuple[str, Any]]:
    from backend.tokenizers.compare import check_number

    names = [str(name) for name in require(arguments, "tokenizers", list)]
    check_number(names)
    opened = []
    for number, name in enumerate(names, start=1):
        report(Progress(text=message("Opening tokenizer {number} of {names}…", number=number, names=len(names))))
        opened.append((name, open_tokenizer({"tokenizer": name})))
    return opened


def _question(arguments: Arguments, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise InputError("invalid query: {error}", error=error) from None


def open_tokenizer(arguments: Arguments) -> Any:
    """The tokenizer that a query names; the last few stay open. Raises InputError."""
    return _open_named(_resolve(arguments))


def _resolve(arguments: Arguments) -> Any:
    from backend.tokenizers import resolve

    return resolve.resolve_name(require(arguments, "tokenizer"), options=arguments.get("options") or {})


def _open_named(named: Any) -> Any:
    age = _age(named.name_or_path) + consents.changed_at()
    return _open_cached(named.name_or_path, named.revision, json.dumps(named.options, sort_keys=True), age)


@lru_cache(KEPT)
def _open_cached(name: str, revision: str, options: str, age: float) -> Any:
    return _open(name, revision, json.loads(options))


def _open(name: str, revision: str, options: dict[str, Any]) -> Any:
    from backend.tokenizers import loading

    return loading.open_tokenizer(name, revision, options)


def _age(name: str) -> float:
    """A value that changes when a folder or file is rewritten, so that no outdated tokenizer is used."""
    path = user_path(name)
    try:
        return max((one.stat().st_mtime for one in (path, *path.glob("*token*"))), default=0.0)
    except (OSError, ValueError):
        return 0.0


def _train(arguments: Arguments, report: ReportProgress) -> TrainedTokenizer:
    from backend.contract.spec import validate  # these load the data room and the tokenizers library
    from backend.contract.spec.tokenizer_training import TokenizerTraining
    from backend.inspect import tokenizer_training
    from backend.tokenizers import saving

    output = _output(arguments)
    saving.check_free(output, OUTPUT)
    settings = validate(TokenizerTraining, require(arguments, "settings", dict), SETTINGS)
    report(Progress(text="Reading the data"))
    texts = _texts(arguments, report)
    other = str(arguments.get("compare_with") or "") or None
    learnt = tokenizer_training.learn(
        texts, settings, other, lambda stage, done, total, unit: report(Progress(done, total, unit, stage))
    )
    return learnt.save(output, OUTPUT)


def _propose(arguments: Arguments, report: ReportProgress) -> ProposedTokens:
    from backend.tokenizers import added_tokens

    return added_tokens.propose(open_tokenizer(arguments), _extension(arguments))


def _count(arguments: Arguments, report: ReportProgress) -> TokenCounts:
    from backend.tokenizers import added_tokens

    before, after = open_tokenizer(arguments), _open_fresh(arguments)
    extension = _extension(arguments)
    added_tokens.extend(after, extension)
    report(Progress(text="Reading the data"))
    texts = _texts(arguments, report)
    total = len(texts)
    wanted = [*extension.add, *extension.special]
    return added_tokens.count(
        before, after, texts, wanted, lambda done: report(Progress(done, total, "texts", "Counting the new tokens"))
    )


def _extend(arguments: Arguments, report: ReportProgress) -> TrainedTokenizer:
    from backend.tokenizers import added_tokens, saving

    started, output = time.monotonic(), _output(arguments)
    saving.check_free(output, OUTPUT)
    tokenizer = _open_fresh(arguments)
    added = added_tokens.extend(tokenizer, _extension(arguments))
    saving.save(tokenizer, output, OUTPUT)
    return TrainedTokenizer(
        path=str(output), vocabulary=len(tokenizer), added=added, seconds=time.monotonic() - started
    )  # fmt: skip


def _open_fresh(arguments: Arguments) -> Any:
    """A separate instance of the tokenizer, because it will be modified."""
    found = _resolve(arguments)
    return _open(found.name_or_path, found.revision, found.options)


def _extension(arguments: Arguments) -> Any:
    from backend.tokenizers.added_tokens import Extension

    lists = [[str(one) for one in require_list(arguments, name, MAX_TOKENS)] for name in ("add", "special")]
    return Extension(*lists, whole_words=bool(arguments.get("whole_words", False)))


def _texts(arguments: Arguments, report: ReportProgress) -> Any:
    from backend.inspect.column_texts import read_column_texts

    columns = [str(one) for one in arguments.get("columns") or []] or None
    return read_column_texts(require(arguments, "data", dict), columns, Path.home(), reporting(report))


def _output(arguments: Arguments) -> Path:
    written = require(arguments, OUTPUT).strip()
    if not written:
        raise InputError("{output}: specify the folder of the new tokenizer", OUTPUT, output=OUTPUT)
    path = user_path(written)
    return path if path.is_absolute() else Path.home() / path


QUERIES = (
    Query("tokenize", _tokenize, warm_by="tokenizer"),
    Query("tokenize_batch", _tokenize_batch, warm_by="tokenizer"),
    Query("decode", _decode, warm_by="tokenizer"),
    Query("pieces_to_text", _pieces_to_text, warm_by="tokenizer"),
    Query("tokenizer_steps", _steps, warm_by="tokenizer"),
    Query("describe_tokenizer", _describe, warm_by="tokenizer"),
    Query("compare_text", _compare_text, warm_by="tokenizers"),
    Query("compare_data", _compare_data, warm_by="tokenizers"),
    Query("train_tokenizer", _train),
    Query("propose_tokens", _propose, warm_by="tokenizer"),
    Query("count_proposed", _count),
    Query("extend_tokenizer", _extend),
)
