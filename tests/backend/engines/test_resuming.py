"""A restored engine goes on as if nothing had happened, to the bit."""

import sys

import numpy as np
import psutil
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_tensors
from safetensors.torch import save_file as save_tensors

from backend.contract.errors import RunFailed
from backend.contract.spec import TrainingSection
from backend.engines.torch.sparse_embedding import convert_words
from tests.backend.engines.example_batches import BERT_TINY, LANGUAGE, ROUNDING, classes, language_batch, text_batch

TRAINING = TrainingSection(batch_size=4, learning_rate=1e-3, seed=3)
HEAD = classes("negative", "positive")


def steps(engine, numbers, make):
    results = [engine.train_step([make(4, seed=step)], step, 1e-3 / (step + 1)) for step in numbers]
    return engine.read(results)


def saved_weights(engine, folder):
    folder.mkdir()
    engine.save(folder)()
    return load_file(folder / "model.safetensors") | load_file(folder / "optimizer.safetensors")


@pytest.mark.parametrize("folder", ["bert-tiny", "gpt2"])
def test_resumed_steps_equal_uninterrupted_ones_to_the_bit(folder, device, engine_for, tmp_path, request):
    path, head, make, changes = BERT_TINY, HEAD, text_batch, {"vocabulary": 30522}
    if folder == "gpt2":
        path, head, make, changes = (
            request.getfixturevalue("gpt2"),
            LANGUAGE,
            language_batch,
            {"model": {"dropout": 0.1}},
        )
    changes["devices"] = (device,)
    whole = engine_for(path, head, TRAINING, **changes)
    steps(whole, range(3), make)
    (tmp_path / "checkpoint").mkdir()
    finish = whole.save(tmp_path / "checkpoint")
    expected = steps(whole, range(3, 6), make)
    finish()  # what is written is what was there before these steps
    resumed = engine_for(path, head, TRAINING, **changes)
    resumed.restore(tmp_path / "checkpoint")
    losses = [[each.loss for each in some] for some in (steps(resumed, range(3, 6), make), expected)]
    np.testing.assert_allclose(*losses, rtol=ROUNDING[device])
    ends = [saved_weights(engine, tmp_path / name) for engine, name in ((whole, "a"), (resumed, "b"))]
    assert ends[0].keys() == ends[1].keys()
    rounding = 10 * ROUNDING[device]
    assert all(np.allclose(ends[0][name], ends[1][name], rtol=rounding, atol=rounding) for name in ends[0])


def test_saving_and_evaluating_leave_no_trace_in_the_steps_that_follow(engine_for, tmp_path):
    quiet, asked = (engine_for(BERT_TINY, HEAD, TRAINING, vocabulary=30522) for _ in range(2))
    steps(quiet, range(2), text_batch)
    steps(asked, range(2), text_batch)
    asked.evaluate(text_batch(5, seed=9, vocabulary=30522))
    saved_weights(asked, tmp_path / "between")
    asked.export(tmp_path / "exported")
    assert steps(quiet, range(2, 4), text_batch) == steps(asked, range(2, 4), text_batch)


def test_dropout_differs_by_step_and_micro_batch_and_repeats_by_seed(engine_for):
    batch = text_batch(8, vocabulary=30522)
    frozen = TrainingSection(learning_rate=1e-12, weight_decay=0, seed=3)
    engine = engine_for(BERT_TINY, HEAD, frozen, vocabulary=30522)
    first, second, again, split = engine.read(
        [
            engine.train_step([batch], 0, 0.0),
            engine.train_step([batch], 1, 0.0),
            engine.train_step([batch], 0, 0.0),
            engine.train_step([batch, batch], 0, 0.0),
        ]
    )
    assert first == again
    assert len({first.loss, second.loss, split.loss}) == 3


def test_a_checkpoint_of_another_model_is_refused(bert, engine_for, tmp_path):
    engine_for(bert, HEAD, TRAINING).save(tmp_path)()
    with pytest.raises(RunFailed, match=r"another model.*new run"):
        engine_for(bert, classes("a", "b", "c"), TRAINING).restore(tmp_path)


def test_a_damaged_checkpoint_is_refused(bert, engine_for, tmp_path):
    engine = engine_for(bert, HEAD, TRAINING)
    engine.save(tmp_path)()
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(RunFailed, match=r"cannot be read.*older one"):
        engine.restore(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        {"words.rows": np.array([-1, 5])},
        {"words.rows": np.array([5, 30522])},
        {"words.rows": np.array([5, 5])},
        {"words.rows": np.array([5.0, 6.0], dtype=np.float32)},
        {"words.moments": np.zeros((2, 3, 128), dtype=np.float32)},
        {"words.step": np.zeros(2, dtype=np.float32)},
    ],
)
def test_a_state_that_does_not_fit_the_words_is_refused(damage, engine_for, tmp_path):
    engine = engine_for(BERT_TINY, HEAD, TRAINING, vocabulary=30522)
    engine.save(tmp_path)()
    path = tmp_path / "optimizer.safetensors"
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    state = {"words.rows": np.array([5, 6]), "words.moments": np.zeros((2, 2, 128), dtype=np.float32)}
    save_file(load_file(path) | state, path, metadata)
    engine.restore(tmp_path)
    state |= damage
    save_file(load_file(path) | state, path, metadata)
    with pytest.raises(RunFailed, match=r"cannot be read \(its state of 30522 rows.*older one"):
        engine.restore(tmp_path)
    weights = {"words": torch.zeros(30522, 128)}
    with pytest.raises(ValueError, match="does not fit"):  # as any number of processes read it that have shards
        convert_words(load_tensors(path), weights, "words", "")


@pytest.mark.parametrize(("optimizer", "options"), [("adamw", {}), ("sgd", {"momentum": 0.9})])
@pytest.mark.parametrize("value", [torch.zeros(1), torch.zeros(()), torch.zeros(16, dtype=torch.bfloat16)])
def test_a_state_that_does_not_fit_its_weight_is_refused(bert, engine_for, tmp_path, optimizer, options, value):
    """The fused kernels would read and write beyond its end."""
    training = TrainingSection(learning_rate=1e-3, optimizer=optimizer, optimizer_options=options)
    engine = engine_for(bert, HEAD, training)
    engine.train_step([text_batch(3)], 1, 1e-3)
    engine.save(tmp_path)()
    path = tmp_path / "optimizer.safetensors"
    engine.restore(tmp_path)
    state = load_tensors(path)
    moment = next(key for key, values in state.items() if values.shape == (16,))
    save_tensors(state | {moment: value}, path, {"words": "", "scaler": "{}"})
    with pytest.raises(
        RunFailed, match=rf"cannot be read \(its optimizer state does not fit {moment.partition('.')[2]}"
    ):
        engine.restore(tmp_path)


def test_a_checkpoint_is_written_beside_training(engine_for, tmp_path):
    finish = engine_for(BERT_TINY, HEAD, TRAINING, vocabulary=30522).save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "optimizer.safetensors"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no limit of this kind")
def test_without_memory_for_a_copy_a_checkpoint_is_written_at_once(engine_for, tmp_path):
    import resource  # POSIX only

    engine = engine_for(BERT_TINY, HEAD, TRAINING, vocabulary=30522)
    steps(engine, range(1), text_batch)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 8_000_000, before[1]))
    try:
        finish = engine.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    written = load_file(tmp_path / "model.safetensors")
    finish()
    assert written.keys() == load_file(tmp_path / "model.safetensors").keys()
