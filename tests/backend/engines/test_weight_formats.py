"""Weights that are not trained, in less than float32: they answer and train like the float32 ones, and are saved whole."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from backend.adapters.lora import Settings
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.torch import frozen_weights
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import ROUNDING, VOCABULARY, classes, language_batch, loading, text_batch
from tests.benchmarks.frozen_weights import build

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks by the old name
TRAINING = TrainingSection(learning_rate=1e-2, weight_decay=0.0, adam_epsilon=1e-4, seed=7)
LANGUAGE, CLASSES = HeadFacts(Head.CAUSAL_LM), classes("a", "b", "c")
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, intermediate_size=128, num_key_value_heads=2, pad_token_id=0, tie_word_embeddings=False)
    ),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0, attn_pdrop=0, embd_pdrop=0,
            bos_token_id=1, eos_token_id=2,
        )
    ),
    "bert": lambda: BertForMaskedLM(
        BertConfig(**SIZES, intermediate_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    ),
    "t5": lambda: T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
            decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
        )
    ),
}  # fmt: skip
HEADS = {"llama": LANGUAGE, "gpt2": LANGUAGE, "bert": CLASSES, "t5": HeadFacts(Head.SEQ2SEQ_LM)}
ADAPTER = {"rank": 4, "targets": "all-linear"}
QUANTIZED = ["int8", "nf4"]


@pytest.fixture(scope="session", params=MODELS)
def case(request, tmp_path_factory):
    """The name and the folder of a model whose file is in bfloat16, as large models are."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp(request.param)
    MODELS[request.param]().to(torch.bfloat16).save_pretrained(folder)
    return request.param, folder


def opened(
    case,
    weights: str,
    precision: str = "float32",
    training: TrainingSection | None = TRAINING,
    device: str = "cpu",
    **adapter,
):
    engine, (name, folder) = TorchEngine(), case
    settings = Settings(**ADAPTER | adapter) if training is not None else None
    engine.load(
        loading(
            folder, HEADS[name], training, adapter=settings, precision=precision, model={"weights": weights}, devices=(device,)
        )
    )  # fmt: skip
    return engine


def batch_for(name: str, seed: int):
    return text_batch(6, seed, labels=3) if name == "bert" else language_batch(6, seed)


def losses(engine, name: str, steps: range = range(4)) -> list[float]:
    results = [engine.train_step([batch_for(name, step)], step, 1e-2) for step in steps]
    return [each.loss for each in engine.read(results)]


def outputs(engine, name: str):
    return engine.evaluate(batch_for(name, 9))


def assert_close(ours, theirs, tolerance: float):
    for key, value in ours.items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(value, theirs[key], rtol=tolerance, atol=tolerance, err_msg=key)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_weights_of_a_bfloat16_file_train_the_same_to_the_bit_in_half_the_memory(case, precision, device):
    whole, half = (opened(case, weights, precision, device=device) for weights in ("float32", "bfloat16"))
    np.testing.assert_allclose(losses(half, case[0]), losses(whole, case[0]), rtol=ROUNDING[device])
    stored = {name: each for name, each in half._model.named_parameters() if not each.requires_grad}
    matrices = {each.dtype for name, each in stored.items() if each.ndim == 2 and ".wo." not in name}
    assert matrices == {torch.bfloat16}  # transformers keeps the last layer of T5's blocks in float32
    assert all(each.dtype is torch.float32 for each in half._model.parameters() if each.requires_grad)


@pytest.mark.parametrize("weights", QUANTIZED)
def test_quantized_weights_train_like_the_model_of_their_rounded_weights(case, weights, tmp_path, device):
    engine = opened(case, weights, device=device)
    kinds = {type(each).__name__ for each in engine._model.modules()}
    assert {"int8": "Linear8bitLt", "nf4": "Linear4bit"}[weights] in kinds
    engine.export(tmp_path)  # nothing is learned yet
    rounded = opened((case[0], tmp_path), "float32", device=device)
    # LLM.int8 also rounds what goes into a layer.
    assert_close(outputs(engine, case[0]), outputs(rounded, case[0]), {"int8": 0.05}.get(weights, 1e-4))
    if case[0] == "bert":
        return  # its pooler is new, and trained in full; in the saved model it is not new
    ours, theirs = losses(engine, case[0]), losses(rounded, case[0])
    rounding = {"int8": 1e-3, "nf4": 1e-5}[weights] * (1 if device == "cpu" else 10)
    np.testing.assert_allclose(ours, theirs, rtol=rounding)


VARIANTS = [
    *((name, weights, {}) for name in MODELS for weights in ("bfloat16", *QUANTIZED)),
    *(("gpt2", weights, {"dora": True}) for weights in QUANTIZED),
    *(("llama", weights, {"rslora": True, "dora": True}) for weights in ("bfloat16", "nf4")),
    ("gpt2", "nf4", {"initialization": "pissa_niter_16"}),
    ("llama", "int8", {"initialization": "pissa"}),
    ("llama", "nf4", {"initialization": "loftq", "dora": True}),
]


@pytest.mark.parametrize(("case", "weights", "variant"), VARIANTS, indirect=["case"])
def test_a_merged_model_answers_as_base_and_adapter_together(case, weights, variant, tmp_path):
    engine = opened(case, weights, **variant)
    before = outputs(engine, case[0])
    losses(engine, case[0])
    engine.export(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_dir()) == []
    assert {each.dtype for each in load_file(tmp_path / "model.safetensors").values()} == {torch.float32}
    merged = TorchEngine()
    merged.load(loading(tmp_path, HEADS[case[0]]))
    ours, theirs = outputs(merged, case[0]), outputs(engine, case[0])
    if weights == "int8":  # LLM.int8 also rounds what goes into a layer: by far less than what was learned changes
        for name in (name for name, value in ours.items() if value.dtype.kind == "f"):
            learned = np.abs(theirs[name] - before[name]).max()
            assert np.abs(ours[name] - theirs[name]).max() < 0.2 * learned
    else:
        assert_close(ours, theirs, 1e-5)


@pytest.mark.parametrize("case", ["gpt2", "bert"], indirect=True)
@pytest.mark.parametrize("weights", ["bfloat16", "nf4"])
def test_an_adapter_alone_answers_on_its_model_in_the_same_format(case, weights, tmp_path):
    engine = opened(case, weights, saved="adapter")
    losses(engine, case[0])
    engine.export(tmp_path)
    alone = TorchEngine()
    alone.load(loading(tmp_path, HEADS[case[0]], model={"weights": weights}))
    if weights == "nf4":  # what was learned stays beside the weights, whose sum would be float32
        sizes = [sum(each.nbytes for each in one._model.parameters()) for one in (alone, engine)]
        assert sizes[0] <= sizes[1]
    assert_close(outputs(alone, case[0]), outputs(engine, case[0]), 1e-5)
    alone.export(tmp_path / "merged")
    merged = TorchEngine()
    merged.load(loading(tmp_path / "merged", HEADS[case[0]]))
    assert_close(outputs(merged, case[0]), outputs(engine, case[0]), 1e-5)


@pytest.mark.parametrize(
    ("case", "weights", "initialization"),
    [("bert", "nf4", "loftq"), ("gpt2", "int8", "pissa"), ("llama", "nf4", "default")],
    indirect=["case"],
)
def test_a_checkpoint_holds_only_what_trains_and_resumes_to_the_bit(case, weights, initialization, tmp_path, device):
    engine = opened(case, weights, device=device, initialization=initialization)
    losses(engine, case[0], range(2))
    engine.save(tmp_path)()
    trained = {name for name, each in engine._model.named_parameters() if each.requires_grad}
    assert load_file(tmp_path / "model.safetensors").keys() == trained
    again = opened(case, weights, device=device, initialization=initialization)
    again.restore(tmp_path)
    resumed, expected = (losses(each, case[0], range(2, 4)) for each in (again, engine))
    np.testing.assert_allclose(resumed, expected, rtol=ROUNDING[device])


@pytest.mark.parametrize("case", ["gpt2"], indirect=True)
def test_loftq_starts_as_its_paper_says(case):
    """Algorithm 1 of Li et al. 2023, for a matrix that GPT-2's file holds as (inputs, outputs), with alpha ÷ rank = 4."""
    import bitsandbytes

    name = "transformer.h.1.mlp.c_fc"
    layer = opened(case, "nf4", initialization="loftq")._model.get_submodule(name)
    weight = load_file(case[1] / "model.safetensors")[f"{name}.weight"].float().T.contiguous()
    low_rank, errors = torch.zeros_like(weight), []
    for _ in range(5):
        quantized = bitsandbytes.nn.Params4bit(
            weight - low_rank, requires_grad=False, quant_type="nf4", compress_statistics=True
        ).to("cpu")
        rounded = bitsandbytes.functional.dequantize_4bit(quantized.data, quantized.quant_state)
        left, sizes, right = torch.linalg.svd(weight - rounded, full_matrices=False)
        low_rank = left[:, :4] * sizes[:4] @ right[:4]
        errors.append((weight - rounded - low_rank).norm())
    update = 4 * layer.lora_B["default"].weight @ layer.lora_A["default"].weight
    torch.testing.assert_close(frozen_weights.float32_weight(layer.get_base_layer()).T, rounded, rtol=0, atol=1e-6)
    torch.testing.assert_close(update, low_rank, rtol=0, atol=1e-5)
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("case", ["gpt2"], indirect=True)
@pytest.mark.parametrize("initialization", ["pissa", "loftq"])
def test_an_adapter_that_started_from_the_model_answers_on_its_own_weights(case, initialization, tmp_path):
    """They are not rounded to 4 bits as in training, so the answers differ by what is lost beside the adapter."""
    engine = opened(case, "nf4", saved="adapter", initialization=initialization, rank=32)
    losses(engine, "gpt2", range(8))
    engine.export(tmp_path)
    alone, plain = opened(("gpt2", tmp_path), "bfloat16", training=None), opened(case, "float32", training=None)
    ours, theirs, before = (outputs(each, "gpt2")["token_loss"] for each in (alone, engine, plain))
    assert np.abs(ours - theirs).max() < 0.05 * np.abs(theirs - before).max()


@pytest.mark.parametrize("case", ["llama"], indirect=True)
def test_magnitudes_start_as_exact_as_those_of_float32_weights(case):
    half, whole = (opened(case, weights, dora=True) for weights in ("bfloat16", "float32"))
    assert_close(outputs(half, "llama"), outputs(whole, "llama"), 1e-6)


@pytest.mark.parametrize("weights", ["bfloat16", *QUANTIZED])
def test_frozen_layers_are_held_in_the_format_and_saved_whole(weights, tmp_path):
    torch.manual_seed(3)
    MODELS["bert"]().save_pretrained(tmp_path)
    engine = TorchEngine()
    model = {"weights": weights, "frozen": ["embeddings", 1]}
    engine.load(loading(tmp_path, CLASSES, TRAINING, model=model))
    held = {name: each.dtype for name, each in engine._model.named_parameters()}
    assert held["bert.encoder.layer.0.output.dense.weight"] is {"bfloat16": torch.bfloat16, "int8": torch.int8}.get(
        weights, torch.uint8
    )
    assert held["bert.encoder.layer.1.output.dense.weight"] is torch.float32
    trained = load_file(tmp_path / "model.safetensors")["bert.encoder.layer.1.output.dense.weight"]
    assert engine._model.state_dict()["bert.encoder.layer.1.output.dense.weight"].equal(trained)
    losses(engine, "bert")
    (tmp_path / "checkpoint").mkdir()
    engine.save(tmp_path / "checkpoint")()
    restored = TorchEngine()
    restored.load(loading(tmp_path, CLASSES, model=model))
    restored.restore(tmp_path / "checkpoint")
    assert_close(outputs(restored, "bert"), outputs(engine, "bert"), 1e-6)
    engine.export(tmp_path / "saved")
    saved = TorchEngine()
    saved.load(loading(tmp_path / "saved", CLASSES))
    assert_close(outputs(saved, "bert"), outputs(engine, "bert"), {"int8": 0.1}.get(weights, 1e-5))


@pytest.mark.parametrize("case", ["bert"], indirect=True)
def test_an_adapter_on_a_model_that_has_a_head_is_opened_again(case, tmp_path):
    classifier = opened(case, "float32")
    classifier.export(tmp_path / "classifier")
    engine = opened(("bert", tmp_path / "classifier"), "nf4", saved="adapter")
    losses(engine, "bert")
    engine.export(tmp_path / "adapter")
    alone = TorchEngine()
    alone.load(loading(tmp_path / "adapter", CLASSES, model={"weights": "nf4"}))
    assert_close(outputs(alone, "bert"), outputs(engine, "bert"), 1e-5)


@pytest.mark.parametrize("case", ["bert"], indirect=True)
@pytest.mark.parametrize("weights", QUANTIZED)
def test_trained_biases_stay_float32(case, weights):
    engine = opened(case, weights, "bfloat16", bias="all")
    losses(engine, "bert")
    trained = [each for each in engine._model.parameters() if each.requires_grad]
    assert sum(each.ndim == 1 for each in trained) > 10
    assert {each.dtype for each in trained} == {torch.float32}


@pytest.mark.parametrize("case", ["llama"], indirect=True)
def test_automatic_weights_change_no_number(case):
    """They are bfloat16 only if the file is, and if the run computes in it."""
    engine = opened(case, "auto", "bfloat16")
    assert engine._model.model.embed_tokens.weight.dtype is torch.bfloat16
    assert losses(engine, "llama") == losses(opened(case, "float32", "bfloat16"), "llama")
    assert opened(case, "auto")._model.model.embed_tokens.weight.dtype is torch.float32


def test_positions_that_no_file_holds_are_exact(tmp_path):
    torch.manual_seed(3)
    config = MarianConfig(
        vocab_size=VOCABULARY, decoder_vocab_size=VOCABULARY, d_model=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, dropout=0.0,
        pad_token_id=0, decoder_start_token_id=0, eos_token_id=1, forced_eos_token_id=None,
    )  # fmt: skip
    MarianMTModel(config).to(torch.bfloat16).save_pretrained(tmp_path)
    case = "t5", tmp_path
    half, whole = (opened(case, weights, targets=["q_proj"]) for weights in ("bfloat16", "float32"))
    assert losses(half, "t5") == losses(whole, "t5")


@pytest.mark.parametrize(("case", "weights"), [("llama", "int8"), ("t5", "nf4")], indirect=["case"])
def test_a_model_that_only_answers_takes_less_memory(case, weights):
    small, whole = opened(case, weights, training=None), opened(case, "float32", training=None)
    assert sum(each.nbytes for each in small._model.parameters()) < 0.5 * sum(
        each.nbytes for each in whole._model.parameters()
    )
    assert frozen_weights.parameter_count(small._model) == frozen_weights.parameter_count(whole._model)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which files are mapped")
@pytest.mark.parametrize("weights", QUANTIZED)
def test_the_file_is_not_kept_in_memory_beside_quantized_weights(case, weights):
    gc.collect()  # models of other tests may still map it
    engine = opened(case, weights)
    assert str(case[1]) not in Path("/proc/self/maps").read_text()
    assert engine is not None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what memory is a process's own")
@pytest.mark.parametrize(("weights", "megabytes"), [("bfloat16", 240), ("nf4", 110)])
def test_loading_takes_little_more_memory_than_the_weights(weights, megabytes, tmp_path):
    build(tmp_path, 8, "100MB", hidden_size=1024, intermediate_size=2816, vocab_size=16_000)
    largest = 16_000 * 1024 * 4 / 1e6
    command = [sys.executable, "-m", "tests.benchmarks.frozen_weights", "--load", weights, "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["weights"] > megabytes
    assert found["loading"] <= 1.15 * found["weights"] + largest, found
