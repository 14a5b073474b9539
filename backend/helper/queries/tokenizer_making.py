"""Owns `train_tokenizer`, `propose_tokens`, `count_proposed` and `extend_tokenizer`: tokenizers that are made."""

import time
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.rpc.queries import Progress
from backend.contract.safe_files import user_path
from backend.contract.tokens.making import MadeTokenizer, ProposedTokens, TokenCounts
from backend.helper.queries.tokens import _named, _tokenizer
from backend.helper.query import Arguments, Query, Tell, listed, needed, reporting

OUTPUT, SETTINGS = "output", "tokenizer"
"""What the window calls the field of the new folder, and the beginning of the keys of its form."""

MAX_TOKENS = 50_000
"""That are looked at or added at once; the terminal adds any number."""


def _train(arguments: Arguments, tell: Tell) -> MadeTokenizer:
    from backend.contract.spec import validated  # these load the data room and the tokenizers library
    from backend.contract.spec.tokenizer_training import TokenizerTraining
    from backend.inspect import tokenizer_making
    from backend.tokenizers import saving

    output = _output(arguments)
    saving.check_free(output, OUTPUT)
    settings = validated(TokenizerTraining, needed(arguments, "settings", dict), SETTINGS)
    tell(Progress(text="Reading the data"))
    texts = _texts(arguments, tell)
    other = str(arguments.get("compare_with") or "") or None
    learnt = tokenizer_making.learn(
        texts, settings, other, lambda stage, done, total, unit: tell(Progress(done, total, unit, stage))
    )
    return learnt.written(output, OUTPUT)


def _propose(arguments: Arguments, tell: Tell) -> ProposedTokens:
    from backend.tokenizers import extend

    return extend.proposed(_tokenizer(arguments), _extension(arguments))


def _count(arguments: Arguments, tell: Tell) -> TokenCounts:
    from backend.tokenizers import extend

    started = time.monotonic()
    before, after = _tokenizer(arguments), _opened_anew(arguments)
    extension = _extension(arguments)
    extend.extend(after, extension)
    tell(Progress(text="Reading the data"))
    texts = _texts(arguments, tell)
    total = len(texts)
    wanted = [*extension.add, *extension.special]
    found = extend.count(
        before, after, texts, wanted, lambda done: tell(Progress(done, total, "texts", "Counting the new tokens"))
    )
    return TokenCounts(
        counts=found.counts, rows=found.rows, tokens_before=found.before, tokens_after=found.after,
        seconds=time.monotonic() - started,
    )  # fmt: skip


def _extend(arguments: Arguments, tell: Tell) -> MadeTokenizer:
    from backend.tokenizers import extend, saving

    started, output = time.monotonic(), _output(arguments)
    saving.check_free(output, OUTPUT)
    tokenizer = _opened_anew(arguments)
    added = extend.extend(tokenizer, _extension(arguments))
    saving.save(tokenizer, output, OUTPUT)
    return MadeTokenizer(
        path=str(output), vocabulary=len(tokenizer), added=added, seconds=time.monotonic() - started
    )  # fmt: skip


def _opened_anew(arguments: Arguments) -> Any:
    """A tokenizer of its own, as it is going to be changed."""
    from backend.contract.places import is_offline
    from backend.tokenizers import loading

    found = _named(arguments)
    return loading.open_tokenizer(found.name_or_path, found.revision, found.options, offline=is_offline())


def _extension(arguments: Arguments) -> Any:
    from backend.tokenizers.extend import Extension

    lists = [[str(one) for one in listed(arguments, name, MAX_TOKENS)] for name in ("add", "special")]
    return Extension(*lists, whole_words=bool(arguments.get("whole_words", False)))


def _texts(arguments: Arguments, tell: Tell) -> Any:
    from backend.inspect.column_texts import read_column_texts

    columns = [str(one) for one in arguments.get("columns") or []] or None
    return read_column_texts(needed(arguments, "data", dict), columns, Path.home(), reporting(tell))


def _output(arguments: Arguments) -> Path:
    written = needed(arguments, OUTPUT).strip()
    if not written:
        raise InputError(f"{OUTPUT}: name the folder of the new tokenizer", OUTPUT)
    path = user_path(written)
    return path if path.is_absolute() else Path.home() / path


QUERIES = (
    Query("train_tokenizer", _train),
    Query("propose_tokens", _propose, warm_by="tokenizer"),
    Query("count_proposed", _count),
    Query("extend_tokenizer", _extend),
)
