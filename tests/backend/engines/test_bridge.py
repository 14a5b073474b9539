"""What JAX does not know itself it trains through torchax to the same numbers as the torch engine, or refuses it."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file

from backend import catalogue_building
from backend.adapters.lora import Settings as Lora
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.engine import Engine
from backend.engines.jax import Settings
from backend.engines.jax.bridge.environment import bridged
from backend.engines.jax.bridge.module import BridgedModel
from backend.engines.jax.bridge.trial import Trial
from backend.engines.jax.engine import JaxEngine
from backend.engines.jax.layers import Noise
from backend.engines.jax.model import Model
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.head_batches import facts, head_batch, part_of
from tests.backend.engines.material import loading
from tests.backend.engines.several_devices import on_devices
from tests.backend.engines.tiny_models import PADDING

RATE = 1e-2
TRAINING = TrainingSection(weight_decay=0.1, max_gradient_norm=0.5, seed=7, adam_epsilon=1e-4, label_smoothing=0.1)
BRIDGE = Settings(bridge=True)
QUICK = [
    ("electra", Head.SEQUENCE_CLASSIFICATION),
    ("gpt_neo", Head.CAUSAL_LM),
]
SLOW = [
    ("pegasus", Head.SEQ2SEQ_LM),  # whose sinusoids are parameters that no gradient reaches
    ("electra", Head.SEQUENCE_REGRESSION),
    ("electra", Head.TOKEN_CLASSIFICATION),
    ("electra", Head.QUESTION_ANSWERING),
    ("electra", Head.MULTIPLE_CHOICE),
    ("electra", Head.MASKED_LM),
    ("albert", Head.MASKED_LM),
    ("albert", Head.MULTIPLE_CHOICE),
    ("deberta-v2", Head.SEQUENCE_CLASSIFICATION),
    ("xlnet", Head.SEQUENCE_CLASSIFICATION),
    ("gpt_neo", Head.SEQUENCE_CLASSIFICATION),
    ("falcon", Head.CAUSAL_LM),
    ("bloom", Head.CAUSAL_LM),
]
PAIRS = [*QUICK, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in SLOW)]
ELECTRA = facts(Head.SEQUENCE_CLASSIFICATION)


def opened(kind: Callable[[], Engine], folder: Path, head: Head = ELECTRA.head, **changes: Any) -> Any:
    engine = kind()
    values = {"training": TRAINING, "model": {"dropout": 0.0}, **({"hardware": BRIDGE} if kind is JaxEngine else {})}
    engine.load(loading(folder, facts(head), **{**values, **changes}))
    return engine


def step(engine: Engine, head: Head, number: int = 0, **changes: Any) -> tuple[float, float]:
    """Loss and gradient norm of one step in ragged parts."""
    batch = head_batch(head, 13, **changes)
    parts = [part_of(batch, slice(0, 8)), part_of(batch, slice(8, 13))]
    found = engine.read([engine.train_step(parts, number, RATE)])[0]
    return found.loss, found.gradient_norm


def weights(engine: Engine, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir()
    engine.export(folder)
    return load_file(folder / "model.safetensors")


def assert_equal(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance, err_msg=name)


def refusal(folder: Path, head: Head = ELECTRA.head, **changes: Any) -> InputError:
    with pytest.raises(InputError) as refused:
        opened(JaxEngine, folder, head, **changes)
    return refused.value


@pytest.mark.parametrize(("name", "head"), PAIRS)
def test_a_step_in_ragged_parts_and_the_outputs_equal_those_of_torch(name, head, tiny, tmp_path: Path):
    padding = PADDING.get(name, 0)
    jax, torch = (opened(kind, tiny(name), head, pad_token_id=padding) for kind in (JaxEngine, TorchEngine))
    np.testing.assert_allclose(step(jax, head, padding=padding), step(torch, head, padding=padding), rtol=1e-5)
    assert_equal(weights(jax, tmp_path / "jax"), weights(torch, tmp_path / "torch"), 1e-5)
    batch = head_batch(head, 13, padding=padding)
    is_token = batch["attention_mask"] == 1
    ours = jax.evaluate(batch)
    for key, value in torch.evaluate(batch).items():
        own = ours[key]
        assert own.shape == value.shape
        if value.shape[:2] == is_token.shape:  # what stands at padding means nothing
            own, value = own[is_token], value[is_token]
        if "top_tokens" not in key:  # of two that are equally likely either may come first
            np.testing.assert_allclose(own, value, rtol=1e-4, atol=2e-5, err_msg=key)


def test_five_steps_equal_those_of_torch(tiny, tmp_path: Path):
    engines = [opened(kind, tiny("albert")) for kind in (JaxEngine, TorchEngine)]
    for engine in engines:
        for number in range(5):
            engine.train_step([head_batch(ELECTRA.head, 6)], number, 1e-3)  # of one shape, for each is compiled
    ours, theirs = (weights(one, tmp_path / name) for one, name in zip(engines, ("jax", "torch"), strict=True))
    assert_equal(ours, theirs, 2e-5)


@pytest.mark.slow
def test_dropout_differs_by_step_and_not_by_chance(tiny):
    batch = head_batch(ELECTRA.head, 6)

    def losses() -> list[float]:
        engine = opened(JaxEngine, tiny("electra"), model={"dropout": 0.3})
        start = {name: np.array(value) for name, value in engine._parameters.items()}
        found = []
        for number in (0, 1):
            engine._parameters = {name: jax.numpy.asarray(value) for name, value in start.items()}
            found.append(engine.read([engine.train_step([batch], number, RATE)])[0].loss)
        return found

    first = losses()
    assert first[0] != first[1]
    assert losses() == first


@pytest.mark.slow
def test_a_resumed_run_goes_on_to_the_bit(tiny, tmp_path: Path):
    batch = head_batch(ELECTRA.head, 6)
    whole, first, second = (opened(JaxEngine, tiny("electra"), model={"dropout": 0.1}) for _ in range(3))
    whole.train_step([batch], 0, RATE)
    whole.train_step([batch], 1, RATE)
    first.train_step([batch], 0, RATE)
    first.save(tmp_path)()
    second.restore(tmp_path)
    second.train_step([batch], 1, RATE)
    assert_equal(weights(second, tmp_path / "second"), weights(whole, tmp_path / "whole"), 0)


def test_what_it_trained_transformers_opens(tiny, tmp_path: Path):
    engine = opened(JaxEngine, tiny("electra"))
    step(engine, ELECTRA.head)
    weights(engine, tmp_path / "model")
    model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert model.config.id2label == {0: "a", 1: "b", 2: "c"}
    batch = head_batch(ELECTRA.head, 6)
    given = {name: torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        expected = model.eval()(**given).logits.numpy()
    np.testing.assert_allclose(engine.evaluate(batch)["logits"], expected, atol=1e-5)


@pytest.mark.slow
def test_layers_are_computed_once_more_where_memory_is_short(tiny):
    batch, traced, found = head_batch(ELECTRA.head, 6), [], []
    for wanted in (False, True):
        training = TRAINING.model_copy(update={"gradient_checkpointing": wanted})
        engine = opened(JaxEngine, tiny("electra"), training=training, model={"dropout": 0.1})
        arrays = {name: jax.numpy.asarray(value) for name, value in engine._head.arrays(batch).items()}
        noise = Noise(jax.random.key(0))
        loss = partial(engine._loss, arrays=arrays, noise=noise)
        traced.append(str(jax.make_jaxpr(loss)(engine._parameters)))
        found.append(engine.read([engine.train_step([batch], 0, RATE)])[0])
    assert [text.count("= remat2[") for text in traced] == [0, 2]  # one for each layer
    np.testing.assert_allclose(found[1].loss, found[0].loss, rtol=1e-6)
    np.testing.assert_allclose(found[1].gradient_norm, found[0].gradient_norm, rtol=1e-5)


def test_bfloat16_is_near_float32(tiny):
    exact, near = (
        step(opened(JaxEngine, tiny("electra"), precision=precision), ELECTRA.head)
        for precision in ("float32", "bfloat16")
    )
    assert exact != near
    np.testing.assert_allclose(near, exact, rtol=0.05)


def test_filler_rows_change_nothing(tiny):
    engine = opened(JaxEngine, tiny("electra"))
    batch = head_batch(ELECTRA.head, 5)
    filled = {name: np.concatenate([array, np.zeros_like(array[:3])]) for name, array in batch.items()}
    filled["labels"][5:] = -100
    found = engine.evaluate(filled)["logits"]
    np.testing.assert_allclose(found[:5], engine.evaluate(batch)["logits"], atol=1e-6)
    assert not found[5:].any()


def test_a_family_of_ours_needs_no_bridge(tiny):
    assert isinstance(opened(JaxEngine, tiny("bert"))._model, Model)


def test_without_the_wish_it_is_offered(tiny):
    said = refusal(tiny("electra"), hardware=Settings())
    assert str(said) == (
        "hardware.engine: the JAX engine does not know the architecture 'electra'; switch on hardware.bridge, or choose "
        "PyTorch"
    )


def test_where_it_is_not_installed_the_command_is_named(tiny, monkeypatch: pytest.MonkeyPatch):
    is_installed = catalogue_building._is_installed
    monkeypatch.setattr(catalogue_building, "_is_installed", lambda name: name != "torchax" and is_installed(name))
    for hardware in (Settings(), BRIDGE):
        assert "torchax missing; install with: pip install 'burnish[bridge]'" in str(
            refusal(tiny("electra"), hardware=hardware)
        )


def test_what_a_model_decides_by_values_is_refused_by_name(tiny):
    said = refusal(tiny("xlm"), Head.MASKED_LM)
    assert str(said).startswith("hardware.bridge: torchax cannot compute this xlm model (")
    assert str(said).endswith("; choose PyTorch")


def test_a_function_that_torchax_does_not_have_is_named(tmp_path: Path):
    config = transformers.MixtralConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=32, num_local_experts=4, max_position_embeddings=40, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    transformers.MixtralForCausalLM(config).save_pretrained(tmp_path)
    assert "torchax cannot compute this mixtral model (Operator with name aten::" in str(
        refusal(tmp_path, Head.CAUSAL_LM)
    )


def test_a_variant_of_a_family_of_ours_goes_over_it(tmp_path: Path):
    config = transformers.BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=40, tie_word_embeddings=False,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    said = str(refusal(tmp_path, Head.MASKED_LM, hardware=Settings()))
    assert "does not know an output layer of its own of bert; switch on hardware.bridge" in said
    assert isinstance(opened(JaxEngine, tmp_path, Head.MASKED_LM, training=None)._model, BridgedModel)


@pytest.mark.parametrize(
    ("name", "head", "changes", "words"),
    [
        ("electra", ELECTRA.head, {"adapter": Lora()}, "^adapter: hardware.bridge trains whole models"),
        ("xlm", Head.QUESTION_ANSWERING_BEAM, {}, "^hardware.bridge: the bridge knows no question answering beam"),
        ("m2m_100", Head.SEQ2SEQ_LM, {}, r"^model\.config\.\w+layerdrop: hardware.bridge cannot leave layers out"),
    ],
)
def test_what_it_does_not_have_is_refused_by_name(name, head, changes, words, tiny):
    with pytest.raises(InputError, match=words):
        opened(JaxEngine, tiny(name), head, **changes)


@pytest.mark.parametrize("what", ["outputs", "gradients"])
def test_a_model_that_would_compute_something_else_is_not_trained(what: str, tiny):
    module = transformers.AutoModelForSequenceClassification.from_pretrained(tiny("electra"))
    trial = Trial(module, ELECTRA.head, trains=True)
    if what == "gradients":
        trial._gradients = {name: 2 * value for name, value in trial._gradients.items()}
    model = BridgedModel(module, ELECTRA.head, trial.constant)
    parameters = model.take_parameters()
    if what == "outputs":
        parameters["classifier.out_proj.bias"] = parameters["classifier.out_proj.bias"] + 1
    with pytest.raises(InputError, match=f"its {what} differ from PyTorch's by"):
        trial.check(model, parameters)


def test_what_torch_does_not_differentiate_is_a_constant_to_jax():
    def compute(value: jax.Array) -> jax.Array:
        with bridged(None) as env:
            x = env.j2t_iso(value)
            with torch.no_grad():
                known = torch.square(x)
            return (known * x).sum().jax()

    assert jax.grad(compute)(jax.numpy.array([3.0])) == 9.0  # and not 27


def test_a_function_with_a_derivative_of_its_own_is_none():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            raise AssertionError("JAX takes its own")

    def compute(value: jax.Array) -> jax.Array:
        with bridged(None) as env:
            return Square.apply(env.j2t_iso(value)).sum().jax()

    assert jax.grad(compute)(jax.numpy.array([3.0])) == 6.0


def test_the_process_stays_as_it_was():
    with bridged(None):
        pass
    assert torch.backends.mha.get_fastpath_enabled()
    assert "ENABLE_RUNTIME_UPTIME_TELEMETRY" not in os.environ


def test_a_run_of_torch_goes_on_with_its_weights(tiny, tmp_path: Path):
    theirs = opened(TorchEngine, tiny("pegasus"), Head.SEQ2SEQ_LM)
    step(theirs, Head.SEQ2SEQ_LM)
    theirs.save(tmp_path)()
    ours = opened(JaxEngine, tiny("pegasus"), Head.SEQ2SEQ_LM)
    assert "goes on from it" in ours.restore(tmp_path)
    assert_equal(weights(ours, tmp_path / "ours"), weights(theirs, tmp_path / "theirs"), 0)


@pytest.mark.slow
def test_devices_that_divide_the_weights_lose_what_one_loses(tmp_path: Path):
    config = transformers.ElectraConfig(
        vocab_size=200, embedding_size=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=256, max_position_embeddings=42,
    )  # fmt: skip
    transformers.ElectraModel(config).save_pretrained(tmp_path)
    task = {"do": "train", "model": str(tmp_path), "head": ELECTRA.head, "vocabulary": 200, "dropout": 0.1}
    divided = {"bridge": True, "parallelism": "fsdp"}
    alone, shared = on_devices({**task, "settings": {"bridge": True}}, {**task, "devices": 4, "settings": divided})
    np.testing.assert_allclose(shared["losses"], alone["losses"], rtol=0, atol=1e-5)
    assert shared["share"] < 0.4 < alone["share"]
