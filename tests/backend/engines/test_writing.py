"""Whole batches are written as transformers writes each prompt alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.rpc.generation import GenerationSettings, GenerationStopped
from backend.contract.spec import TrainingSection
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import PADDING

SETTINGS = {
    "greedy": GenerationSettings(max_new_tokens=8),
    "beams": GenerationSettings(
        max_new_tokens=8, num_beams=2, repetition_penalty=2.5, length_penalty=1.0, early_stopping=True
    ),
    "long beams": GenerationSettings(max_new_tokens=8, num_beams=3, length_penalty=2.0),
    "no pair twice": GenerationSettings(max_new_tokens=8, no_repeat_ngram_size=2),
    "at least six": GenerationSettings(max_new_tokens=8, min_new_tokens=6),
}
DECODERS = ["gpt2", "llama", "opt", "bloom"]
ENCODER_DECODERS = ["t5", "bart", "marian", "m2m_100"]
EVERY_WAY = {"gpt2", "t5"}
"""A decoder and an encoder-decoder that write in every way; the others greedily, BART with its own beams too, and slowly in the rest."""
WAYS = [
    pytest.param(name, settings, id=f"{name}-{way}", marks=[] if quick else [pytest.mark.slow])
    for name in (*DECODERS, *ENCODER_DECODERS)
    for way, settings in SETTINGS.items()
    for quick in [name in EVERY_WAY or way == "greedy" or (name, way) == ("bart", "beams")]
]


def prompts(name, rows=5):
    """A batch of ragged rows: padded in front for a decoder."""
    padding = PADDING.get(name, 0)
    batch = head_batch(Head.SEQUENCE_REGRESSION, rows, seed=3, padding=padding)
    del batch["labels"]
    if name in DECODERS:
        lengths = batch["attention_mask"].sum(axis=1, keepdims=True)
        width = batch["attention_mask"].shape[1]
        places = (np.arange(width) + lengths) % width
        for key in ("input_ids", "attention_mask"):
            batch[key] = np.take_along_axis(batch[key], places, axis=1)
    return batch


def ready(name, engine_for, tiny, **changes):
    head = Head.CAUSAL_LM if name in DECODERS else Head.SEQ2SEQ_LM
    return engine_for(tiny(name), facts(head), pad_token_id=PADDING.get(name, 0), **changes)


def written_alone(name, folder, batch, settings, **given):
    """Each row by itself through transformers' generate, up to the end token."""
    auto = AutoModelForCausalLM if name in DECODERS else AutoModelForSeq2SeqLM
    model: Any = auto.from_pretrained(folder).eval()
    model.generation_config.pad_token_id = PADDING.get(name, 0)
    if settings.eos_token_id is not None:
        model.generation_config.eos_token_id = settings.eos_token_id
    ends = model.generation_config.eos_token_id
    answers = []
    for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
        alone = torch.from_numpy(ids[mask == 1])[None]
        found = model.generate(
            alone, attention_mask=torch.ones_like(alone), do_sample=False, max_new_tokens=settings.max_new_tokens,
            min_new_tokens=settings.min_new_tokens, num_beams=settings.num_beams,
            length_penalty=settings.length_penalty, early_stopping=settings.early_stopping,
            repetition_penalty=settings.repetition_penalty, no_repeat_ngram_size=settings.no_repeat_ngram_size, **given,
        )[0].tolist()  # fmt: skip
        known = len(alone[0]) if name in DECODERS else 1 + sum(each.shape[1] for each in given.values()) - len(given)
        new = found[known:]
        answers.append(new[: new.index(ends)] if ends in new else new)
    return answers


def lists(written):
    return [ids.tolist() for ids in written]


@pytest.mark.parametrize(("name", "settings"), WAYS)
def test_a_padded_batch_is_written_as_each_prompt_alone(name, settings, engine_for, tiny):
    batch = prompts(name, rows=3)
    expected = written_alone(name, tiny(name), batch, settings)
    assert lists(ready(name, engine_for, tiny).generate(batch, settings)) == expected
    assert len({tuple(each) for each in expected}) > 1


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_the_end_token_and_what_follows_are_cut_away(name, engine_for, tiny):
    engine, batch = ready(name, engine_for, tiny), prompts(name)
    free = lists(engine.generate(batch, GenerationSettings(max_new_tokens=8, eos_token_id=59)))
    end = free[0][3]
    cut = lists(engine.generate(batch, GenerationSettings(max_new_tokens=8, eos_token_id=end)))
    assert cut == [each[: each.index(end)] if end in each else each for each in free]
    assert min(map(len, cut)) < 8


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_lengths_count_new_tokens_alone(name, engine_for, tiny):
    settings = GenerationSettings(max_new_tokens=4, min_new_tokens=4)
    assert {len(ids) for ids in ready(name, engine_for, tiny).generate(prompts(name), settings)} <= {3, 4}
    free = GenerationSettings(max_new_tokens=4, eos_token_id=59, min_new_tokens=4)
    assert {len(ids) for ids in ready("gpt2", engine_for, tiny).generate(prompts("gpt2"), free)} == {4}


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_filler_rows_write_nothing(name, engine_for, tiny):
    engine, batch = ready(name, engine_for, tiny), prompts(name)
    longer = {key: np.concatenate([array, np.zeros_like(array[:2])]) for key, array in batch.items()}
    found = lists(engine.generate(longer, SETTINGS["greedy"]))
    assert found == [*lists(engine.generate(batch, SETTINGS["greedy"])), [], []]
    nothing = {key: np.zeros_like(array) for key, array in batch.items()}
    assert lists(engine.generate(nothing, SETTINGS["greedy"])) == [[]] * 5


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_sampling_repeats_by_seed_whatever_came_before(name, engine_for, tiny):
    engine, batch = ready(name, engine_for, tiny), prompts(name)

    def draw(seed):
        return lists(engine.generate(batch, GenerationSettings(max_new_tokens=6, sample=True, top_k=20, seed=seed)))

    first = draw(1)
    torch.manual_seed(99)
    other = draw(2)
    assert draw(1) == first != other


def test_sampling_keeps_to_the_likeliest_tokens(engine_for, tiny):
    engine, batch = ready("gpt2", engine_for, tiny), prompts("gpt2")
    narrow = GenerationSettings(max_new_tokens=6, sample=True, top_k=1)
    assert lists(engine.generate(batch, narrow)) == lists(
        engine.generate(batch, GenerationSettings(max_new_tokens=6, repetition_penalty=1.0))
    )


def test_an_answer_goes_on_from_the_decoders_prompt(engine_for, tiny):
    batch, settings = prompts("m2m_100"), SETTINGS["beams"]
    start = torch.tensor([[2, 7]])
    expected = written_alone("m2m_100", tiny("m2m_100"), batch, settings, decoder_input_ids=start)
    batch["decoder_prompt"] = np.full((5, 1), 7)
    assert lists(ready("m2m_100", engine_for, tiny).generate(batch, settings)) == expected


def test_a_model_whose_answers_start_with_a_language_starts_with_the_prompt(engine_for, tiny):
    engine, batch = ready("mbart", engine_for, tiny), prompts("mbart")
    batch["decoder_prompt"] = np.full((5, 1), 7)
    found = lists(engine.generate(batch, SETTINGS["greedy"]))
    model: Any = engine._model
    ids, mask = (torch.from_numpy(batch[key]) for key in ("input_ids", "attention_mask"))
    written = model.generate(ids, attention_mask=mask, decoder_start_token_id=7, max_new_tokens=8, do_sample=False)
    assert [each[:8] for each in found] == [
        each[: each.index(2)] if 2 in each else each for each in written[:, 1:].tolist()
    ]


def test_forced_and_suppressed_tokens_of_the_model_are_obeyed(engine_for, tiny):
    engine, batch = ready("bart", engine_for, tiny), prompts("bart")
    plain = lists(engine.generate(batch, SETTINGS["greedy"]))
    unwanted = sorted({token for ids in plain for token in ids})
    engine._model.generation_config.suppress_tokens = unwanted
    engine._model.generation_config.forced_bos_token_id = 33
    found = lists(engine.generate(batch, SETTINGS["greedy"]))
    assert not {token for ids in found for token in ids[1:]} & set(unwanted)
    assert {ids[0] for ids in found} == {33}


def test_a_models_own_beams_do_not_replace_the_settings(engine_for, tiny):
    engine, batch = ready("bart", engine_for, tiny), prompts("bart")
    greedy = lists(engine.generate(batch, SETTINGS["greedy"]))
    for key, value in {"num_beams": 4, "length_penalty": 2.0, "no_repeat_ngram_size": 3, "min_length": 20}.items():
        setattr(engine._model.generation_config, key, value)
    assert lists(engine.generate(batch, SETTINGS["greedy"])) == greedy


def test_writing_ends_where_the_positions_end(engine_for, tiny):
    batch = prompts("gpt2")
    found = ready("gpt2", engine_for, tiny).generate(batch, GenerationSettings(max_new_tokens=100, eos_token_id=59))
    assert {len(ids) for ids in found} <= set(range(40 - batch["input_ids"].shape[1] + 1))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", ["gpt2", "opt", "bart"])
def test_a_prompt_that_is_continued_equals_one_of_a_batch(name, settings, engine_for, tiny):
    engine, batch = ready(name, engine_for, tiny), prompts(name)
    prompt = batch["input_ids"][0][batch["attention_mask"][0] == 1].tolist()
    assert list(engine.continue_prompt(prompt, settings)) == lists(engine.generate(batch, settings))[0]


def test_writing_between_steps_changes_no_step(engine_for, tiny):
    training, batch = TrainingSection(learning_rate=1e-3, seed=4), head_batch(Head.SEQ2SEQ_LM, 6)
    quiet, asked = (engine_for(tiny("t5"), facts(Head.SEQ2SEQ_LM), training, model={"dropout": 0.2}) for _ in range(2))
    expected = quiet.read([quiet.train_step([batch], step, 1e-3) for step in range(2)])
    first = asked.train_step([batch], 0, 1e-3)
    asked.generate(prompts("t5"), GenerationSettings(max_new_tokens=3, sample=True))
    assert asked.read([first, asked.train_step([batch], 1, 1e-3)]) == expected


def test_a_model_without_a_start_token_is_refused_by_the_key_that_helps(engine_for, tiny):
    engine = ready("mbart", engine_for, tiny)
    engine._model.generation_config.bos_token_id = None
    with pytest.raises(InputError, match=r"decoder_start_token_id"):
        engine.generate(prompts("mbart"), SETTINGS["greedy"])


@pytest.mark.parametrize("beams", [1, 2], ids=["greedy", "beams"])
@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_writing_stops_between_two_tokens_and_the_model_stays_as_it_was(name, beams, engine_for, tiny):
    engine, batch, asked = ready(name, engine_for, tiny), prompts(name), []
    settings = GenerationSettings(max_new_tokens=16, min_new_tokens=16, num_beams=beams)
    before = lists(engine.generate(batch, settings))

    with pytest.raises(GenerationStopped):
        engine.generate(batch, replace(settings, stop_requested=lambda: asked.append(1) or len(asked) > 3))

    assert len(asked) == 4
    assert lists(engine.generate(batch, settings)) == before


@pytest.mark.parametrize("beams", [1, 2], ids=["greedy", "beams"])
def test_a_text_that_is_written_piece_by_piece_stops_between_two_tokens(beams, engine_for, tiny):
    written = []
    settings = GenerationSettings(
        max_new_tokens=16, min_new_tokens=16, num_beams=beams, stop_requested=lambda: beams > 1 or len(written) == 3
    )

    tokens = ready("gpt2", engine_for, tiny).continue_prompt([5, 6, 7], settings)
    with pytest.raises(GenerationStopped):
        written.extend(tokens)  # one by one, so that `stop_requested` sees how many there are

    assert len(written) == (3 if beams == 1 else 0)
