"""A run that PyTorch began goes on in JAX: the model as its last checkpoint has it, the optimizer new, and told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.adapters.lora import Settings
from backend.contract.errors import RunFailed
from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.engine import Engine
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch import sparse_embedding
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import loading
from tests.backend.engines.head_batches import facts, head_batch

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks by the old name
TRAINING = TrainingSection(learning_rate=2e-5, seed=7)
HEAD = Head.SEQUENCE_CLASSIFICATION
LORA = Settings(rank=2, dora=True, bias="all")
CASES: dict[str, tuple[str, Head, Settings | None]] = {
    "classifier": ("bert", Head.SEQUENCE_CLASSIFICATION, None),
    "masked words": ("bert", Head.MASKED_LM, None),
    "decoder": ("gpt2", Head.CAUSAL_LM, None),
    "translator": ("marian", Head.SEQ2SEQ_LM, None),
    "text to text": ("t5", Head.SEQ2SEQ_LM, None),
    "adapter": ("bert", Head.SEQUENCE_CLASSIFICATION, LORA),
    "adapter of a decoder": ("gpt2", Head.CAUSAL_LM, LORA),
    "adapter of a table": ("gpt2", Head.CAUSAL_LM, Settings(rank=2, targets=["wpe"])),
}
Tiny = Callable[[str], Path]


def opened(
    kind: type[Any], folder: Path, head: Head, adapter: Settings | None = None, training: TrainingSection = TRAINING
) -> Engine:
    engine = kind()
    engine.load(loading(folder, facts(head), training, model={"dropout": 0.0}, adapter=adapter))
    return engine


def checkpoint(engine: Engine, folder: Path) -> Path:
    folder.mkdir()
    engine.save(folder)()
    return folder


@pytest.mark.parametrize("case", CASES)
def test_the_model_answers_as_the_checkpoint_does(case: str, smallest: Tiny, tmp_path: Path):
    name, head, adapter = CASES[case]
    began, goes_on = (opened(kind, smallest(name), head, adapter) for kind in (TorchEngine, JaxEngine))
    for step in range(3):
        began.train_step([head_batch(head, 6, seed=step)], step, 1e-2)
    folder = checkpoint(began, tmp_path / "checkpoint")
    assert "fresh optimizer" in goes_on.restore(folder)
    asked = head_batch(head, 5, seed=9)
    before, after = began.evaluate(asked), goes_on.evaluate(asked)
    for key in before:
        np.testing.assert_allclose(after[key], before[key], rtol=0, atol=2e-5, err_msg=key)


def test_words_that_never_occurred_have_decayed_all_the_same(smallest: Tiny, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sparse_embedding, "_WORTH_IT", 0)
    decays = TRAINING.model_copy(update={"weight_decay": 10.0})
    began, goes_on = (opened(kind, smallest("bert"), HEAD, training=decays) for kind in (TorchEngine, JaxEngine))
    batch = head_batch(HEAD, 2)
    for step in range(3):
        began.train_step([batch], step, 1e-2)
    goes_on.restore(checkpoint(began, tmp_path / "checkpoint"))
    asked = head_batch(HEAD, 13, seed=9)
    assert not np.isin(asked["input_ids"], batch["input_ids"]).all()
    np.testing.assert_allclose(goes_on.evaluate(asked)["logits"], began.evaluate(asked)["logits"], rtol=0, atol=2e-5)


def test_its_own_checkpoint_is_taken_whole_and_nothing_is_told(smallest: Tiny, tmp_path: Path):
    engine = opened(JaxEngine, smallest("bert"), Head.SEQUENCE_CLASSIFICATION)
    folder = checkpoint(engine, tmp_path / "checkpoint")
    assert engine.restore(folder) == ""


def test_a_checkpoint_of_another_model_is_refused(smallest: Tiny, tmp_path: Path):
    folder = checkpoint(opened(TorchEngine, smallest("gpt2"), Head.CAUSAL_LM), tmp_path / "checkpoint")
    with pytest.raises(RunFailed, match=r"another model: .* does not match; start a new run"):
        opened(JaxEngine, smallest("bert"), Head.SEQUENCE_CLASSIFICATION).restore(folder)
