"""What tasks of language models share: their texts, the loss of each row, and the settings of generation."""

import math
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.heads import IGNORE
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import Section
from backend.contract.spec.training import DECODING
from backend.data.rows import Rows
from backend.metrics.metric import Sums
from backend.tasks._packing import flat_values, list_starts


def texts(rows: Rows, column: str, chunk: range | None = None) -> list[str]:
    """The texts of a column; null becomes an empty text."""
    chunk = range(len(rows)) if chunk is None else chunk
    found = rows.table[column].slice(chunk.start, len(chunk))
    return pc.fill_null(found.cast(pa.string()), "").to_pylist()


def loss_table(loss: np.ndarray, tokens: np.ndarray) -> dict[str, pa.Array]:
    """The columns `loss`, `tokens`, `perplexity` from summed losses (rows,) over these tokens; null if none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(tokens > 0, loss / tokens, np.nan)
        perplexity = np.exp(mean)
    return {
        "loss": pa.array(mean, from_pandas=True),
        "tokens": pa.array(tokens),
        "perplexity": pa.array(perplexity, from_pandas=True),
    }


def loss_sums(table: pa.Table) -> Sums:
    """What `loss_table` was made of, from its columns in a file; nothing if it lacks them."""
    if not {"loss", "tokens"} <= set(table.column_names):
        return {}
    mean, tokens = (table[name].to_numpy().astype(np.float64) for name in ("loss", "tokens"))
    return {"loss": (np.where(tokens > 0, mean, 0) * tokens, tokens)}


MOST_COUNTED = 20_000
"""Features of which tokens are counted, in a fraction of a second."""


def unigram_scores(train: pa.Table, held_out: pa.Table) -> dict[str, float]:
    """Loss and perplexity on the targets of `held_out` if each is guessed by how often it is one in `train`.

    One is added to all counts, so that a token that never occurs there is possible.
    """
    known, targets = _targets(train), _targets(held_out)
    if not len(known) or not len(targets):
        return {}
    counts = np.bincount(known, minlength=int(targets.max()) + 1) + 1.0
    loss = float(-np.log(counts / counts.sum())[targets].mean())
    return {"loss": loss, "perplexity": math.exp(loss)}


def _targets(features: pa.Table) -> np.ndarray:
    """The tokens that are to be predicted, of at most MOST_COUNTED features from all over the data."""
    chosen = np.unique(np.linspace(0, features.num_rows - 1, min(MOST_COUNTED, features.num_rows)).astype(np.int64))
    labels = features["labels"].take(pa.array(chosen))
    values = flat_values(labels)
    is_target = values != IGNORE
    is_target[list_starts(labels)] = False  # nothing stands before a feature's first token
    return values[is_target]


class WritingSettings(Section):
    """How text is generated: for evaluation, prediction and prompts; training does not depend on it."""

    max_new_tokens: Annotated[int, Field(title="Max new tokens", ge=1, le=100_000, json_schema_extra=DECODING)] = 64
    """How many tokens are written at most."""
    min_new_tokens: Annotated[int, Field(title="Min new tokens", ge=0, le=100_000, json_schema_extra=DECODING)] = 0
    """Generated text does not end before this many tokens."""
    num_beams: Annotated[int, Field(title="Beams", ge=1, le=100, json_schema_extra=DECODING)] = 1
    """Values above 1 use beam search with this many beams, which is slower."""
    length_penalty: Annotated[float, Field(title="Length penalty", ge=-10, le=10, json_schema_extra=DECODING)] = 1.0
    """For beam search: values above 0 favor longer texts, below 0 shorter ones."""
    early_stopping: Annotated[bool, Field(title="Stop beams early", json_schema_extra=DECODING)] = False
    """For beam search: stop as soon as there are as many complete texts as beams."""
    repetition_penalty: Annotated[float, Field(title="Repetition penalty", gt=0, le=10, json_schema_extra=DECODING)] = (
        1.0
    )
    """Values above 1 make tokens that were already used less likely."""
    no_repeat_ngram_size: Annotated[
        int, Field(title="No-repeat n-gram size", ge=0, le=100, json_schema_extra=DECODING)
    ] = 0
    """No group of this many tokens is generated twice. 0 turns this off."""
    sample: Annotated[bool, Field(title="Sampling", json_schema_extra=DECODING)] = False
    """Sample each token by its probability instead of taking the most likely one. Repeatable for the same rows in
    batches of the same size."""
    temperature: Annotated[float, Field(title="Temperature", gt=0, le=10, json_schema_extra=DECODING)] = 1.0
    """For sampling: values below 1 are more conservative, above 1 more random."""
    top_k: Annotated[int | None, Field(title="Top-k", ge=1, json_schema_extra=DECODING)] = None
    """Sample only from this many most likely tokens."""
    top_p: Annotated[float | None, Field(title="Top-p", gt=0, le=1, json_schema_extra=DECODING)] = None
    """Sample only from the most likely tokens whose probabilities add up to this."""


def generation_settings(settings: WritingSettings, tokenizer: Any) -> GenerationSettings:
    """The engine's generation settings; a text ends with the tokenizer's end token, if it has one."""
    wanted = {name: getattr(settings, name) for name in WritingSettings.model_fields}
    return GenerationSettings(**wanted, eos_token_id=tokenizer.eos_token_id)
