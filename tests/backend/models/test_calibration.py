"""The calibration beside a model's weights: strangers' files are refused, and weights that it is folded into give the same."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.models import calibration
from backend.models.calibration import Calibration, Scaling, fold_into_weights, of_temperature

SMALL = {
    "bert": {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8},
    "roberta": {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8, "pad_token_id": 1},
    "electra": {"hidden_size": 8, "embedding_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8},
    "distilbert": {"dim": 8, "n_heads": 2, "n_layers": 1, "hidden_dim": 8},
    "gpt2": {"n_embd": 8, "n_head": 2, "n_layer": 1, "pad_token_id": 0},
    "bart": {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8},
    "xlnet": {"d_model": 8, "n_head": 2, "n_layer": 1, "d_inner": 8},
}  # fmt: skip


def small_model(kind, folder):
    torch.manual_seed(1)
    end = {"eos_token_id": 2} if kind == "bart" else {}
    config = AutoConfig.for_model(kind, vocab_size=20, num_labels=3, **SMALL[kind], **end)
    AutoModelForSequenceClassification.from_config(config).eval().save_pretrained(folder)


def logits_of(folder):
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(torch.tensor([[5, 6, 7, 8, 2], [9, 10, 11, 12, 2]])).logits.numpy()


QUICK = ("bert", "roberta", "gpt2")


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in SMALL]
)
def test_folded_weights_give_scaled_outputs_in_plain_transformers(tmp_path, kind):
    small_model(kind, tmp_path)
    before = logits_of(tmp_path)
    calibration.write(tmp_path, of_temperature(1.7, 100))
    assert fold_into_weights(tmp_path, of_temperature(1.7, 100))
    assert logits_of(tmp_path) == pytest.approx(before / 1.7, abs=1e-6)
    assert calibration.read(tmp_path) is None  # else it would count twice


def test_one_pair_of_numbers_for_each_label_can_be_folded_too(tmp_path):
    small_model("bert", tmp_path)
    before = logits_of(tmp_path)
    own = Calibration(method="platt", parameters=(Scaling(0.5, 0.1), Scaling(2.0, -0.3), Scaling(1.0, 0.0)), rows=9)
    assert fold_into_weights(tmp_path, own)
    assert logits_of(tmp_path) == pytest.approx(np.stack(own.apply(before)), abs=1e-6)


def test_offsets_do_not_fit_into_a_layer_without_bias(tmp_path):
    small_model("gpt2", tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    assert not fold_into_weights(tmp_path, Calibration(method="platt", parameters=(Scaling(1.0, 0.5),), rows=9))
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_a_layer_in_two_files_is_left_alone(tmp_path):
    small_model("bert", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({"classifier.bias": tensors.pop("classifier.bias")}, tmp_path / "model-00002-of-00002.safetensors")
    save_file(tensors, tmp_path / "model-00001-of-00002.safetensors")
    (tmp_path / "model.safetensors").unlink()
    assert not fold_into_weights(tmp_path, of_temperature(1.7, 100))
    assert (
        load_file(tmp_path / "model-00001-of-00002.safetensors")["classifier.weight"] == tensors["classifier.weight"]
    ).all()


def test_what_is_written_is_read_again(tmp_path):
    calibration.write(tmp_path, of_temperature(1.7, 100))
    found = calibration.read_for(tmp_path, Head.SEQUENCE_CLASSIFICATION, 3)
    assert found is not None
    assert found.temperature == pytest.approx(1.7)
    assert found.apply([np.array([1.7, -3.4])])[0] == pytest.approx([1, -2])
    assert calibration.remove(tmp_path)
    assert calibration.read(tmp_path) is None
    assert not calibration.remove(tmp_path)


GOOD = {"version": 1, "method": "temperature", "parameters": [{"scale": 0.5, "offset": 0}], "rows": 9}


@pytest.mark.parametrize(
    "content",
    [
        "no JSON",
        "[]",
        "[" * 100_000,
        json.dumps(GOOD | {"version": 2}),
        json.dumps(GOOD | {"method": "code"}),
        json.dumps(GOOD | {"more": 1}),
        json.dumps(GOOD | {"parameters": []}),
        json.dumps(GOOD | {"parameters": [{"scale": 0}]}),
        json.dumps(GOOD | {"parameters": [{"scale": "1"}]}),
        json.dumps(GOOD | {"parameters": [{"scale": 1e9}]}),
        '{"version": 1, "method": "temperature", "parameters": [{"scale": NaN}]}',
        json.dumps(GOOD | {"parameters": [{"scale": 1}] * 2}),
    ],
)
def test_a_strangers_calibration_is_refused_in_one_sentence(tmp_path, content):
    (tmp_path / calibration.NAME).write_text(content)
    with pytest.raises(InputError, match="delete the file, then calibrate the model again"):
        calibration.read_for(tmp_path, Head.SEQUENCE_CLASSIFICATION, 3)


def test_a_calibration_of_another_kind_of_model_is_refused(tmp_path):
    calibration.write(tmp_path, of_temperature(1.7, 100))
    with pytest.raises(InputError, match="that of another model"):
        calibration.read_for(tmp_path, Head.TOKEN_CLASSIFICATION, 3)
