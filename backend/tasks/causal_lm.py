"""Owns causal language modelling: the next token of running text or of one example per row."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.generation import GenerationSettings
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED
from backend.data.rows import Rows
from backend.tasks._writing import WritingSettings, generation_settings
from backend.tasks.task import Columns, Facts, Outputs, Predictions, SplitBy, in_chunks


class Settings(WritingSettings):
    """The `task` section of causal language modelling."""

    type: Annotated[Literal["causal_lm"], Field(title="Task")] = "causal_lm"
    """Always `causal_lm`."""
    rows: Annotated[Literal["blocks", "examples"], Field(title="A row is")] = "blocks"
    """`blocks` joins all rows to one text and cuts it into blocks of equal length; `examples` keeps each row by itself."""
    max_length: Annotated[
        int | None, Field(title="Block length", ge=2, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 256
    """Tokens of a block, or the most tokens of an example; empty takes the model's own limit."""
    separator: Annotated[
        Literal["auto", "none", "newline", "end_of_text"], Field(title="Between rows", json_schema_extra=ADVANCED)
    ] = "auto"
    """What stands between two rows of a block; `auto` is a line break in running text, else the end-of-text token."""
    append_end: Annotated[bool, Field(title="End of text after examples", json_schema_extra=ADVANCED)] = True
    """Examples end with the end-of-text token, so that the model learns to stop."""


class CausalLm:
    """The next token; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Language model"
    description: ClassVar[str] = "Continues text: trains on running text, or on one example per row."
    head: Head = Head.CAUSAL_LM
    columns: ClassVar[tuple[Column, ...]] = (
        Column(
            "text",
            "Text",
            "The text to learn from.",
            usual_names=["text", "content", "body", "story", "sentence", "document"],
        ),
    )
    metrics: ClassVar[tuple[str, ...]] = ("loss", "perplexity", "accuracy")
    default_metric: ClassVar[str] = "perplexity"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    draws: ClassVar[bool] = False
    defaults: ClassVar[dict[str, Any]] = {
        "training": {"epochs": 1, "batch_size": 8, "learning_rate": 5e-5, "warmup": 0.03},
        "evaluation": {"best_metric": "loss"},
    }
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @property
    def split_by(self) -> SplitBy:
        """Running text keeps its order: a fraction is its end."""
        return "contiguous" if self.settings.rows == "blocks" else "random"

    def label_column(self, columns: Columns) -> str | None:
        """There are no labels."""
        return None

    def unusable(self, rows: Rows, columns: Columns, labelled: bool) -> list[tuple[int, str]]:
        """Rows without text, except the empty lines of running text, which belong to it."""
        if self.settings.rows == "blocks" and rows.continuous:
            return []
        empty = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(rows.table[columns["text"]].cast(pa.string())), ""), True)
        return [(row, "no text") for row in np.flatnonzero(empty.to_numpy()).tolist()]

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Nothing is learnt from the rows, but there must be text. Raises InputError where there is none."""
        if not any(text.strip() for text in _texts(rows, columns, range(len(rows)))):
            raise InputError(
                f"data.columns.text: the column {columns['text']!r} holds no text; choose another column",
                "data.columns.text",
            )
        return {}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """A language model needs no facts."""
        return {}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Any text goes with any other."""

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A language model head."""
        return HeadFacts(self.head)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """Blocks or examples. `spans_row` and `spans_length` say, run by run, which row a feature's tokens come from."""
        if self.settings.rows == "examples":
            return self._encode_examples(rows, columns, tokenizer, facts["max_length"])
        return self._encode_blocks(rows, columns, tokenizer, facts["max_length"])

    def _encode_examples(self, rows: Rows, columns: Columns, tokenizer: Any, length: int) -> Iterator[pa.RecordBatch]:
        end = [tokenizer.eos_token_id] if self.settings.append_end and tokenizer.eos_token_id is not None else []
        for chunk in in_chunks(len(rows)):
            encoded = tokenizer(_texts(rows, columns, chunk), return_attention_mask=False)["input_ids"]
            ids = [(one if one[-1:] == end else [*one, *end])[:length] for one in encoded]
            kept = [
                (row, one) for row, one in zip(chunk, ids, strict=True) if one
            ]  # a text of unknown signs has no token
            rows_of, ids = [row for row, _ in kept], [one for _, one in kept]
            yield _features(ids, rows_of, [[row] for row in rows_of], [[len(one)] for one in ids])

    def _encode_blocks(self, rows: Rows, columns: Columns, tokenizer: Any, length: int) -> Iterator[pa.RecordBatch]:
        after, tail = self._separator(rows, tokenizer)
        left_ids, left_rows = np.empty(0, np.int32), np.empty(0, np.int32)
        for chunk in in_chunks(len(rows)):
            texts = [text + after for text in _texts(rows, columns, chunk)]
            encoded = tokenizer(texts, add_special_tokens=False, return_attention_mask=False)["input_ids"]
            encoded = [one + tail for one in encoded]
            lengths = [len(one) for one in encoded]
            left_ids = np.concatenate(
                [left_ids, np.fromiter((i for one in encoded for i in one), np.int32, sum(lengths))]
            )
            left_rows = np.concatenate(
                [left_rows, np.repeat(np.arange(chunk.start, chunk.stop, dtype=np.int32), lengths)]
            )
            whole = len(left_ids) // length * length
            if whole:
                yield _blocks(left_ids[:whole], left_rows[:whole], length)
                left_ids, left_rows = left_ids[whole:], left_rows[whole:]
        if len(left_ids) > 1:  # the short last block is kept; a single token would have no target
            yield _blocks(left_ids, left_rows, len(left_ids))

    def _separator(self, rows: Rows, tokenizer: Any) -> tuple[str, list[int]]:
        """Text put after every row before tokenising, and token ids put after it."""
        kind = self.settings.separator
        if kind == "auto":
            kind = "newline" if rows.continuous else "end_of_text"
        if kind == "newline":
            return "\n", []
        end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
        return ("", [end]) if kind == "end_of_text" and end is not None else ("", [])

    def draw(self, arrays: dict[str, np.ndarray], rng: np.random.Generator, tokenizer: Any) -> dict[str, np.ndarray]:
        """Nothing changes by epoch."""
        return arrays

    def generation(self, tokenizer: Any) -> GenerationSettings:
        """As the settings say."""
        return generation_settings(self.settings, tokenizer)

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """Per row the summed loss of its tokens, and the text of the likeliest token at each of them (teacher forcing)."""
        ids, owners, is_target = _flat_targets(features)
        ids, owners = ids[is_target], owners[is_target]
        token_loss = np.concatenate([*outputs["token_loss"], np.empty(0, np.float32)])[is_target].astype(np.float64)
        guess = np.concatenate([*outputs["token_prediction"], np.empty(0, np.int32)])[is_target]
        loss = np.bincount(owners, token_loss, len(rows))
        tokens = np.bincount(owners, minlength=len(rows))
        # Features keep the rows' order, so the tokens of one row stand together, across blocks too.
        predicted = [part.tolist() for part in np.split(guess, np.cumsum(tokens)[:-1])]
        correct = np.bincount(owners, guess == ids, len(rows))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            mean = np.where(tokens > 0, loss / tokens, np.nan)
            perplexity = np.exp(mean)
        table = {
            "prediction": pa.array(tokenizer.batch_decode(predicted, skip_special_tokens=True), pa.string()),
            "actual": pa.array(_texts(rows, columns, range(len(rows))), pa.string()),
            "loss": pa.array(mean, from_pandas=True),
            "tokens": pa.array(tokens),
            "perplexity": pa.array(perplexity, from_pandas=True),
        }
        return Predictions(pa.table(table), {"loss": (loss, tokens), "accuracy": (correct, tokens)})

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Mean loss over all tokens, its exponential, and the share of tokens that were the likeliest."""
        total, count = predictions.total("loss")
        if not count:
            return {}
        loss = total / count
        correct, _ = predictions.total("accuracy")
        return {"loss": loss, "perplexity": float(np.exp(min(loss, 700.0))), "accuracy": correct / count}


def _texts(rows: Rows, columns: Columns, chunk: range) -> list[str]:
    column = rows.table[columns["text"]].slice(chunk.start, len(chunk))
    return pc.fill_null(column.cast(pa.string()), "").to_pylist()


def _flat_targets(features: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tokens,) each, over all features: ids, the row each token comes from, and whether it is a target."""
    ids, starts = _flat(features["input_ids"])
    owners, _ = _flat(features["spans_row"])
    lengths, _ = _flat(features["spans_length"])
    is_target = np.ones(len(ids), dtype=bool)
    is_target[starts] = False  # nothing stands before a feature's first token to predict it from
    return ids, np.repeat(owners, lengths), is_target


def _flat(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """All values of a list column, and where each list starts (lists are never empty)."""
    lengths = pc.list_value_length(column).to_numpy()
    values = pc.list_flatten(column).to_numpy()
    return values, np.cumsum(lengths) - lengths


def _blocks(ids: np.ndarray, owners: np.ndarray, length: int) -> pa.RecordBatch:
    blocks, block_owners = ids.reshape(-1, length), owners.reshape(-1, length)
    spans = [_runs(one) for one in block_owners]
    first = block_owners[:, 0].tolist()
    return _features(list(blocks), first, [rows for rows, _ in spans], [lengths for _, lengths in spans])


def _runs(owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts = np.flatnonzero(np.diff(owners, prepend=owners[0] - 1))
    return owners[starts], np.diff(np.append(starts, len(owners)))


def _features(ids: list[Any], rows: list[int], spans_row: list[Any], spans_length: list[Any]) -> pa.RecordBatch:
    lists = pa.list_(pa.int32())
    input_ids = pa.array(ids, lists)
    return pa.RecordBatch.from_pydict(
        {
            "row": pa.array(rows, pa.int32()),
            "part": pa.array(np.zeros(len(ids), dtype=np.int32)),
            "input_ids": input_ids,
            "labels": input_ids,
            "spans_row": pa.array(spans_row, lists),
            "spans_length": pa.array(spans_length, lists),
        }
    )


TASK = CausalLm
