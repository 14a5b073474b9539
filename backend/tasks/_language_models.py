"""What tasks of language models share: their texts, the loss of each row, and the settings of generation."""

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import Section
from backend.contract.spec.training import DECODING
from backend.data.rows import Rows


def texts(rows: Rows, column: str, chunk: range | None = None) -> list[str]:
    """The texts of a column; null is an empty one."""
    chunk = range(len(rows)) if chunk is None else chunk
    found = rows.table[column].slice(chunk.start, len(chunk))
    return pc.fill_null(found.cast(pa.string()), "").to_pylist()


def loss_table(loss: np.ndarray, tokens: np.ndarray) -> dict[str, pa.Array]:
    """The columns `loss`, `tokens`, `perplexity` of summed losses (rows,) over so many tokens; null where there is none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(tokens > 0, loss / tokens, np.nan)
        perplexity = np.exp(mean)
    return {
        "loss": pa.array(mean, from_pandas=True),
        "tokens": pa.array(tokens),
        "perplexity": pa.array(perplexity, from_pandas=True),
    }


class WritingSettings(Section):
    """How text is written: for evaluation, prediction and prompts; training does not depend on it."""

    max_new_tokens: Annotated[int, Field(title="New tokens", ge=1, le=100_000, json_schema_extra=DECODING)] = 64
    """How many tokens are written at most."""
    min_new_tokens: Annotated[int, Field(title="Fewest new tokens", ge=0, le=100_000, json_schema_extra=DECODING)] = 0
    """No text ends before this many tokens."""
    num_beams: Annotated[int, Field(title="Beams", ge=1, le=100, json_schema_extra=DECODING)] = 1
    """Above 1 this many beginnings are followed at a time and the likeliest whole text is taken; slower."""
    length_penalty: Annotated[float, Field(title="Length penalty", ge=-10, le=10, json_schema_extra=DECODING)] = 1.0
    """With beams: above 0 favours long texts, below 0 short ones."""
    early_stopping: Annotated[bool, Field(title="Stop beams early", json_schema_extra=DECODING)] = False
    """With beams: ends as soon as as many texts as beams are complete."""
    repetition_penalty: Annotated[float, Field(title="Repetition penalty", gt=0, le=10, json_schema_extra=DECODING)] = (
        1.0
    )
    """Above 1 makes tokens that were already used less likely."""
    no_repeat_ngram_size: Annotated[
        int, Field(title="No repeated word groups", ge=0, le=100, json_schema_extra=DECODING)
    ] = 0
    """No group of this many tokens is written twice; 0 allows it."""
    sample: Annotated[bool, Field(title="Sample", json_schema_extra=DECODING)] = False
    """Draws each token by its probability instead of taking the likeliest; repeatable for the same rows in batches of the
    same size."""
    temperature: Annotated[float, Field(title="Temperature", gt=0, le=10, json_schema_extra=DECODING)] = 1.0
    """Below 1 sampling becomes more cautious, above 1 wilder."""
    top_k: Annotated[int | None, Field(title="Top k", ge=1, json_schema_extra=DECODING)] = None
    """Samples from this many likeliest tokens only."""
    top_p: Annotated[float | None, Field(title="Top p", gt=0, le=1, json_schema_extra=DECODING)] = None
    """Samples from the likeliest tokens that together reach this probability."""


def generation_settings(settings: WritingSettings, tokenizer: Any) -> GenerationSettings:
    """What the engine is asked for; a text ends with the tokenizer's end token, where it has one."""
    wanted = {name: getattr(settings, name) for name in WritingSettings.model_fields}
    return GenerationSettings(**wanted, eos_token_id=tokenizer.eos_token_id)
