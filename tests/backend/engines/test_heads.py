"""What heads fix: losses, their denominators, and what evaluation returns."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from backend.contract.heads import IGNORE
from backend.contract.spec import TrainingSection
from backend.engines.torch import target_logits
from tests.backend.engines.example_batches import LANGUAGE, classes, language_batch, text_batch

FROZEN = TrainingSection(learning_rate=1e-12, weight_decay=0)


def plain_logits(engine, folder, auto, batch):
    engine.export(folder)
    model = auto.from_pretrained(folder).eval()
    ids, mask = (torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask"))
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask).logits


def with_filler(batch, rows):
    """The batch with empty rows behind it."""
    filled = {}
    for name, array in batch.items():
        filled[name] = np.concatenate([array, np.zeros((rows, *array.shape[1:]), array.dtype)])
    return filled


def test_class_weights_and_label_smoothing_enter_the_loss_as_torch_has_them(bert, engine_for, tmp_path):
    weights, batch = (1.0, 3.0, 0.5), text_batch(13, labels=3)
    training = FROZEN.model_copy(update={"label_smoothing": 0.1})
    engine = engine_for(bert, classes("a", "b", "c", weights=weights), training)
    logits = plain_logits(engine, tmp_path, AutoModelForSequenceClassification, batch)
    expected = cross_entropy(
        logits, torch.from_numpy(batch["labels"]), weight=torch.tensor(weights), label_smoothing=0.1
    )
    assert engine.read([engine.train_step([batch], 0, 0.0)])[0].loss == pytest.approx(expected.item(), abs=1e-6)


def test_logits_of_classes_equal_transformers(bert, engine_for, tmp_path):
    engine, batch = engine_for(bert, classes("a", "b")), text_batch(7)
    expected = plain_logits(engine, tmp_path, AutoModelForSequenceClassification, batch)
    np.testing.assert_allclose(engine.evaluate(batch)["logits"], expected, atol=1e-6)


def test_a_tokens_loss_and_prediction_stand_at_the_token(gpt2, engine_for, tmp_path):
    engine, batch = engine_for(gpt2, LANGUAGE), language_batch(5)
    logits = plain_logits(engine, tmp_path, AutoModelForCausalLM, batch)
    found = engine.evaluate(batch)
    expected = cross_entropy(
        logits[:, :-1].flatten(0, 1), torch.from_numpy(batch["labels"][:, 1:]).flatten(), reduction="none"
    ).view(5, -1)
    np.testing.assert_allclose(found["token_loss"][:, 1:], expected, atol=1e-5)
    targets = batch["labels"][:, 1:] != IGNORE
    assert np.array_equal(found["token_prediction"][:, 1:][targets], logits[:, :-1].argmax(-1)[targets])
    assert found["token_loss"].dtype == np.float32
    assert found["token_prediction"].dtype == np.int32
    assert not found["token_loss"][batch["labels"] == IGNORE].any()
    assert not found["token_loss"][:, 0].any()


@pytest.mark.parametrize("folder", ["bert", "gpt2"])
def test_filler_rows_change_no_step_and_no_output(folder, engine_for, request):
    make, head = (text_batch, classes("a", "b")) if folder == "bert" else (language_batch, LANGUAGE)
    batch = make(5)
    plain, filled = (engine_for(request.getfixturevalue(folder), head, FROZEN) for _ in range(2))
    step, other = plain.train_step([batch], 0, 1e-3), filled.train_step([with_filler(batch, 3)], 0, 1e-3)
    assert plain.read([step]) == filled.read([other])
    for name, values in plain.evaluate(batch).items():
        found = filled.evaluate(with_filler(batch, 3))[name]
        assert np.array_equal(found[:5], values)
        assert not found[5:].any()


def test_a_loss_in_chunks_is_the_whole_loss(gpt2, engine_for, monkeypatch):
    training, batch = TrainingSection(learning_rate=1e-3, label_smoothing=0.1), language_batch(9)
    whole = engine_for(gpt2, LANGUAGE, training)
    expected, outputs = whole.read([whole.train_step([batch], 0, 1e-3)])[0], whole.evaluate(batch)
    monkeypatch.setattr(target_logits, "_CHUNK_ELEMENTS", 600)
    cut = engine_for(gpt2, LANGUAGE, training)
    found = cut.read([cut.train_step([batch], 0, 1e-3)])[0]
    assert found.loss == pytest.approx(expected.loss, abs=1e-6)
    assert found.gradient_norm == pytest.approx(expected.gradient_norm, abs=1e-5)
    np.testing.assert_allclose(cut.evaluate(batch)["token_loss"], outputs["token_loss"], atol=1e-5)


def test_packed_segments_do_not_see_each_other(llama, engine_for):
    engine, batch = engine_for(llama, LANGUAGE), language_batch(2)
    lengths = batch["attention_mask"].sum(axis=1)
    tokens = [batch["input_ids"][row, :length] for row, length in enumerate(lengths)]
    ids = np.concatenate(tokens)[None]
    labels = ids.copy()
    labels[0, lengths[0]] = IGNORE
    packed = {
        "input_ids": ids, "labels": labels, "attention_mask": np.ones_like(ids), "row_valid": np.ones(1, dtype=bool),
        "segment": np.repeat([0, 1], lengths)[None],
        "position": np.concatenate([np.arange(length) for length in lengths])[None],
    }  # fmt: skip
    apart = engine.evaluate(batch)["token_loss"]
    together = engine.evaluate(packed)["token_loss"][0]
    expected = np.concatenate([apart[row, :length] for row, length in enumerate(lengths)])
    np.testing.assert_allclose(together, expected, atol=1e-5)


def test_bfloat16_computes_near_float32_and_keeps_float32_weights(bert, engine_for, tmp_path):
    batch, head = text_batch(8), classes("a", "b")
    exact, rough = (engine_for(bert, head, FROZEN, precision=name) for name in ("float32", "bfloat16"))
    losses_found = [engine.read([engine.train_step([batch], 0, 0.0)])[0].loss for engine in (exact, rough)]
    assert losses_found[0] != losses_found[1]
    assert losses_found[0] == pytest.approx(losses_found[1], rel=0.02)
    assert {each.dtype for each in rough._model.parameters()} == {torch.float32}
