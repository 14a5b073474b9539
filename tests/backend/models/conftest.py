"""Small real model folders: tensors as transformers names them, a configuration and a tokenizer."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

BERT_TINY = Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one small layer for masked words, with safetensors and a tokenizer."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("bert")
    config = BertConfig(
        vocab_size=30522, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(BERT_TINY / name, folder)
    (folder / "README.md").write_text("---\nlicense: mit\nlanguage: en\n---\n# A model\n")
    return folder


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


@pytest.fixture
def bin_folder(folder: Path) -> Path:
    """The same model with pytorch_model.bin alone, its tied weights tied in the file."""
    model = BertForMaskedLM.from_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


@pytest.fixture
def sharded_bin_folder(bin_folder: Path) -> Path:
    """The same model in two .bin shards with an index."""
    state = torch.load(bin_folder / "pytorch_model.bin", weights_only=True)
    names = list(state)
    places = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        shard = f"pytorch_model-{number:05d}-of-00002.bin"
        torch.save({name: state[name].clone() for name in part}, bin_folder / shard)
        places |= dict.fromkeys(part, shard)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (bin_folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    (bin_folder / "pytorch_model.bin").unlink()
    return bin_folder
