"""Text is continued as transformers continues it, and sampling repeats by its seed."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.rpc.generation import GenerationSettings
from backend.engines.decoding import DecodingRules, stream
from tests.backend.engines.example_batches import LANGUAGE
from tests.backend.engines.head_batches import facts

PROMPT = [5, 6, 7, 8]


@pytest.mark.parametrize("folder", ["gpt2", "llama"])
@pytest.mark.parametrize("penalty", [1.0, 1.5])
def test_greedy_ids_equal_those_of_transformers(folder, penalty, engine_for, request):
    path = request.getfixturevalue(folder)
    settings = GenerationSettings(max_new_tokens=12, repetition_penalty=penalty)
    found = list(engine_for(path, LANGUAGE).continue_prompt(PROMPT, settings))
    model: Any = AutoModelForCausalLM.from_pretrained(path)
    ids = torch.tensor([PROMPT])
    expected = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=12, repetition_penalty=penalty,
        pad_token_id=0,
    )  # fmt: skip
    assert found == expected[0, len(PROMPT) :].tolist()


def test_sampling_repeats_by_seed_and_differs_by_seed(gpt2, engine_for):
    engine = engine_for(gpt2, LANGUAGE)
    texts = [list(engine.continue_prompt(PROMPT, GenerationSettings(sample=True, seed=seed))) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_ids_come_while_they_are_made(gpt2, engine_for):
    stream = engine_for(gpt2, LANGUAGE).continue_prompt(PROMPT, GenerationSettings(max_new_tokens=10**9))
    assert isinstance(next(stream), int)


def test_a_text_ends_before_its_end_token(gpt2, engine_for):
    engine = engine_for(gpt2, LANGUAGE)
    free = list(engine.continue_prompt(PROMPT, GenerationSettings(max_new_tokens=8, sample=True, eos_token_id=-1)))
    cut = list(engine.continue_prompt(PROMPT, GenerationSettings(max_new_tokens=8, sample=True, eos_token_id=free[4])))
    assert cut == free[: free.index(free[4])]


def test_a_text_ends_where_the_positions_end(gpt2, engine_for):
    settings = GenerationSettings(max_new_tokens=100, eos_token_id=-1)
    assert len(list(engine_for(gpt2, LANGUAGE).continue_prompt(PROMPT, settings))) == 40 - len(PROMPT)


def drawn(count=400, **settings):
    scores = np.log(np.array([[0.4, 0.3, 0.2, 0.1]], np.float32))
    rules = DecodingRules(GenerationSettings(sample=True, **settings), frozenset(), room=count)
    tokens = list(stream(scores, lambda tokens, rows: scores, np.zeros((1, 0), np.int64), rules))
    return np.bincount(tokens, minlength=4) / count


def test_top_k_keeps_the_k_likeliest():
    assert drawn(top_k=2)[2:].sum() == 0


def test_top_p_keeps_the_fewest_that_reach_it():
    shares = drawn(top_p=0.65)
    assert shares[2:].sum() == 0
    assert shares[:2].all()


def test_a_low_temperature_sharpens():
    assert drawn(temperature=0.1)[0] > 0.9 > drawn()[0]


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_streamed_text_follows_what_the_model_asks_of_its_texts(name, engine_for, tiny):
    head = LANGUAGE if name == "gpt2" else facts(Head.SEQ2SEQ_LM)
    engine, settings = engine_for(tiny(name), head), GenerationSettings(max_new_tokens=6, eos_token_id=-1)
    free = list(engine.continue_prompt(PROMPT, settings))
    engine._model.generation_config.suppress_tokens = [free[0]]
    row = np.array([PROMPT], np.int64)
    batch = {"input_ids": row, "attention_mask": np.ones_like(row), "row_valid": np.ones(1, dtype=bool)}
    found = list(engine.continue_prompt(PROMPT, settings))
    assert found == engine.generate(batch, settings)[0].tolist()
    assert free[0] not in found


def test_what_transformers_alone_can_write_comes_at_once(gpt2, engine_for):
    engine = engine_for(gpt2, LANGUAGE)
    engine._model.generation_config.sequence_bias = [[[9], 100.0]]
    assert list(engine.continue_prompt(PROMPT, GenerationSettings(max_new_tokens=3))) == [9, 9, 9]


def test_what_transformers_cannot_write_is_said_in_one_sentence(gpt2, engine_for):
    engine = engine_for(gpt2, LANGUAGE)
    engine._model.generation_config.sequence_bias = [[[1], "x"]]
    with pytest.raises(InputError, match=r"^model\.name_or_path: .*generation_config\.json \(.*sequence_bias"):
        list(engine.continue_prompt(PROMPT, GenerationSettings(max_new_tokens=3)))
