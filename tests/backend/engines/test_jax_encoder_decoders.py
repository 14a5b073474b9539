"""BART and its kin in the JAX engine: where a whole text is read, what files call one table, what a model asks of its texts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import TrainingSection
from backend.engines.engine import Compiling, Engine
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import VOCABULARY, loading
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.test_jax_writing import prompts
from tests.backend.engines.tiny_models import PADDING

KINDS = (JaxEngine, TorchEngine)
SEQ2SEQ = facts(Head.SEQ2SEQ_LM)
END = 2
Tiny = Callable[[str], Path]


def opened(kind: Callable[[], Engine], folder: Path, head: Any = SEQ2SEQ, **changes: Any) -> Engine:
    engine = kind()
    engine.load(loading(folder, head, None, **changes))
    return engine


def copied(
    folder: Path, to: Path, config: dict[str, Any] | None = None, generation: dict[str, Any] | None = None
) -> Path:
    """The folder with other keys in its configurations."""
    to.mkdir()
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    for name, changes in (("config.json", config), ("generation_config.json", generation)):
        known = json.loads((to / name).read_text()) if (to / name).exists() else {}
        (to / name).write_text(json.dumps(known | (changes or {})))
    return to


@pytest.mark.parametrize("name", ["bart", "mbart"])
def test_a_text_with_several_end_tokens_is_read_at_the_last(name: str, smallest: Tiny):
    head = facts(Head.SEQUENCE_CLASSIFICATION)
    batch = head_batch(head.head, 5, end=END)
    batch["input_ids"][:, 1] = END
    training = TrainingSection(learning_rate=2e-5, seed=1)
    ours, theirs = KINDS[0](), KINDS[1]()
    for engine in (ours, theirs):
        engine.load(loading(smallest(name), head, training, model={"dropout": 0.0}))
    np.testing.assert_allclose(ours.evaluate(batch)["logits"], theirs.evaluate(batch)["logits"], atol=1e-5)


@pytest.mark.parametrize("name", ["bart", "mbart", "marian"])
def test_tokens_are_added_as_in_torch(name: str, smallest: Tiny):
    changes = {"vocabulary": VOCABULARY + 3, "pad_token_id": PADDING.get(name, 0)}
    batch = head_batch(Head.SEQ2SEQ_LM, 4, padding=PADDING.get(name, 0))
    batch["labels"][:, 0] = VOCABULARY + 1
    ours, theirs = (opened(kind, smallest(name), **changes).evaluate(batch)["token_loss"] for kind in KINDS)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.fixture(scope="module")
def plain_loss(smallest: Tiny, programs: Callable[..., Compiling]) -> np.ndarray:
    """What every token of BART costs where its table stands under the usual name."""
    engine = opened(JaxEngine, smallest("bart"), compiling=programs("token_loss"))
    return engine.evaluate(head_batch(Head.SEQ2SEQ_LM, 4))["token_loss"]


@pytest.mark.parametrize("alias", ["lm_head.weight", "model.encoder.embed_tokens.weight"])
@pytest.mark.parametrize("beside", [True, False], ids=["twice", "alone"])
def test_the_table_of_tokens_may_stand_under_another_name(
    alias: str,
    beside: bool,
    smallest: Tiny,
    plain_loss: np.ndarray,
    programs: Callable[..., Compiling],
    tmp_path: Path,
):
    folder = copied(smallest("bart"), tmp_path / "other")
    tensors = load_file(folder / "model.safetensors")
    tensors[alias] = tensors["model.shared.weight"] if beside else tensors.pop("model.shared.weight")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    engine = opened(JaxEngine, folder, compiling=programs("token_loss"))
    found = engine.evaluate(head_batch(Head.SEQ2SEQ_LM, 4))["token_loss"]
    assert np.array_equal(found, plain_loss)


def test_two_tables_with_other_numbers_are_refused_by_name(tiny: Tiny, tmp_path: Path):
    folder = copied(tiny("bart"), tmp_path / "other")
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.shared.weight"] + 1
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        InputError, match=r"^hardware\.engine: the file contains .* and .* with different values.* choose PyTorch$"
    ):
        opened(JaxEngine, folder)


@pytest.mark.parametrize(
    ("head", "change", "said"),
    [
        (
            SEQ2SEQ,
            {"tie_word_embeddings": False},
            r"does not support a separate output layer of bart; .*choose PyTorch",
        ),
        (SEQ2SEQ, {"decoder_layerdrop": 0.1}, r"does not support layer dropout of bart; .*choose PyTorch"),
        (SEQ2SEQ, {"decoder_start_token_id": None}, r"set model\.config\.decoder_start_token_id"),
        (
            facts(Head.SEQUENCE_REGRESSION),
            {"eos_token_id": [2, 5]},
            r"does not support multiple end-of-text tokens of bart; .*choose",
        ),
    ],
    ids=["untied", "layerdrop", "start", "ends"],
)
def test_unknown_variants_are_refused_by_name(head: Any, change: dict[str, Any], said: str, tiny: Tiny, tmp_path: Path):
    folder = copied(tiny("bart"), tmp_path / "other", change, change if "decoder_start_token_id" in change else None)
    with pytest.raises(InputError, match=said):
        opened(JaxEngine, folder, head)


DEMANDS: dict[str, dict[str, Any]] = {
    "first": {"forced_bos_token_id": 33},
    "last": {"forced_eos_token_id": 7},
    "suppressed": {"suppress_tokens": list(range(10, 40)), "begin_suppress_tokens": list(range(40, 50))},
    "first-suppressed": {"forced_bos_token_id": 33, "begin_suppress_tokens": list(range(3, 32))},
    "runs": {"bad_words_ids": [[each] for each in range(20)] + [[30 + each, 40] for each in range(10)] + [[2]]},
}


@pytest.mark.parametrize("beams", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asked", DEMANDS.values(), ids=DEMANDS)
def test_what_a_model_asks_of_its_texts_is_obeyed_as_in_torch(
    asked, beams: int, smallest: Tiny, programs: Callable[..., Compiling], tmp_path: Path
):
    folder = copied(smallest("bart"), tmp_path / "asking", generation=asked)
    settings, batch = GenerationSettings(max_new_tokens=6, num_beams=beams), prompts("bart")
    engines = [opened(kind, folder, compiling=programs("writing", beams)) for kind in KINDS]
    written = [[row.tolist() for row in engine.generate(batch, settings)] for engine in engines]
    assert written[0] == written[1]
    plain = [row.tolist() for row in opened(TorchEngine, smallest("bart")).generate(batch, settings)]
    assert written[0] != plain


@pytest.mark.parametrize(("key", "samples"), [("encoder_repetition_penalty", False), ("min_p", True)])
def test_a_demand_that_is_not_known_is_refused_by_name(key: str, samples: bool, tiny: Tiny, tmp_path: Path):
    folder = copied(tiny("bart"), tmp_path / "asking", generation={key: 0.5})
    with pytest.raises(InputError, match=rf"asks for {key}, which the JAX engine .* choose PyTorch$"):
        opened(JaxEngine, folder).generate(prompts("bart"), GenerationSettings(max_new_tokens=6, sample=samples))
