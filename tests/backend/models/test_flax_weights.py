"""A model that has only flax_model.msgpack is named as such, converted once after consent, and is the same model."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flax.serialization import msgpack_serialize
from safetensors.numpy import load_file
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from backend.contract.errors import InputError
from backend.models import inspection
from backend.models.location import locate
from backend.models.weights import read_weights, rename_flax_parameters
from tests.backend.engines.tiny_models import MODELS, tiny_model

FAMILIES = (
    "bert", "roberta", "xlm-roberta", "distilbert", "gpt2", "opt", "llama", "mistral", "t5", "mt5", "marian", "bart", "mbart",
)  # fmt: skip
within_this_process = pytest.mark.usefixtures("converter_environments")
_COMPUTED = ("embed_positions",)
"""Of Marian: sines, which Flax computed and did not store."""


def flax_tree(model: PreTrainedModel) -> dict[str, Any]:
    """The parameters as the Flax class of transformers 4 had them: named by the kind of layer that holds them."""
    tree: dict[str, Any] = {}
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    for name, value in model.state_dict().items():
        module_name, _, last = name.rpartition(".")
        module = model.get_submodule(module_name)
        is_sine = model.config.model_type == "marian" and module_name.endswith(_COMPUTED)
        if name in tied or is_sine or name.endswith("position_ids"):
            continue
        array = value.numpy().copy()
        if isinstance(module, torch.nn.Embedding):
            last = "embedding"
        elif isinstance(module, torch.nn.LayerNorm) and last == "weight":
            last = "scale"
        elif isinstance(module, torch.nn.Linear | Conv1D) and last == "weight":
            last, array = "kernel", np.ascontiguousarray(array.T)
        branch = tree
        for part in module_name.split(".") if module_name else []:
            branch = branch.setdefault(part, {})
        branch[last] = array
    return tree


def flax_folder(folder: Path, name: str) -> Any:
    """Writes the folder; gives the torch model."""
    model = tiny_model(name).eval()
    folder.mkdir(exist_ok=True)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    (folder / "flax_model.msgpack").write_bytes(msgpack_serialize(flax_tree(model)))
    return model


def converted(folder: Path, cache: Path) -> Path:
    return locate(str(folder), cache=cache, offline=True, consent_to_convert=True).folder


def outputs(model: Any) -> list[torch.Tensor]:
    inputs: dict[str, Any] = {"input_ids": torch.tensor([[5, 9, 12, 7, 3]])}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.tensor([[0, 8, 11]])
    with torch.no_grad():
        return [each for each in model(**inputs).values() if isinstance(each, torch.Tensor)]


@within_this_process
@pytest.mark.parametrize("name", FAMILIES)
def test_a_converted_family_computes_what_it_did(name: str, tmp_path: Path):
    model = flax_folder(tmp_path / "flax", name)
    made = converted(tmp_path / "flax", tmp_path / "cache")
    loaded, report = MODELS[name]().__class__.from_pretrained(made, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]  # noqa: PT018
    for before, after in zip(outputs(model), outputs(loaded.eval()), strict=True):
        torch.testing.assert_close(
            after, before, atol=1e-6, rtol=1e-6
        )  # memory lies otherwise, so start_digests may round


@within_this_process
def test_consent_is_asked_for_once(tmp_path: Path):
    flax_folder(tmp_path / "flax", "bert")
    with pytest.raises(InputError, match=r"only has weights as flax_model\.msgpack; agree .*--convert-weights"):
        locate(str(tmp_path / "flax"), cache=tmp_path / "cache", offline=True)
    made = converted(tmp_path / "flax", tmp_path / "cache")
    assert locate(str(tmp_path / "flax"), cache=tmp_path / "cache", offline=True).folder == made
    assert not list(made.glob("*.msgpack"))


def test_it_is_named_and_no_danger(tmp_path: Path):
    flax_folder(tmp_path / "flax", "bert")
    found = inspection.describe(str(tmp_path / "flax"))
    assert (found.weights_format, found.needs_conversion, found.safe) == ("flax", True, True)
    assert "flax_model" not in found.problem


@within_this_process
def test_shards_become_shards(tmp_path: Path):
    folder = tmp_path / "flax"
    flax_folder(folder, "bert")
    tree = flax_tree(tiny_model("bert"))
    (folder / "flax_model.msgpack").unlink()
    places = {}
    for number, part in enumerate(("embeddings", "encoder"), 1):
        shard = f"flax_model-0000{number}-of-00002.msgpack"
        (folder / shard).write_bytes(msgpack_serialize({part: tree[part]}))
        places[f"{part}/and/below"] = shard
    (folder / "flax_model.msgpack.index.json").write_text(json.dumps({"weight_map": places}))
    made = converted(folder, tmp_path / "cache")
    assert len(list(made.glob("model-*-of-00002.safetensors"))) == 2
    assert not (made / "flax_model.msgpack.index.json").exists()
    assert {name.split(".")[0] for name in read_weights(made).shapes} == {"embeddings", "encoder"}


def test_a_family_whose_names_are_not_known_is_refused_by_name(tmp_path: Path):
    flax_folder(tmp_path / "flax", "bert")
    config = json.loads((tmp_path / "flax" / "config.json").read_text())
    (tmp_path / "flax" / "config.json").write_text(json.dumps({**config, "model_type": "big_bird"}))
    found = inspection.describe(str(tmp_path / "flax"))
    assert not found.needs_conversion
    assert "flax_model.msgpack of the architecture big_bird cannot be converted" in found.problem


@within_this_process
@pytest.mark.parametrize("content", [b"", b"no msgpack at all", msgpack_serialize({"step": 3}), msgpack_serialize([1])])
def test_what_is_no_table_of_arrays_is_refused_in_one_sentence(content: bytes, tmp_path: Path):
    flax_folder(tmp_path / "flax", "bert")
    (tmp_path / "flax" / "flax_model.msgpack").write_bytes(content)
    with pytest.raises(InputError, match=r"flax_model\.msgpack was not converted: [^\n]+; use a model") as refusal:
        converted(tmp_path / "flax", tmp_path / "cache")
    assert "Traceback" not in str(refusal.value)


def test_without_flax_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    flax_folder(tmp_path / "flax", "bert")
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "flax.py").write_text("raise ModuleNotFoundError('no flax', name='flax')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "blocked"))
    with pytest.raises(InputError, match=r"flax is not installed.*burnish\[jax\]"):
        converted(tmp_path / "flax", tmp_path / "cache")


def test_half_numbers_of_a_tpu_become_whole_ones():
    import ml_dtypes  # comes with jax

    values = np.array([[1.5, -2.25]], ml_dtypes.bfloat16)
    found = rename_flax_parameters({"params": {"dense": {"kernel": values}}})
    assert found["dense.weight"].dtype == np.float32
    assert found["dense.weight"].tolist() == [[1.5], [-2.25]]


def test_a_parameter_that_no_family_has_is_refused_by_name():
    with pytest.raises(ValueError, match="layer/conv_kernel is not a parameter"):
        rename_flax_parameters({"layer": {"conv_kernel": np.zeros(2)}})


def test_no_torch_is_needed(tmp_path: Path):
    flax_folder(tmp_path / "flax", "gpt2")
    import subprocess

    code = (
        "import sys\nsys.modules['torch'] = None\nfrom pathlib import Path\n"
        "from backend.engines.jax.convert_weights import main\n"
        "sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    (tmp_path / "made").mkdir()
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "flax"), str(tmp_path / "made")], check=True)
    made = load_file(tmp_path / "made" / "model.safetensors")
    assert made["transformer.h.0.attn.c_attn.weight"].shape == (16, 48)
