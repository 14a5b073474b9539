"""Makes what the tests of question answering share: rows, both kinds of tokenizers, and features as plain lists."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, XLNetTokenizer

from backend.contract.resources import resource
from backend.data.rows import Rows
from backend.tasks.question_answering import QuestionAnswering, Settings

COLUMNS = {"question": "question", "context": "context", "answers": "answers", "id": "id"}


def rows_of(questions: list[dict[str, Any]]) -> Rows:
    """Rows of `question`, `context`, `answers` as texts with or without offsets; `id` counts."""
    count = len(questions)
    table = pa.Table.from_pylist([{"id": f"q{number}", **one} for number, one in enumerate(questions)])
    return Rows(table, ("questions.json",), np.zeros(count, np.int32), np.arange(count) + 1, "f")


def answered(question: str, context: str, *texts: str) -> dict[str, Any]:
    """A row whose answers are these texts, where they first occur."""
    starts = [context.index(text) for text in texts]
    return {"question": question, "context": context, "answers": {"text": list(texts), "answer_start": starts}}


def bert() -> PreTrainedTokenizerBase:
    """The demo's WordPiece tokenizer: classification token first, padding on the right."""
    tokenizer: Any = AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def xlnet(texts: Iterable[str]) -> PreTrainedTokenizerBase:
    """An XLNet tokenizer trained on these texts: context first, classification token last, padding on the left."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁")]
    )
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eop>", "<eod>"]
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    pieces = [(piece, score) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"]]
    return XLNetTokenizer(vocab=pieces, unk_id=0)


def features_of(
    tokenizer: PreTrainedTokenizerBase, rows: Rows, facts: dict[str, Any] | None = None, **settings: object
) -> pa.Table:
    """All features, under a task with these settings."""
    task = QuestionAnswering(Settings(**settings))  # type: ignore[arg-type]
    known = task.fit(rows, COLUMNS) if facts is None else facts
    known = {**known, "max_length": settings.get("max_length", 384)}
    return pa.Table.from_batches(list(task.encode(rows, COLUMNS, tokenizer, known)))


def answer_text(features: pa.Table, number: int, context: str) -> str:
    """The characters between a feature's start and end position."""
    start, end = (features[name][number].as_py() for name in ("start_positions", "end_positions"))
    first, last = features["offset_start"][number][start].as_py(), features["offset_end"][number][end].as_py()
    return context[first:last]
