"""Rows of added tokens: the mean of the pieces that they replace, alike in every engine, in every table, never fewer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from backend.adapters.lora import Settings as Lora
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.initial_weights import NewTokens, resize_embedding
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import VOCABULARY, loading
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import PADDING

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks by the old name
TRAINING = TrainingSection(learning_rate=2e-5, seed=7)
FIRST, SECOND, DRAWN = VOCABULARY, VOCABULARY + 1, VOCABULARY + 2
NEW = NewTokens({FIRST: (5, 9, 11), SECOND: (7,), DRAWN: ()})
SPARE = NewTokens({50: (5, 9), 51: (7, 55)}, known=50)
CASES = {
    "bert": (Head.MASKED_LM, AutoModelForMaskedLM),
    "gpt2": (Head.CAUSAL_LM, AutoModelForCausalLM),
    "llama": (Head.CAUSAL_LM, AutoModelForCausalLM),
    "t5": (Head.SEQ2SEQ_LM, AutoModelForSeq2SeqLM),
    "bart": (Head.SEQ2SEQ_LM, AutoModelForSeq2SeqLM),
    "marian": (Head.SEQ2SEQ_LM, AutoModelForSeq2SeqLM),
}


def opened(kind: Any, folder: Path, head: Head, **changes: Any) -> Any:
    engine = kind()
    values = {"training": TRAINING, "model": {"dropout": 0.0}, "pad_token_id": PADDING.get(folder.name, 0)}
    return engine, engine.load(loading(folder, facts(head), **(values | changes)))


def exported(engine: Any, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir(parents=True)
    engine.export(folder)
    return load_file(folder / "model.safetensors")


def tables(weights: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """What has a row for each token."""
    return {name: each for name, each in weights.items() if len(each) == rows}


def test_a_row_is_the_mean_of_the_rows_of_its_pieces():
    stored = np.arange(12, dtype=np.float32).reshape(4, 3)
    table = resize_embedding("wte.weight", stored, 6, {}, 0, NewTokens({4: (0, 3), 5: (2,)}))
    assert table.tolist() == [*stored.tolist(), [4.5, 5.5, 6.5], [6, 7, 8]]


def test_pieces_that_were_never_trained_do_not_count():
    stored = np.arange(12, dtype=np.float32).reshape(4, 3)
    table = resize_embedding("wte.weight", stored, 5, {}, 0, NewTokens({3: (0, 1), 4: (2, 3)}, known=3))
    assert table[3:].tolist() == [[1.5, 2.5, 3.5], [6, 7, 8]]


@pytest.mark.parametrize("case", CASES)
def test_both_engines_begin_new_rows_alike_in_every_table(case, tiny, tmp_path):
    head, made = CASES[case]
    changes = {"vocabulary": VOCABULARY + 3, "new_tokens": NEW}
    before = tables(exported(opened(TorchEngine, tiny(case), head)[0], tmp_path / "before"), VOCABULARY)
    assert before
    found = []
    for kind in (TorchEngine, JaxEngine):
        engine, account = opened(kind, tiny(case), head, **changes)
        assert (
            account.resized
            == "3 rows added to the vocabulary of 60; 2 rows initialized to the mean of the pieces that "
            "they replace"
        )
        found.append(exported(engine, tmp_path / kind.__name__))
    for weights in found:
        after = tables(weights, VOCABULARY + 3)
        assert after.keys() == before.keys()
        for name, old in before.items():
            assert np.array_equal(after[name][:VOCABULARY], old)
            assert np.allclose(after[name][FIRST], old[[5, 9, 11]].mean(axis=0), atol=1e-7)
            assert np.array_equal(after[name][SECOND], old[7])
    ours, theirs = (tables(weights, VOCABULARY + 3) for weights in found)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    model = made.from_pretrained(tmp_path / "JaxEngine")
    assert model.get_input_embeddings().weight.shape[0] == model.config.vocab_size == VOCABULARY + 3


@pytest.mark.parametrize("case", ["bert", "llama", "t5"])
def test_both_engines_fill_spare_rows_alike_and_cut_none_off(case, tiny, tmp_path):
    head = CASES[case][0]
    before = tables(exported(opened(TorchEngine, tiny(case), head)[0], tmp_path / "before"), VOCABULARY)
    for kind in (TorchEngine, JaxEngine):
        engine, account = opened(kind, tiny(case), head, vocabulary=52, new_tokens=SPARE)
        assert "2 rows in the vocabulary of" in account.resized
        after = tables(exported(engine, tmp_path / kind.__name__), VOCABULARY)
        for name, old in before.items():
            assert np.allclose(after[name][50], old[[5, 9]].mean(axis=0), atol=1e-7)
            assert np.array_equal(after[name][51], old[7])
            others = np.delete(np.arange(VOCABULARY), [50, 51])
            assert np.array_equal(after[name][others], old[others])


def test_an_added_token_whose_row_was_trained_keeps_it(tiny, tmp_path):
    for kind in (TorchEngine, JaxEngine):
        engine, account = opened(kind, tiny("gpt2"), Head.CAUSAL_LM, new_tokens=NewTokens({55: (5, 9)}))
        assert account.resized == ""
        before = load_file(tiny("gpt2") / "model.safetensors")
        assert np.array_equal(
            exported(engine, tmp_path / kind.__name__)["transformer.wte.weight"], before["transformer.wte.weight"]
        )


@pytest.mark.parametrize("new", [NEW, SPARE], ids=["grown", "spare"])
def test_beside_an_adapter_new_tokens_learn_alike_in_both_engines(new, tiny, tmp_path):
    vocabulary = VOCABULARY + 3 if new is NEW else 52
    found = []
    for kind in (TorchEngine, JaxEngine):
        changes = {"vocabulary": vocabulary, "new_tokens": new, "adapter": Lora()}
        engine, account = opened(kind, tiny("gpt2"), Head.CAUSAL_LM, **changes)
        engine.train_step([head_batch(Head.CAUSAL_LM, 4)], 0, 1e-2)
        found.append((account.trainable, exported(engine, tmp_path / kind.__name__)))
    (ours, first), (theirs, second) = found
    assert ours == theirs
    assert all(np.allclose(first[name], second[name], atol=2e-5) for name in first)


def test_tokens_in_spare_rows_cannot_leave_with_an_adapter_alone(tiny):
    for kind in (TorchEngine, JaxEngine):
        with pytest.raises(InputError, match=r"^adapter\.saved: added tokens"):
            opened(kind, tiny("gpt2"), Head.CAUSAL_LM, vocabulary=52, new_tokens=SPARE, adapter=Lora(saved="adapter"))
