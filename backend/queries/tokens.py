"""Owns `tokenize` and `decode`, with the last tokenizers kept open."""

import json
from functools import lru_cache
from typing import Any

from backend.contract.tokens import Tokens
from backend.queries.query import Arguments, Query, Tell, needed

KEPT = 4
"""Tokenizers that stay open; a large one takes about a hundred megabytes."""


def _tokenize(arguments: Arguments, tell: Tell) -> Tokens:
    from backend.tokenizers import inspect  # loads transformers

    text = needed(arguments, "text")
    return inspect.tokenize(_tokenizer(arguments), text, bool(arguments.get("special_tokens", True)))


def _decode(arguments: Arguments, tell: Tell) -> dict[str, str]:
    from backend.tokenizers import inspect

    ids = [int(one) for one in needed(arguments, "ids", list)]
    return {"text": inspect.decode(_tokenizer(arguments), ids, bool(arguments.get("skip_special", False)))}


def _tokenizer(arguments: Arguments) -> Any:
    options = json.dumps(arguments.get("options") or {}, sort_keys=True)
    return _opened(needed(arguments, "tokenizer"), str(arguments.get("revision") or "main"), options)


@lru_cache(KEPT)
def _opened(name: str, revision: str, options: str) -> Any:
    from backend.contract.places import is_offline
    from backend.tokenizers import loading

    return loading.open_tokenizer(name, revision, json.loads(options), offline=is_offline())


QUERIES = (Query("tokenize", _tokenize, warm_by="tokenizer"), Query("decode", _decode, warm_by="tokenizer"))
