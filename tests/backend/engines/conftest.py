"""Tiny real models, built once, and the engine with one of them in place."""

from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from backend.contract.heads import HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.engine import Compiling
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import VOCABULARY, loading
from tests.backend.engines.tiny_models import tiny_model


@pytest.fixture(
    params=["cpu", pytest.param("cuda:0", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]
)
def device(request: pytest.FixtureRequest) -> str:
    """Each device on which the engine computes: the CPU, and a GPU if there is one."""
    return request.param


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT encoder of two small layers, without dropout and without a head."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return _saved(BertModel(config), tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two small layers, whose head is tied to its embedding."""
    torch.manual_seed(2)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=40, bos_token_id=1, eos_token_id=1,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return _saved(GPT2LMHeadModel(config), tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two small layers, whose head is not tied."""
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=40, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    return _saved(LlamaForCausalLM(config), tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model (`tiny_models`), built when it is first asked for."""
    return _folders(tmp_path_factory.mktemp("tiny"), one_layer=False)


@pytest.fixture(scope="session")
def smallest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The same with one layer: JAX traces every layer anew, which is what these tests take their time for."""
    return _folders(tmp_path_factory.mktemp("smallest"), one_layer=True)


def _folders(folder: Path, *, one_layer: bool) -> Callable[[str], Path]:
    def find(name: str) -> Path:
        if not (folder / name).exists():
            _saved(tiny_model(name, one_layer=one_layer), folder / name)
        return folder / name

    return find


@pytest.fixture(scope="module")
def programs() -> Callable[..., Compiling]:
    """Compiles for an engine of JAX, or gives what another one of the same key has compiled, in the order of asking.

    A key stands for model, head, settings and order: of arrays of other shapes a program complains.
    """
    made: dict[tuple[Any, ...], list[Any]] = defaultdict(list)

    def share(*key: Any) -> Compiling:
        numbers = count()

        def compile_or_take(build: Callable[[], Any]) -> Any:
            number = next(numbers)
            if number == len(made[key]):
                made[key].append(build())
            return made[key][number]

        return compile_or_take

    return share


@pytest.fixture
def engine_for() -> Callable[..., TorchEngine]:
    """Makes an engine with the model of a folder in place."""

    def make(folder: Path, head: HeadFacts, training: TrainingSection | None = None, **changes) -> TorchEngine:
        engine = TorchEngine()
        engine.load(loading(folder, head, training, **changes))
        return engine

    return make


def _saved(model, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder
