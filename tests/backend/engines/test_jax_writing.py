"""What the JAX engine writes is, token for token, what the torch engine writes with transformers' own search."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract.heads import Head, HeadFacts
from backend.contract.rpc.generation import GenerationSettings, GenerationStopped
from backend.engines import decoding
from backend.engines.engine import Batch, Engine
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import VOCABULARY, loading
from tests.backend.engines.tiny_models import PADDING

ANSWERING = {"t5", "mt5", "marian", "bart", "mbart"}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "careful": {"repetition_penalty": 1.4, "no_repeat_ngram_size": 2, "min_new_tokens": 5},
    "beams": {"num_beams": 3},
    "long-beams": {"num_beams": 4, "length_penalty": 2.0, "min_new_tokens": 3, "no_repeat_ngram_size": 3},
    "early-beams": {"num_beams": 3, "early_stopping": True, "length_penalty": -1.0, "repetition_penalty": 1.2},
}


def prompts(name: str, rows: int = 5) -> Batch:
    """Random tokens, padded on the left to be continued and on the right to be answered."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(3, 12, rows)
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    mask = mask if name in ANSWERING else mask[:, ::-1].copy()
    ids = np.where(mask, rng.integers(3, VOCABULARY - 1, mask.shape), PADDING.get(name, 0))
    return {"input_ids": ids, "attention_mask": mask, "row_valid": np.ones(rows, dtype=bool)}


def opened(kind: Callable[[], Engine], folder: Path, name: str) -> Engine:
    engine = kind()
    head = HeadFacts(Head.SEQ2SEQ_LM if name in ANSWERING else Head.CAUSAL_LM)
    engine.load(loading(folder, head, pad_token_id=PADDING.get(name, 0)))
    return engine


@pytest.fixture(scope="module")
def model(tiny: Callable[[str], Path], smallest: Callable[[str], Path]) -> Callable[[str], Path]:
    """The folder of a tiny model; of one layer if its layers are another's, which keeps what it has read of two."""
    return lambda name: smallest(name) if name in {"mistral", "mt5", "marian", "mbart"} else tiny(name)


@pytest.fixture(scope="module")
def kept(model: Callable[[str], Path]) -> Callable[[str], Engine]:
    """A JAX engine for a model, made once: it is only asked, and keeps the programs that it has compiled."""
    made: dict[str, Engine] = {}

    def find(name: str) -> Engine:
        if name not in made:
            made[name] = opened(JaxEngine, model(name), name)
        return made[name]

    return find


NAMES = ("gpt2", "llama", "mistral", "qwen3", "opt", "t5", "mt5", "marian", "bart", "mbart")
PAIRS = [(name, way) for name in NAMES for way in WAYS]
QUICK = {
    (name, way)
    for name, way in PAIRS
    if name == "gpt2" or (way == "greedy" and name != "mt5") or (name, way) in {("t5", "beams"), ("bart", "beams")}
}


@pytest.mark.parametrize(
    ("name", "way"),
    [pytest.param(*pair, id="-".join(pair), marks=[] if pair in QUICK else [pytest.mark.slow]) for pair in PAIRS],
)
def test_both_engines_write_the_same(
    name: str, way: str, model: Callable[[str], Path], kept: Callable[[str], Engine]
) -> None:
    settings = GenerationSettings(max_new_tokens=12, **WAYS[way])
    engines = kept(name), opened(TorchEngine, model(name), name)
    ours, theirs = (engine.generate(prompts(name), settings) for engine in engines)
    assert [row.tolist() for row in ours] == [row.tolist() for row in theirs]


def test_sampling_is_repeatable_and_heeds_its_limits(kept: Callable[[str], Engine]) -> None:
    engine = kept("gpt2")
    batch = prompts("gpt2")

    def texts(**changes: Any) -> list[list[int]]:
        found = engine.generate(batch, GenerationSettings(max_new_tokens=8, sample=True, **changes))
        return [row.tolist() for row in found]

    assert texts(seed=1) == texts(seed=1) != texts(seed=2)
    greedy = [row.tolist() for row in engine.generate(batch, GenerationSettings(max_new_tokens=8))]
    assert texts(seed=1, top_k=1) == texts(seed=2, top_p=1e-6) == texts(seed=3, temperature=1e-4) == greedy


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gpt2", {}),
        ("gpt2", {"sample": True, "seed": 3, "top_k": 20, "repetition_penalty": 1.3}),
        ("gpt2", {"num_beams": 3}),
        ("t5", {"no_repeat_ngram_size": 2}),
    ],
    ids=["greedy", "sampled", "beams", "answer"],
)
def test_a_streamed_prompt_is_that_of_a_batch_by_the_same_programs(
    name, settings, kept: Callable[[str], Engine]
) -> None:
    engine, wanted = kept(name), GenerationSettings(max_new_tokens=12, **settings)
    batch = {key: array[:1] for key, array in prompts(name).items()}
    prompt = batch["input_ids"][0][batch["attention_mask"][0] == 1]
    whole = {"input_ids": prompt[None], "attention_mask": np.ones((1, len(prompt)), np.int64)}
    expected = engine.generate(whole | {"row_valid": np.ones(1, dtype=bool)}, wanted)[0].tolist()
    assert isinstance(engine, JaxEngine)
    programs = set(engine._programs._known)
    assert list(engine.continue_prompt(prompt.tolist(), wanted)) == expected
    assert expected
    assert set(engine._programs._known) == programs


def test_an_id_is_shown_before_the_next_is_computed(tiny: Callable[[str], Path]) -> None:
    engine = opened(JaxEngine, tiny("gpt2"), "gpt2")
    assert isinstance(engine, JaxEngine)
    written = engine.continue_prompt([5, 6, 7], GenerationSettings(max_new_tokens=30, eos_token_id=59))
    assert isinstance(next(written), int)
    assert [key[0] for key in engine._programs._known] == ["prompt"]  # no token has been read yet
    assert isinstance(next(written), int)
    assert [key[0] for key in engine._programs._known] == ["prompt", "token"]


def test_one_prompt_is_continued_until_the_positions_end(kept: Callable[[str], Engine]) -> None:
    engine = kept("gpt2")
    written = list(engine.continue_prompt([5] * 35, GenerationSettings(max_new_tokens=50, eos_token_id=59)))
    assert len(written) <= 5  # of 40 positions


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_a_source_is_read_before_the_first_token_and_never_again(name, kept: Callable[[str], Engine]) -> None:
    engine, settings = kept(name), GenerationSettings(max_new_tokens=12, eos_token_id=59)
    assert isinstance(engine, JaxEngine)
    expected = engine.generate(prompts(name), settings)
    passes, rules = engine._writer._start(engine._parameters, prompts(name), settings)
    first = passes.prefill(rules.room)
    hidden, mask = passes._source
    passes._source = hidden * -50, mask
    found = decoding.write(first, passes.advance, passes.prompt, rules)
    assert [row.tolist() for row in found] == [row.tolist() for row in expected]
    assert max(len(row) for row in found) > 2


@pytest.mark.parametrize("beams", [1, 2], ids=["greedy", "beams"])
def test_writing_stops_between_two_tokens(beams: int, kept: Callable[[str], Engine]) -> None:
    engine, batch, asked = kept("gpt2"), prompts("gpt2"), list[int]()
    settings = GenerationSettings(max_new_tokens=8, min_new_tokens=8, num_beams=beams)
    before = [row.tolist() for row in engine.generate(batch, settings)]

    def stop_requested() -> bool:
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(GenerationStopped):
        engine.generate(batch, replace(settings, stop_requested=stop_requested))

    assert len(asked) == 4
    assert [row.tolist() for row in engine.generate(batch, settings)] == before
