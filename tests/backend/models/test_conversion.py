"""Pickled weights are converted once, in a process of their own, and code in them is refused."""

import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertForMaskedLM

from backend.contract.errors import InputError
from backend.contract.redaction import TOKEN_VARIABLES
from backend.models.conversion import convert

within_this_process = pytest.mark.usefixtures("converter_environments")


def same_outputs(first: Path, second: Path) -> bool:
    ids = torch.tensor([[2, 5, 9, 3]])
    models = [BertForMaskedLM.from_pretrained(path, use_safetensors=True).eval() for path in (first, second)]
    with torch.no_grad():
        return torch.equal(*[model(input_ids=ids).logits for model in models])


@within_this_process
def test_a_bin_folder_becomes_the_same_model_in_safetensors(bin_folder, model_folder, tmp_path):
    made = convert(bin_folder, tmp_path / "cache")
    assert same_outputs(made, model_folder)
    assert (
        AutoTokenizer.from_pretrained(made)("fine").input_ids
        == AutoTokenizer.from_pretrained(model_folder)("fine").input_ids
    )
    assert not list(made.glob("*.bin*"))


def test_a_converter_gets_no_token_and_no_hub(bin_folder, tmp_path, monkeypatch, converter_environments):
    for name in TOKEN_VARIABLES:
        monkeypatch.setenv(name, "hf_secret")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    convert(bin_folder, tmp_path / "cache")
    (environment,) = converter_environments
    assert "hf_secret" not in environment.values()
    assert environment["HF_HUB_OFFLINE"] == "1"


@within_this_process
def test_tied_weights_stand_once(bin_folder, model_folder, tmp_path):
    made = convert(bin_folder, tmp_path / "cache")
    assert (made / "model.safetensors").stat().st_size < 1.1 * (model_folder / "model.safetensors").stat().st_size


@within_this_process
def test_a_sharded_bin_folder_becomes_the_same_model(sharded_bin_folder, model_folder, tmp_path):
    made = convert(sharded_bin_folder, tmp_path / "cache")
    assert len(list(made.glob("model-*-of-00002.safetensors"))) == 2
    assert same_outputs(made, model_folder)


@within_this_process
def test_the_same_content_is_converted_once(bin_folder, tmp_path):
    first = convert(bin_folder, tmp_path / "cache")
    written = (first / "model.safetensors").stat().st_mtime_ns
    assert convert(bin_folder, tmp_path / "cache") == first
    assert (first / "model.safetensors").stat().st_mtime_ns == written


@within_this_process
def test_a_half_written_copy_is_made_again(bin_folder, tmp_path):
    first = convert(bin_folder, tmp_path / "cache")
    (first / "model.safetensors").write_bytes(b"half")
    assert (convert(bin_folder, tmp_path / "cache") / "model.safetensors").stat().st_size > 100


class Evil:
    """What an attacker puts into a file of weights."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self):
        import os

        return os.system, (f"touch '{self.proof}'",)


@within_this_process
@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_code_in_a_pickle_is_refused_never_run_and_leaves_nothing(form, bin_folder, tmp_path):
    proof, weights = tmp_path / "proof", bin_folder / "pytorch_model.bin"
    torch.save({"weight": Evil(proof)}, weights, _use_new_zipfile_serialization=form == "zip")
    assert zipfile.is_zipfile(weights) == (form == "zip")
    with pytest.raises(InputError, match=r"contains code .*system.*safetensors"):
        convert(bin_folder, tmp_path / "cache")
    assert not proof.exists()
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    with weights.open("rb") as file:  # the test's own teeth: this file does run code where it is let
        if form == "legacy":
            for _ in range(3):
                pickle.load(file)  # noqa: S301
            pickle.load(file)  # noqa: S301
            assert proof.exists()


@within_this_process
def test_a_file_that_is_no_weights_is_refused_in_one_sentence(bin_folder, tmp_path):
    (bin_folder / "pytorch_model.bin").write_bytes(b"not weights at all")
    with pytest.raises(InputError, match="was not converted"):
        convert(bin_folder, tmp_path / "cache")
