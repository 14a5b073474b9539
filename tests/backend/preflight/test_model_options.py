"""A spec's open settings are checked by their owners before anything is written."""

import shutil
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.preflight import model_options
from backend.preflight.model_options import (
    check_adapter,
    check_master_weights,
    check_model_options,
    check_optimizer,
    check_weights,
    describe_merging,
)
from backend.preflight.resolve import resolve

MODEL = resource("demo", "bert-tiny")


def spec(**sections):
    values = {
        "task": {"type": "text_classification"},
        "model": {"name_or_path": str(MODEL), **sections.pop("model", {})},
        "data": {"train": "train.csv", "validation": 0.1},
        **sections,
    }
    return resolve(values, Path("/"))


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        (
            {"training": {"optimizer": "adamx"}},
            "training.optimizer: there is no optimizer 'adamx'; choose one of adafactor",
        ),
        (
            {"training": {"optimizer": "sgd", "optimizer_options": {"momentun": 0.9}}},
            "training.optimizer_options.momentun: there is no such option; sgd has momentum, nesterov",
        ),
        (
            {"training": {"optimizer_options": {"momentum": 0.9}}},
            "training.optimizer_options.momentum: there is no such option; adamw has no options of its own",
        ),
        (
            {"training": {"optimizer": "sgd", "optimizer_options": {"nesterov": True}}},
            "training.optimizer_options.nesterov: True cannot be used: nesterov requires a momentum",
        ),
        ({"adapter": {"type": "lore"}}, "adapter.type: there is no adapter 'lore'; choose one of lora"),
        ({"adapter": {"type": "lora", "rang": 4}}, "adapter.rang: no such setting; did you mean rank?"),
        ({"adapter": {"type": "lora", "rank": 0}}, "adapter.rank: 0 cannot be used"),
        ({"adapter": {"type": "lora"}, "model": {"frozen": [1]}}, "model.frozen: with an adapter every weight"),
        ({"adapter": {"type": "lora"}, "model": {"initialise": "from_config"}}, "adapter: new weights must all be"),
        (
            {"evaluation": {"metrics": ["exactness"]}},
            "evaluation.metrics: there is no metric 'exactness'; choose one of none",
        ),
    ],
)
def test_a_wrong_setting_is_refused_with_the_way_out(sections, sentence):
    with pytest.raises(InputError) as caught:
        spec(**sections)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"model": {"config": {"num_hiden_layers": 1}}}, "no such key; did you mean num_hidden_layers"),
        ({"model": {"config": {"num_hidden_layers": "two"}}}, "'two' cannot be used; the model's file has 2"),
        ({"model": {"config": {"num_labels": 3}}}, "this cannot be changed here; they come from the task"),
        ({"model": {"tokenizer_options": {"do_lower_cas": True}}}, "did you mean do_lower_case"),
        ({"model": {"frozen": ["*.layers.0.*"]}}, "'*.layers.0.*' does not match any parameter of this model"),
        (
            {"adapter": {"type": "lora", "targets": ["query", "quary"]}},
            "this model has no module named 'quary'; its modules include",
        ),
    ],
)
def test_what_the_model_does_not_know_is_refused_by_name(sections, sentence):
    with pytest.raises(InputError) as caught:
        check_model_options(spec(**sections), MODEL)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"config": {"num_hidden_layers": 1, "hidden_dropout_prob": 0}}},
        {"model": {"frozen": ["embeddings", 1, "bert.encoder.layer.1", "*.layer.0.*", "classifier"]}},
        {"model": {"tokenizer_options": {"do_lower_case": False, "added_tokens": ["zyzzyva"]}}},
        {"adapter": {"type": "lora", "targets": ["query", "value"]}},
    ],
)
def test_what_the_model_knows_passes(sections):
    check_model_options(spec(**sections), MODEL)


def test_a_folder_without_weights_leaves_names_to_the_engine(tmp_path):
    shutil.copy(MODEL / "config.json", tmp_path)
    check_model_options(spec(model={"frozen": ["nothing.like.it"]}), tmp_path)


LORA = {"adapter": {"type": "lora"}}


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({}, "nf4 is for weights that are not trained, and this run trains all of them in float32; add an adapter"),
        (
            {"hardware": {"engine": "jax"}, **LORA},
            "JAX holds all weights in float32; choose float32, or train with PyT",
        ),
        ({"model": {"initialise": "from_config", "frozen": [1]}}, "new weights are drawn in float32; choose auto"),
    ],
)
def test_weights_that_cannot_be_quantized_are_refused_with_the_way_out(sections, sentence):
    model = {"weights": "nf4", **sections.pop("model", {})}
    with pytest.raises(InputError) as caught:
        check_weights(spec(model=model, **sections))
    assert str(caught.value).startswith(f"model.weights: {sentence}")


def test_a_quantized_base_that_is_saved_merged_is_told():
    assert "saved in float32" in describe_merging(spec(model={"weights": "nf4"}, **LORA))
    assert describe_merging(spec(model={"weights": "bfloat16"}, **LORA)) == ""
    alone = {"adapter": {**LORA["adapter"], "saved": "adapter"}}
    assert describe_merging(spec(model={"weights": "nf4"}, **alone)) == ""


def test_quantized_weights_need_their_package(monkeypatch):
    wanted = spec(model={"weights": "nf4"}, **LORA)
    check_weights(wanted)
    monkeypatch.setattr(model_options, "QUANTIZER", "no_such_package")
    with pytest.raises(InputError, match=r"nf4 needs bitsandbytes, .* pip install 'burnish\[quantized\]'"):
        check_weights(wanted)


ROUNDED = {"training": {"master_weights": "bfloat16_stochastic"}}


@pytest.mark.parametrize(
    ("sections", "precision", "sentence"),
    [
        ({"hardware": {"engine": "jax"}}, None, "JAX holds what it trains in float32; choose float32, or train with"),
        (LORA, None, "bfloat16_stochastic is for runs that train all weights, and this run trains a part of them"),
        ({"model": {"frozen": [1]}}, None, "bfloat16_stochastic is for runs that train all weights"),
        ({"model": {"initialise": "from_config"}}, None, "new weights are trained in float32; choose float32"),
        (
            {"hardware": {"processes": 2}},
            None,
            "bfloat16_stochastic is for one device; choose float32, or train in one process",
        ),
        ({}, "float32", "bfloat16_stochastic is for runs that compute in bfloat16, and this one computes in float32"),
    ],
)
def test_weights_that_cannot_be_rounded_are_refused_with_the_way_out(sections, precision, sentence):
    check_master_weights(spec(**ROUNDED), "bfloat16")
    with pytest.raises(InputError) as caught:
        check_master_weights(spec(**ROUNDED, **sections), precision)
    assert str(caught.value).startswith(f"training.master_weights: {sentence}")


@pytest.mark.parametrize(
    ("wanted", "engine", "sentence"),
    [
        ("loftq", "torch", "loftq is for weights in 4 or 8 bits; set model.weights to nf4 or int8, or choose pissa"),
        ("pissa", "jax", "JAX does not have pissa; choose default, or train with PyTorch"),
    ],
)
def test_an_adapter_that_cannot_start_so_is_refused_with_the_way_out(wanted, engine, sentence):
    with pytest.raises(InputError) as caught:
        check_adapter(spec(adapter={"type": "lora", "initialization": wanted}, hardware={"engine": engine}))
    assert str(caught.value).startswith(f"adapter.initialization: {sentence}")


def test_an_optimizer_of_bitsandbytes_needs_it_and_a_device_that_it_knows(monkeypatch):
    wanted = spec(training={"optimizer": "paged_adamw_8bit"})
    check_optimizer(wanted, "cuda")
    with pytest.raises(
        InputError, match=r"optimizer: paged_adamw_8bit runs on cuda, and this run would use cpu; choose"
    ):
        check_optimizer(wanted, "cpu")
    monkeypatch.setattr(model_options, "find_spec", {}.get)
    with pytest.raises(InputError, match=r"_8bit needs bitsandbytes, .* pip install 'burnish\[quantized\]'"):
        check_optimizer(wanted)


def test_an_adapter_alone_cannot_be_quantized_for_training(tmp_path: Path):
    shutil.copytree(MODEL, tmp_path / "base")
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(MODEL / "config.json", alone)
    config = f'{{"peft_type": "LORA", "r": 2, "base_model_name_or_path": "{tmp_path / "base"}"}}'
    (alone / "adapter_config.json").write_text(config, encoding="utf-8")
    with pytest.raises(InputError, match="export it first"):
        check_model_options(spec(model={"name_or_path": str(alone), "weights": "nf4"}, **LORA), alone)
