"""Masked language modeling: predicts hidden tokens of plain text, or of one example per row."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.metrics import Metric
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED
from backend.data.rows import Rows
from backend.metrics.metric import Sums, measure, metrics_of
from backend.tasks._language_models import loss_sums, loss_table, texts
from backend.tasks._packing import (
    Tokens,
    cut_into_blocks,
    features_of_rows,
    flat_values,
    flatten,
    group_by_row,
    row_of_tokens,
    tokens_of,
)
from backend.tasks._texts import is_blank, list_reasons
from backend.tasks.task import Columns, Facts, Limit, Outputs, Predictions, SplitBy, Use, iterate_chunks

FILL, NEVER, WITHIN, BEGIN = -2, -1, 0, 1
"""What the column `word` says of a token: the row's own mask, never hidden, goes on with a word, begins one."""


class Settings(Section):
    """The `task` section of masked language modelling."""

    type: Annotated[Literal["masked_lm"], Field(title="Task")] = "masked_lm"
    """Always `masked_lm`."""
    rows: Annotated[Literal["blocks", "examples"], Field(title="Training example")] = "blocks"
    """`blocks` joins all rows into one text and splits it into blocks of equal length; `examples` keeps each row
    separate."""
    max_length: Annotated[
        int | None, Field(title="Block length", ge=4, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 256
    """Tokens per block, or the maximum tokens of an example. Empty uses the model's limit."""
    mask_probability: Annotated[float, Field(title="Mask probability", gt=0, lt=1)] = 0.15
    """Fraction of tokens to predict, at least one per row. Of these, 80% are replaced by the mask token, 10% by a
    random token, and 10% are kept."""
    whole_words: Annotated[bool, Field(title="Whole-word masking", json_schema_extra=ADVANCED)] = False
    """Mask all pieces of a word together."""


class MaskedLm:
    """Hidden-token prediction; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Masked language modeling"
    description: ClassVar[str] = "Predicts masked words. Adapts an encoder to the language of your texts."
    head: Head = Head.MASKED_LM
    columns: ClassVar[tuple[Column, ...]] = (
        Column(
            "text", "Text", "The text to train on. If it contains the mask token, that is what is predicted.",
            usual_names=["text", "content", "body", "story", "sentence", "document"], holds="text",
        ),
    )  # fmt: skip
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("masked_lm")
    default_metric: ClassVar[str] = "perplexity"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    trains_apart: bool = True
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "loss"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"text": "The capital of France is [MASK]."},
        {"text": "She poured a cup of [MASK] tea."},
    )
    trained_architecture: ClassVar[str] = ""
    row_view: ClassVar[str] = "language_model"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.limits = (Limit(beyond="blocks" if settings.rows == "blocks" else "cut"),)
        self._ordinary: tuple[Any, np.ndarray] = (None, np.empty(0, np.int32))

    @property
    def split_by(self) -> SplitBy:
        """Running text keeps its order: the validation fraction is its end."""
        return "contiguous" if self.settings.rows == "blocks" else "random"

    def label_column(self, columns: Columns) -> str | None:
        """There are no labels."""
        return None

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without text, except blank lines of running text, which belong to it."""
        if self.settings.rows == "blocks" and rows.continuous:
            return []
        return list_reasons({"no text": is_blank(rows.table[columns["text"]])})

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Learns nothing from the rows, but requires text. Raises InputError if there is none."""
        if is_blank(rows.table[columns["text"]]).all():
            raise InputError(
                "data.columns.text: the column {columns} has no text; choose another column",
                "data.columns.text",
                columns=repr(columns["text"]),
            )
        return {}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """A language model needs no facts."""
        return {}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Nothing to check."""

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A masked language model head."""
        return HeadFacts(self.head)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """Blocks or examples, nothing hidden yet; `word` says what `draw` may do with each token.

        Rows keep their special tokens inside a block, as in the reference script. Raises InputError for a tokenizer
        without a mask token, or without word boundaries if whole words are masked.
        """
        _check_tokenizer(tokenizer, self.settings.whole_words)
        length = facts["max_length"]
        if self.settings.rows == "examples":
            return self._examples(rows, columns, tokenizer, length)
        return cut_into_blocks(
            (self._tokens(rows, columns, tokenizer, chunk) for chunk in iterate_chunks(len(rows))), length, 1
        )

    def _tokens(self, rows: Rows, columns: Columns, tokenizer: Any, chunk: range) -> Tokens:
        ids, words = self._encode_texts(texts(rows, columns["text"], chunk), tokenizer)
        return tokens_of(chunk.start, ids) | {"word": flatten(words, np.int8)}

    def _examples(self, rows: Rows, columns: Columns, tokenizer: Any, length: int) -> Iterator[pa.RecordBatch]:
        for chunk in iterate_chunks(len(rows)):
            ids, words = self._encode_texts(texts(rows, columns["text"], chunk), tokenizer, length)
            word = pa.array(words, pa.list_(pa.int8()))
            yield features_of_rows(list(chunk), {"input_ids": ids}, word=word)

    def _encode_texts(
        self, found: list[str], tokenizer: Any, length: int | None = None
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Ids of every text with its special tokens, and the `word` mark of each."""
        cut = {"truncation": True, "max_length": length} if length is not None else {}
        encoded = tokenizer(found, return_attention_mask=False, return_token_type_ids=False, verbose=False, **cut)
        ids, special = encoded["input_ids"], set(tokenizer.all_special_ids)
        whole = self.settings.whole_words
        words = [
            _word_marks(one, encoded.word_ids(number) if whole else None, special, tokenizer.mask_token_id)
            for number, one in enumerate(ids)
        ]
        return ids, words

    def for_training(self, features: Iterator[pa.RecordBatch], facts: Facts) -> Iterator[pa.RecordBatch]:
        """Exclude a text's own masks from training: what belongs there is unknown."""
        for batch in features:
            word = batch["word"]
            marks = pc.max_element_wise(word.values, pa.scalar(NEVER, word.values.type))
            lists = pa.ListArray.from_arrays(word.offsets, marks)
            yield batch.set_column(batch.schema.get_field_index("word"), "word", lists)

    def draw(self, arrays: dict[str, np.ndarray], rng: np.random.Generator, tokenizer: Any) -> dict[str, np.ndarray]:
        """Hide tokens and make them targets; if the text contains masks itself, these are the targets.

        The token at a text's own mask is unknown: its label is the mask.
        """
        ids, word = arrays["input_ids"], arrays["word"]
        chosen = self._choose_masked(word, rng)
        labels = np.full(len(ids), IGNORE, dtype=np.int32)
        labels[chosen] = ids[chosen]
        labels[word == FILL] = tokenizer.mask_token_id
        kind = rng.random(len(chosen))
        hidden = ids.astype(np.int32)
        hidden[chosen[kind < 0.8]] = tokenizer.mask_token_id
        other = chosen[(kind >= 0.8) & (kind < 0.9)]
        if len(other):
            ordinary = self._ordinary_tokens(tokenizer)
            hidden[other] = ordinary[rng.integers(len(ordinary), size=len(other))]
        return {**arrays, "input_ids": hidden, "labels": labels}

    def _choose_masked(self, word: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The positions of the tokens to hide; at least one word or token if any may be hidden."""
        open_places = np.flatnonzero(word >= 0)
        if not len(open_places):
            return open_places
        if not self.settings.whole_words:
            found = open_places[rng.random(len(open_places)) < self.settings.mask_probability]
            return found if len(found) else open_places[[rng.integers(len(open_places))]]
        number = np.cumsum(word[open_places] == BEGIN)
        number -= number[0]  # a block may begin inside a word
        count = int(number[-1]) + 1
        is_hidden = rng.random(count) < self.settings.mask_probability
        if not is_hidden.any():
            is_hidden[rng.integers(count)] = True
        return open_places[is_hidden[number]]

    def _ordinary_tokens(self, tokenizer: Any) -> np.ndarray:
        if self._ordinary[0] is not tokenizer:  # found once, for it takes longer than the drawing
            self._ordinary = tokenizer, np.setdiff1d(np.arange(len(tokenizer)), tokenizer.all_special_ids)
        return self._ordinary[1]

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """Per row the mean loss of its hidden tokens, and its text with the most likely tokens filled in."""
        owner, labels = row_of_tokens(features), flat_values(features["labels"])
        ids, is_fill = flat_values(features["input_ids"]).copy(), labels == tokenizer.mask_token_id
        is_hidden = labels != IGNORE
        is_target = is_hidden & ~is_fill
        top = np.concatenate([*outputs["top_tokens"], np.empty((0, 5), np.int32)])
        token_loss = np.concatenate([*outputs["token_loss"], np.empty(0, np.float32)]).astype(np.float64)
        ids[is_hidden] = top[is_hidden, 0]
        count = len(rows)
        tokens = np.bincount(owner[is_target], minlength=count)
        loss = np.bincount(owner[is_target], token_loss[is_target], count)
        correct = np.bincount(owner[is_target], top[is_target, 0] == labels[is_target], count)
        filled = [one.tolist() for one in group_by_row(ids, owner, count)]
        table = {
            "prediction": pa.array(tokenizer.batch_decode(filled, skip_special_tokens=True), pa.string()),
            "actual": pa.array(texts(rows, columns["text"]), pa.string()),
            **loss_table(loss, tokens),
        }
        if is_fill.any():
            likely = np.concatenate([*outputs["top_probabilities"], np.empty((0, 5), np.float32)])
            table["fills"] = _fills(top[is_fill], likely[is_fill], owner[is_fill], count, tokenizer)
        return Predictions(pa.table(table), {"loss": (loss, tokens), "accuracy": (correct, tokens)})

    def sums_of(self, table: pa.Table, rows: Rows, columns: Columns) -> Sums:
        """See `RebuildsSums`."""
        return loss_sums(table)

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Mean loss over all hidden tokens, its exponential, and the share predicted correctly."""
        return measure(metrics_of("masked_lm"), predictions, facts, self.settings)


def _check_tokenizer(tokenizer: Any, whole_words: bool) -> None:
    if tokenizer.mask_token_id is None:
        raise InputError(
            "model.tokenizer: this tokenizer has no mask token, so nothing can be masked; choose an "
            "encoder such as BERT or RoBERTa, or set task.type to causal_lm",
            "model.tokenizer",
        )
    if whole_words and not tokenizer.is_fast:
        raise InputError(
            "task.whole_words: this tokenizer (a slow one) cannot tell which tokens form a word; leave it "
            "off, or choose a model with a tokenizer.json",
            "task.whole_words",
        )


def _word_marks(ids: list[int], words: list[int | None] | None, special: set[int], mask: int) -> list[int]:
    """The `word` mark of each token of a text. A text that contains mask tokens is only to be filled there."""
    if mask in ids:
        return [FILL if token == mask else NEVER for token in ids]
    if words is None:
        return [NEVER if token in special else BEGIN for token in ids]
    before = [None, *words]
    return [
        NEVER if token in special or word is None else WITHIN if word == last else BEGIN
        for token, word, last in zip(ids, words, before, strict=False)
    ]


def _fills(top: np.ndarray, likely: np.ndarray, owner: np.ndarray, rows: int, tokenizer: Any) -> pa.Array:
    """For every row with its own masks, JSON: each mask's most likely tokens with their probabilities."""
    found: list[list[list[dict[str, Any]]]] = [[] for _ in range(rows)]
    for row, tokens, probabilities in zip(owner.tolist(), top.tolist(), likely.tolist(), strict=True):
        named = zip(tokens, probabilities, strict=True)
        found[row].append([{"token": tokenizer.decode([token]).strip(), "probability": p} for token, p in named])
    return pa.array([json.dumps(one, ensure_ascii=False) if one else None for one in found], pa.string())


TASK = MaskedLm
