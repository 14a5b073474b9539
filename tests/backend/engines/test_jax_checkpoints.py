"""A checkpoint of the JAX engine is what the model was when it was begun, whatever happens while it is written."""

import errno
import socket
from pathlib import Path

import jax
import numpy as np
import pytest

from backend.contract.errors import RunFailed
from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.jax import checkpoints
from backend.engines.jax.engine import JaxEngine
from tests.backend.engines.example_batches import BERT_TINY, classes, loading
from tests.backend.engines.head_batches import facts, head_batch

TRAINING = TrainingSection(learning_rate=2e-5, seed=7)
HEAD = facts(Head.SEQUENCE_CLASSIFICATION)


def opened(folder: Path, head=HEAD, **changes) -> JaxEngine:
    engine = JaxEngine()
    engine.load(loading(folder, head, TRAINING, **changes))
    return engine


def values(engine: JaxEngine) -> dict[str, np.ndarray]:
    """A copy: what the engine holds is given away by its next step."""
    saved = engine._to_saved_state()
    return {**{name: np.array(value) for name, value in saved.parameters.items()}} | {
        str(number): np.array(value) for number, value in enumerate(saved.optimizer)
    }


def test_steps_taken_while_it_is_written_are_not_in_it(tmp_path: Path):
    engine = opened(BERT_TINY, vocabulary=30522)
    batch = head_batch(HEAD.head, 6)
    engine.train_step([batch], 0, 1e-3)
    expected = values(engine)
    finish = engine.save(tmp_path)
    for step in range(1, 8):
        engine.train_step([batch], step, 1e-3)
    finish()
    resumed = opened(BERT_TINY, vocabulary=30522)
    resumed.restore(tmp_path)
    found = values(resumed)
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name].tobytes() != expected[name].tobytes()] == []


def test_a_checkpoint_of_another_model_is_refused(bert: Path, tmp_path: Path):
    opened(bert).save(tmp_path)()
    with pytest.raises(RunFailed, match=r"another model: classifier\..*new run"):
        opened(bert, classes("a", "b")).restore(tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path):
    # One array alone: the reads of further ones would end after the refusal, and complain into another test.
    held = checkpoints.SavedState({"weight": jax.numpy.arange(4096.0)}, [])
    checkpoints.save(tmp_path, held)()
    for path in (tmp_path / checkpoints.STATE).rglob("*"):
        if path.is_file() and path.parent.name == "d":  # where the numbers lie
            path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunFailed, match=r"cannot be read.*older one"):
        checkpoints.restore(tmp_path, held)


def test_a_checkpoint_of_another_engine_is_refused(bert: Path, tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(RunFailed, match=r"cannot be read.*older one"):
        opened(bert).restore(tmp_path)


def test_a_disk_that_fills_up_meanwhile_is_the_systems_own_error(bert: Path, tmp_path: Path, monkeypatch):
    class Full:
        def save(self, *arguments, **more) -> None: ...
        def close(self) -> None: ...
        def wait_until_finished(self) -> None:
            raise ValueError("RESOURCE_EXHAUSTED: Error writing local file: No space left on device")

    monkeypatch.setattr("orbax.checkpoint.AsyncCheckpointer", lambda handler: Full())
    with pytest.raises(OSError, match="No space left") as refusal:
        opened(bert).save(tmp_path)()
    assert refusal.value.errno == errno.ENOSPC


def test_a_spec_cannot_make_the_writer_listen(bert: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("ENABLE_ORBAX_PROMETHEUS_TELEMETRY", "true")

    def listen(*arguments) -> None:
        raise AssertionError("a socket listens")

    monkeypatch.setattr(socket.socket, "listen", listen)
    opened(bert).save(tmp_path)()


def test_no_file_of_it_holds_code(bert: Path, tmp_path: Path):
    opened(bert).save(tmp_path)()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if path.suffix in {".pkl", ".pickle", ".pt", ".bin", ".py"}]
