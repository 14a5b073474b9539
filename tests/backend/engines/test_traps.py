"""The traps of the reference systems that concern an engine; the numbers are those of part 3 of the specification."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import T5Config, T5ForConditionalGeneration

from backend.contract.heads import IGNORE, Head
from backend.contract.spec import TrainingSection
from backend.engines.torch.engine import TorchEngine
from backend.engines.torch.heads import shift_right
from tests.backend.engines.example_batches import LANGUAGE, VOCABULARY, loading
from tests.backend.engines.head_batches import facts, head_batch, part_of
from tests.backend.engines.tiny_models import PADDING

TRAINING = TrainingSection(learning_rate=1e-2, weight_decay=0, seed=3)
SEQ2SEQ = facts(Head.SEQ2SEQ_LM)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t5", [[0, 11, 12, 13], [0, 21, 0, 0]]),
        ("bart", [[2, 11, 12, 13], [2, 21, 0, 0]]),
        ("m2m_100", [[2, 11, 12, 13], [2, 21, 0, 0]]),
        ("marian", [[59, 11, 12, 13], [59, 21, 59, 59]]),
        ("mbart", [[14, 11, 12, 13], [21, 21, 0, 0]]),  # its last token, a language, goes to the front
    ],
)
def test_1_the_decoder_sees_the_start_token_and_all_labels_but_the_last(name, expected, engine_for, tiny):
    engine = engine_for(tiny(name), SEQ2SEQ, pad_token_id=PADDING.get(name, 0))
    labels = torch.tensor([[11, 12, 13, 14], [21, IGNORE, IGNORE, IGNORE]])
    assert shift_right(engine._model, labels).tolist() == expected


def test_1_the_first_token_of_an_answer_is_trained_from_the_start_token(engine_for, tiny):
    engine, batch = engine_for(tiny("t5"), SEQ2SEQ), head_batch(Head.SEQ2SEQ_LM, 4)
    ids, mask = (torch.from_numpy(batch[key]) for key in ("input_ids", "attention_mask"))
    with torch.no_grad():
        logits = engine._model(
            input_ids=ids, attention_mask=mask, decoder_input_ids=torch.zeros(4, 1, dtype=torch.int64)
        ).logits
    first = torch.from_numpy(batch["labels"][:, 0])
    expected = cross_entropy(logits[:, 0], first, reduction="none")
    np.testing.assert_allclose(engine.evaluate(batch)["token_loss"][:, 0], expected, atol=1e-5)


def test_2_an_end_token_that_is_also_padding_is_still_learnt(engine_for, tiny, tmp_path):
    folder = tmp_path / "padded-with-end"
    config = json.loads((tiny("llama") / "config.json").read_text()) | {"pad_token_id": 2, "eos_token_id": 2}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes((tiny("llama") / "model.safetensors").read_bytes())
    engine = engine_for(folder, LANGUAGE, TRAINING, pad_token_id=2)
    ids = np.array([[5, 2, 6, 2, 2]])
    batch = {
        "input_ids": ids, "attention_mask": np.array([[1, 1, 1, 1, 0]]), "row_valid": np.ones(1, dtype=bool),
        "labels": np.array([[5, 2, 6, 2, IGNORE]]),
    }  # fmt: skip
    before = engine._model.get_input_embeddings().weight[2].clone()
    assert (engine.evaluate(batch)["token_loss"][0] > 0).tolist() == [False, True, True, True, False]
    engine.train_step([batch], 0, 1e-2)
    assert not torch.equal(engine._model.get_input_embeddings().weight[2], before)


def test_10_a_last_batch_of_one_row_is_a_number_not_a_square(engine_for, tiny):
    engine = engine_for(tiny("bert"), facts(Head.SEQUENCE_REGRESSION), TRAINING, model={"dropout": 0.0})
    batch = head_batch(Head.SEQUENCE_REGRESSION, 13)
    numbers = engine.evaluate(batch)["logits"]
    one = part_of(batch, slice(12, 13))
    assert engine.evaluate(one)["logits"].shape == (1,)
    np.testing.assert_allclose(engine.evaluate(one)["logits"], numbers[12:], atol=1e-5)
    step = engine.train_step([part_of(batch, slice(0, 12)), one], 0, 0.0)
    assert engine.read([step])[0].loss == pytest.approx(np.square(numbers - batch["labels"]).mean(), abs=1e-5)


def test_13_the_place_that_tells_whether_there_is_an_answer_is_looked_up(engine_for, tiny):
    engine = engine_for(tiny("xlnet"), facts(Head.QUESTION_ANSWERING_BEAM))
    batch = head_batch(Head.QUESTION_ANSWERING_BEAM, 4)
    first = engine.evaluate(batch | {"cls_index": np.zeros(4, dtype=np.int64)})["cls_logits"]
    assert np.abs(engine.evaluate(batch)["cls_logits"] - first).min() > 1e-6


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("bert", Head.QUESTION_ANSWERING),
        ("distilbert", Head.TOKEN_CLASSIFICATION),
        ("xlnet", Head.SEQUENCE_CLASSIFICATION),
        ("gpt2", Head.SEQUENCE_CLASSIFICATION),
        ("xlm", Head.MULTIPLE_CHOICE),
        ("t5", Head.SEQ2SEQ_LM),
    ],
)
def test_15_a_rows_outputs_do_not_hang_on_how_far_it_was_padded(name, head, engine_for, tiny):
    engine, batch = engine_for(tiny(name), facts(head)), head_batch(head, 6)
    together = engine.evaluate(batch)
    for row in range(6):
        alone = engine.evaluate(part_of(batch, slice(row, row + 1)))
        for key, values in alone.items():
            np.testing.assert_allclose(together[key][row][tuple(map(slice, values[0].shape))], values[0], atol=1e-5)


def test_15_the_loss_of_spans_does_not_hang_on_padding(engine_for, tiny):
    without = {"model": {"dropout": 0.0}}
    engines = [engine_for(tiny("bert"), facts(Head.QUESTION_ANSWERING), TRAINING, **without) for _ in range(2)]
    batch = head_batch(Head.QUESTION_ANSWERING, 4)
    longer = {key: np.pad(array, ((0, 0), (0, 9))) if array.ndim == 2 else array for key, array in batch.items()}
    losses = [
        engine.read([engine.train_step([each], 0, 0.0)])[0].loss
        for engine, each in zip(engines, (batch, longer), strict=True)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_18_the_positions_of_opt_begin_behind_two_spare_rows_and_skip_padding(engine_for, tiny):
    engine = engine_for(tiny("opt"), LANGUAGE)
    table = engine._model.get_input_embeddings()
    assert table.weight.shape == (VOCABULARY, 8)  # narrower than the layers
    ids, places = np.array([[0, 0, 5, 6]]), engine._model.model.decoder.embed_positions.weight
    batch = {"input_ids": ids, "attention_mask": np.array([[0, 0, 1, 1]]), "row_valid": np.ones(1, dtype=bool)}
    found = engine.evaluate(batch)["token_loss"][0, 3]
    with torch.no_grad():
        places[4:] = 9.0  # positions 2 and 3 of padding would be looked up there
    assert engine.evaluate(batch)["token_loss"][0, 3] == found


def own_head(folder, rows):
    """A T5 of version 1.1: its head is its own, whatever the configuration says now."""
    torch.manual_seed(1)
    start: dict[str, Any] = {"decoder_start_token_id": 0}
    config = T5Config(vocab_size=rows, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, **start)
    model = T5ForConditionalGeneration(config)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(rows, 16))
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", ["t5", "mt5", "bart", "marian"])
def test_21_spare_rows_of_a_vocabulary_are_never_cut_off(name, engine_for, tiny):
    engine = engine_for(tiny(name), SEQ2SEQ, TRAINING, vocabulary=VOCABULARY - 12, pad_token_id=PADDING.get(name, 0))
    assert engine._model.get_input_embeddings().weight.shape[0] == VOCABULARY
    assert engine._model.get_output_embeddings().weight.shape[0] == VOCABULARY


@pytest.mark.parametrize("vocabulary", [VOCABULARY, VOCABULARY + 5])
def test_21_a_head_of_its_own_stays_its_own(vocabulary, engine_for, tmp_path):
    folder = own_head(tmp_path / "own", VOCABULARY)
    engine, batch = engine_for(folder, SEQ2SEQ, TRAINING, vocabulary=vocabulary), head_batch(Head.SEQ2SEQ_LM, 4)
    words, last = engine._model.get_input_embeddings().weight, engine._model.get_output_embeddings().weight
    assert last is not words
    assert len(last) == len(words) == vocabulary
    engine.train_step([batch], 0, 1e-2)
    engine.export(tmp_path / "exported")
    again = engine_for(tmp_path / "exported", SEQ2SEQ, vocabulary=vocabulary)
    assert np.array_equal(again.evaluate(batch)["token_loss"], engine.evaluate(batch)["token_loss"])


@pytest.mark.parametrize("name", ["t5", "bart", "marian", "pegasus"])
def test_21_a_shared_head_stays_shared_and_what_is_saved_comes_back(name, engine_for, tiny, tmp_path):
    changes: dict[str, Any] = {"vocabulary": VOCABULARY + 5, "pad_token_id": PADDING.get(name, 0)}
    engine, resumed = (engine_for(tiny(name), SEQ2SEQ, TRAINING, **changes) for _ in range(2))
    batch = head_batch(Head.SEQ2SEQ_LM, 4, padding=PADDING.get(name, 0))
    assert engine._model.get_output_embeddings().weight is engine._model.get_input_embeddings().weight
    engine.train_step([batch], 0, 1e-2)
    (tmp_path / "checkpoint").mkdir()
    engine.save(tmp_path / "checkpoint")()
    engine.export(tmp_path / "exported")
    resumed.restore(tmp_path / "checkpoint")
    exported = TorchEngine()
    loaded = exported.load(loading(tmp_path / "exported", SEQ2SEQ, **changes))
    assert loaded.new_weights == []
    expected = engine.evaluate(batch)["token_loss"]
    for other in (resumed, exported):
        assert np.array_equal(other.evaluate(batch)["token_loss"], expected)
