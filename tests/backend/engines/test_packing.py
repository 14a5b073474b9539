"""Packed texts do not see each other, or the architecture is refused by its name."""

import numpy as np
import pytest

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.contract.spec import TrainingSection
from tests.backend.engines.example_batches import LANGUAGE, language_batch

TRAINING = TrainingSection(learning_rate=1e-3, weight_decay=0, seed=1)


def packed(batch):
    """All rows of the batch behind one another in one row."""
    lengths = batch["attention_mask"].sum(axis=1)
    ids = np.concatenate([row[:length] for row, length in zip(batch["input_ids"], lengths, strict=True)])[None]
    labels = ids.copy()
    labels[0, np.cumsum(lengths)[:-1]] = IGNORE
    return {
        "input_ids": ids, "labels": labels, "attention_mask": np.ones_like(ids), "row_valid": np.ones(1, dtype=bool),
        "segment": np.repeat(np.arange(len(lengths)), lengths)[None],
        "position": np.concatenate([np.arange(length) for length in lengths])[None],
    }  # fmt: skip


@pytest.mark.parametrize("name", ["gpt2", "opt", "llama", "qwen2"])
def test_packed_rows_train_and_measure_like_rows_apart(name, tiny, engine_for):
    batch = language_batch(3)
    apart, together = (engine_for(tiny(name), LANGUAGE, TRAINING, model={"dropout": 0.0}) for _ in range(2))
    lengths = batch["attention_mask"].sum(axis=1)
    expected = apart.evaluate(batch)["token_loss"]
    found = together.evaluate(packed(batch))["token_loss"][0]
    np.testing.assert_allclose(
        found, np.concatenate([row[:n] for row, n in zip(expected, lengths, strict=True)]), atol=1e-4
    )
    steps = apart.train_step([batch], 0, 1e-3), together.train_step([packed(batch)], 0, 1e-3)
    one, other = apart.read(steps[:1])[0], together.read(steps[1:])[0]
    assert one.loss == pytest.approx(other.loss, abs=1e-5)
    assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-4)


def test_an_architecture_that_mixes_packed_texts_is_refused_by_name(tiny, engine_for):
    engine = engine_for(tiny("bloom"), LANGUAGE, TRAINING)
    with pytest.raises(
        InputError, match=r"task\.packing: a bloom model cannot keep the texts in one packed row separate"
    ):
        engine.train_step([packed(language_batch(3))], 0, 1e-3)


def test_a_window_that_packing_would_undo_is_refused(tiny, engine_for):
    engine = engine_for(tiny("llama"), LANGUAGE, TRAINING)
    engine._model.config.sliding_window = 8
    with pytest.raises(InputError, match="sees only 8 tokens back"):
        engine.evaluate(packed(language_batch(3)))


def test_trying_whether_packing_holds_leaves_the_model_in_training(tiny, engine_for):
    engine = engine_for(tiny("gpt2"), LANGUAGE, TRAINING)
    engine.train_step([packed(language_batch(3))], 0, 1e-3)
    assert engine._model.training
