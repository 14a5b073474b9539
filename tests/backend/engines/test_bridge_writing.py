"""What a bridged model writes is, token for token, what the torch engine writes with transformers' own search."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract.generation import GenerationSettings
from backend.contract.heads import Head, HeadFacts
from backend.engines.engine import Batch, Engine
from backend.engines.jax import Settings
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.material import VOCABULARY, loading

HEADS = {"gpt_neo": Head.CAUSAL_LM, "falcon": Head.CAUSAL_LM, "bloom": Head.CAUSAL_LM, "pegasus": Head.SEQ2SEQ_LM}
CASES = [
    ("gpt_neo", {"num_beams": 3}),
    ("pegasus", {}),
    pytest.param("gpt_neo", {"no_repeat_ngram_size": 2}, marks=pytest.mark.slow),
    pytest.param("falcon", {}, marks=pytest.mark.slow),
    pytest.param("bloom", {}, marks=pytest.mark.slow),
    pytest.param("pegasus", {"num_beams": 3, "length_penalty": 2.0}, marks=pytest.mark.slow),
]


def prompts(head: Head, rows: int = 5) -> Batch:
    """Random tokens, padded on the left to be continued and on the right to be answered."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(3, 12, rows)
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    mask = mask if head is Head.SEQ2SEQ_LM else mask[:, ::-1].copy()
    ids = np.where(mask, rng.integers(3, VOCABULARY - 1, mask.shape), 0)
    return {"input_ids": ids, "attention_mask": mask, "row_valid": np.ones(rows, dtype=bool)}


def opened(kind: Callable[[], Engine], folder: Path, head: Head) -> Engine:
    engine = kind()
    engine.load(loading(folder, HeadFacts(head), **({"hardware": Settings(bridge=True)} if kind is JaxEngine else {})))
    return engine


@pytest.mark.parametrize(("name", "way"), CASES)
def test_both_engines_write_the_same(name: str, way: dict[str, Any], tiny: Callable[[str], Path]):
    settings = GenerationSettings(max_new_tokens=12, min_new_tokens=4, **way)
    ours, theirs = (
        opened(kind, tiny(name), HEADS[name]).generate(prompts(HEADS[name]), settings)
        for kind in (JaxEngine, TorchEngine)
    )
    assert [row.tolist() for row in ours] == [row.tolist() for row in theirs]
    assert len({tuple(row) for row in ours}) > 1


def test_a_prompt_is_continued_up_to_the_last_position(tiny: Callable[[str], Path]):
    engine = opened(JaxEngine, tiny("gpt_neo"), Head.CAUSAL_LM)
    written = list(engine.continue_prompt([5, 6, 7], GenerationSettings(max_new_tokens=100, min_new_tokens=100)))
    assert len(written) == 37  # of 40 positions
