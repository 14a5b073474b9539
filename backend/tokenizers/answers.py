"""Owns the answer to a question about one text: in one value while it is short, as an Arrow file where it is long."""

import os
import tempfile
from typing import TYPE_CHECKING, Any

import msgspec

from backend.contract.tokens import MOST_IN_JSON, TokenizeQuestion, Tokens
from backend.data.sources.source import Report
from backend.tokenizers import inspect
from backend.tokenizers.encoding import options_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

REST = b"answer"
"""Metadata of the Arrow file: the answer without its columns, as JSON."""


def tokenized(
    tokenizer: "PreTrainedTokenizerBase", question: TokenizeQuestion, report: Report
) -> Tokens | dict[str, str]:
    """The answer, or `{"arrow": PATH}`. Raises InputError."""
    table = inspect.tokenize(tokenizer, question.text or "", options_of(question), question.pair)
    if len(table.columns["piece"]) <= MOST_IN_JSON:
        return table.answer()
    return {"arrow": written(table)}


def written(table: inspect.Table) -> str:
    """Write an Arrow file; its path."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: pa.array(values) for name, values in table.columns.items()}
    made = pa.table(columns).replace_schema_metadata({REST: msgspec.json.encode(table.rest)})
    descriptor, path = tempfile.mkstemp(prefix="burnish-", suffix=".arrow")
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, made.schema) as writer:
        writer.write_table(made)
    return path
