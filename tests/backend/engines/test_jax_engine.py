"""The JAX engine trains the same models to the same numbers as the torch engine, or refuses them by name."""

import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoConfig

from backend.contract.errors import InputError, RunFailed
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.engine import Compiling, Engine, compile_here
from backend.engines.jax import models
from backend.engines.jax.compilation import CompiledPrograms
from backend.engines.jax.engine import JaxEngine
from backend.engines.jax.model import find_family
from backend.engines.jax.optimizer import Optimizer
from backend.engines.torch.engine import TorchEngine
from backend.models.architectures import explain_unsupported
from tests.backend.engines.example_batches import loading
from tests.backend.engines.head_batches import facts, head_batch, part_of
from tests.backend.engines.tiny_models import ENDS, MODELS, PADDING

RATE = 1e-2
TRAINING = TrainingSection(
    learning_rate=2e-5, weight_decay=0.1, max_gradient_norm=0.5, seed=7, adam_epsilon=1e-4, label_smoothing=0.1
)
NAMES = sorted(one.name.replace("_", "-") for one in pkgutil.iter_modules(models.__path__) if one.name != "family")
KNOWN = [(name, head) for name in NAMES for head in find_family({"model_type": name}).heads]
QUICK = {
    *{name: (name, head) for name, head in reversed(KNOWN) if name != "xlm-roberta"}.values(),
    *{head: (name, head) for name, head in sorted(KNOWN, key=lambda pair: pair[0] == "distilbert")}.values(),
}
"""Every family once (but XLM-RoBERTa, which is RoBERTa) and every head once, on the smallest that has it; the slow
tests compile all pairs."""
ONE_LAYER = {
    (name, head)
    for name, head in QUICK
    if name in {"roberta", "mbart", "marian", "mistral", "qwen2", "mt5"}
    or (name == "distilbert" and head is not Head.SEQUENCE_CLASSIFICATION)
}
"""Those whose very layers another pair stacks: other heads, and families made of another one's layers."""
UNKNOWN = [(name, head) for name in MODELS for head in Head if (name, head) not in KNOWN]


def opened(
    kind: Callable[[], Engine],
    folder: Path,
    head: HeadFacts,
    training: TrainingSection | None = TRAINING,
    **changes: Any,
) -> Engine:
    engine = kind()
    engine.load(loading(folder, head, training, **{"model": {"dropout": 0.0}, **changes}))
    return engine


def both(tiny: Callable[[str], Path], name: str, head: Head, **changes: Any) -> tuple[Engine, Engine]:
    """The same model with the same new head in either engine."""
    padding = {"pad_token_id": PADDING.get(name, 0)}
    jax, torch = (opened(kind, tiny(name), facts(head), **padding, **changes) for kind in (JaxEngine, TorchEngine))
    return jax, torch


def weights(engine: Engine, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir()
    engine.export(folder)
    return load_file(folder / "model.safetensors")


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """What XLA compiles meanwhile."""
    found: list[str] = []

    def listen(event: str, seconds: float, **facts: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


def assert_equal(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("name", "head"),
    [pytest.param(*pair, id="-".join(pair), marks=[] if pair in QUICK else [pytest.mark.slow]) for pair in KNOWN],
)
def test_a_step_in_ragged_parts_and_the_outputs_equal_those_of_torch(name, head, tiny, smallest, tmp_path: Path):
    jax, torch = both(smallest if (name, head) in ONE_LAYER else tiny, name, head)
    batch = head_batch(head, 13, padding=PADDING.get(name, 0), end=ENDS.get(name))
    parts = [part_of(batch, slice(0, 8)), part_of(batch, slice(8, 13))]
    found = [engine.read([engine.train_step(parts, 0, RATE)])[0] for engine in (jax, torch)]
    np.testing.assert_allclose(
        (found[0].loss, found[0].gradient_norm), (found[1].loss, found[1].gradient_norm), rtol=1e-5
    )
    assert_equal(weights(jax, tmp_path / "jax"), weights(torch, tmp_path / "torch"), 1e-5)
    is_token = batch["attention_mask"] == 1
    answers = jax.evaluate(batch)
    for key, value in torch.evaluate(batch).items():
        own = answers[key]
        assert own.shape == value.shape
        if value.shape[:2] == is_token.shape:  # what stands at padding means nothing
            own, value = own[is_token], value[is_token]
        if "top_tokens" not in key:  # of two that are equally likely either may come first
            np.testing.assert_allclose(own, value, rtol=1e-4, atol=2e-5 * max(1.0, np.abs(value).max()), err_msg=key)


def test_what_does_not_fit_into_memory_names_the_setting_that_helps():
    huge = jax.jit(lambda value: jax.numpy.broadcast_to(value, (1 << 46,)) * 2)  # 256 terabytes
    with pytest.raises(RunFailed, match=r"enough memory for this batch; lower hardware\.micro_batch_size") as failed:
        jax.block_until_ready(CompiledPrograms(compile_here).call(huge, "huge", np.float32(1)))
    assert failed.value.code == "out_of_memory"


@pytest.mark.parametrize(("name", "head"), UNKNOWN, ids=[f"{name}-{head}" for name, head in UNKNOWN])
def test_what_the_engine_does_not_know_is_refused_by_name(name, head, tiny):
    with pytest.raises(InputError, match=r"^hardware\.engine: the JAX engine .* choose PyTorch"):
        opened(JaxEngine, tiny(name), facts(head))


REFUSED = {("bart", Head.MASKED_LM), ("mbart", Head.MASKED_LM)}  # which transformers has by the class that answers


def test_every_head_that_transformers_has_for_a_family_is_known():
    configurations = {name: AutoConfig.for_model(name).to_dict() for name in NAMES}
    there = {(name, head) for name in NAMES for head in Head if not explain_unsupported(configurations[name], head)}
    assert there - set(KNOWN) == REFUSED


@pytest.mark.parametrize("kind", [JaxEngine, TorchEngine])
@pytest.mark.parametrize(
    ("name", "head"),
    [
        *((name, Head.QUESTION_ANSWERING) for name in ("llama", "mistral", "qwen2", "qwen3", "t5", "bart")),
        *(("t5", head) for head in (Head.SEQUENCE_CLASSIFICATION, Head.TOKEN_CLASSIFICATION)),
    ],
)
def test_a_head_is_set_upon_the_body_that_the_file_holds(kind, name, head, tiny):
    engine = kind()
    found = engine.load(loading(tiny(name), facts(head), TRAINING))
    tops = ("qa_outputs", "classifier", "classification_head")
    assert found.new_weights
    assert all(each.startswith(tops) for each in found.new_weights)


def test_a_second_step_of_the_same_shape_compiles_nothing(smallest, compilations: list[str]):
    head = facts(Head.SEQUENCE_CLASSIFICATION)
    engine = opened(JaxEngine, smallest("bert"), head)
    batch = head_batch(Head.SEQUENCE_CLASSIFICATION, 13)
    engine.train_step([batch], 0, RATE)
    assert compilations
    compilations.clear()
    engine.train_step([batch], 1, RATE)
    assert not compilations


@pytest.mark.parametrize(
    ("optimizer", "options", "layer_decay"),
    [
        ("adamw", {}, 0.5),
        ("adam", {}, None),
        ("sgd", {"momentum": 0.9}, None),
        ("lion", {}, None),
        ("adafactor", {"scale_parameter": True, "beta1": 0.9, "clip_threshold": 0.5}, None),
        ("adafactor", {"relative_step": True, "warmup_init": True}, None),
    ],
)
def test_five_steps_of_an_optimizer_equal_those_of_torch(
    optimizer, options, layer_decay, bert: Path, smallest, tmp_path: Path
):
    changes = {"optimizer": optimizer, "optimizer_options": options, "layer_decay": layer_decay}
    training = TRAINING.model_copy(update=changes)
    head = facts(Head.SEQUENCE_CLASSIFICATION)
    # With a rate of its own for each layer there must be two; and relative steps go by the sign of mere rounding.
    folder = bert if layer_decay or options.get("relative_step") else smallest("bert")
    engines = [opened(kind, folder, head, training) for kind in (JaxEngine, TorchEngine)]
    for engine in engines:
        for step in range(5):
            engine.train_step([head_batch(head.head, 6)], step, 1e-3)  # of one shape, for each is compiled
    jax, torch = (weights(engine, tmp_path / name) for engine, name in zip(engines, ("jax", "torch"), strict=True))
    if optimizer == "lion":  # gradients of these are nothing but rounding, and Lion goes by their sign
        jax, torch = (
            {name: value for name, value in one.items() if not name.endswith("key.bias")} for one in (jax, torch)
        )
    assert_equal(jax, torch, 2e-5)


def test_gradients_as_small_as_their_limit_are_clipped_as_in_torch():
    training = TrainingSection(optimizer="sgd", weight_decay=0.0, max_gradient_norm=1e-6)
    optimizer, still = Optimizer(training, frozenset(), {"weight": 1.0}), {"weight": np.zeros(4, np.float32)}
    gradients, _ = optimizer.clip({"weight": np.full(4, 1e-6, np.float32)})
    found, _ = optimizer.step(still, optimizer.init(still), gradients, 1.0)
    weight = torch.nn.Parameter(torch.zeros(4))
    weight.grad = torch.full((4,), 1e-6)
    torch.nn.utils.clip_grad_norm_([weight], 1e-6)
    torch.optim.SGD([weight], 1.0).step()
    np.testing.assert_allclose(found["weight"], weight.detach().numpy(), rtol=1e-5)


def test_filler_rows_change_nothing(smallest):
    engine = opened(JaxEngine, smallest("bert"), facts(Head.SEQUENCE_CLASSIFICATION), None)
    batch = head_batch(Head.SEQUENCE_CLASSIFICATION, 5)
    filled = {name: np.concatenate([array, np.zeros_like(array[:3])]) for name, array in batch.items()}
    filled["labels"][5:] = -100
    found = engine.evaluate(filled)["logits"]
    np.testing.assert_allclose(found[:5], engine.evaluate(batch)["logits"], atol=1e-6)
    assert not found[5:].any()


def test_a_resumed_run_goes_on_to_the_bit(smallest, programs: Callable[..., Compiling], tmp_path: Path):
    head = facts(Head.SEQUENCE_CLASSIFICATION)
    steps = [head_batch(head.head, 24)] * 4  # of one shape, for each is compiled, with packed rows
    whole, resumed = (
        opened(JaxEngine, smallest("bert"), head, model={"dropout": 0.1}, compiling=programs("dropout", 0.1))
        for _ in range(2)
    )
    for number in (0, 1):
        whole.train_step([steps[number]], number, RATE)
    finish = whole.save(tmp_path)
    assert finish is not None
    finish()
    resumed.restore(tmp_path)
    for engine in (whole, resumed):
        for number in (2, 3):
            engine.train_step([steps[number]], number, RATE)
    assert_equal(weights(resumed, tmp_path / "resumed"), weights(whole, tmp_path / "whole"), 0)


def test_dropout_differs_by_step_and_not_by_chance(smallest, programs: Callable[..., Compiling]):
    batch, head = head_batch(Head.SEQUENCE_CLASSIFICATION, 24), facts(Head.SEQUENCE_CLASSIFICATION)

    def losses(*steps: int) -> list[float]:
        changes = {"model": {"dropout": 0.1}, "compiling": programs("dropout", 0.1)}
        engine = opened(JaxEngine, smallest("bert"), head, **changes)
        # At a learning rate of 0 every step finds the same weights.
        return [each.loss for each in engine.read([engine.train_step([batch], step, 0.0) for step in steps])]

    first, second = losses(0, 1)
    assert losses(0) == [first] != [second]


def test_what_jax_trained_torch_loads(smallest, tmp_path: Path):
    head = facts(Head.SEQUENCE_CLASSIFICATION)
    trained = opened(JaxEngine, smallest("bert"), head)
    trained.train_step([head_batch(head.head, 6)], 0, RATE)
    weights(trained, tmp_path / "model")
    torch = opened(TorchEngine, tmp_path / "model", head, None)
    batch = head_batch(head.head, 6, seed=1)
    np.testing.assert_allclose(torch.evaluate(batch)["logits"], trained.evaluate(batch)["logits"], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "head", "pattern"),
    [
        ("bert", Head.TOKEN_CLASSIFICATION, "query"),
        ("gpt2", Head.SEQUENCE_CLASSIFICATION, "c_attn"),
        ("t5", Head.SEQ2SEQ_LM, "q"),
    ],
)
@pytest.mark.parametrize("wish", ["embeddings", 1, "encoder", "pattern"])
def test_the_same_parameters_are_frozen_as_in_torch(name, head, pattern, wish, tiny):
    wishes = [pattern if wish == "pattern" else wish]
    trainable = []
    for kind in (JaxEngine, TorchEngine):
        engine = kind()
        loaded = engine.load(loading(tiny(name), facts(head), TRAINING, model={"frozen": wishes}, pad_token_id=0))
        trainable.append((loaded.parameters, loaded.trainable))
    assert trainable[0] == trainable[1]
    assert trainable[0][1] < trainable[0][0]


def test_a_wish_to_freeze_that_meets_nothing_is_refused(bert: Path):
    with pytest.raises(
        InputError, match=r"^model\.frozen: 'decoder' does not match any parameter; the parameters include"
    ):
        opened(JaxEngine, bert, facts(Head.SEQUENCE_CLASSIFICATION), model={"frozen": ["decoder"]})


def test_frozen_parameters_stay(smallest, tmp_path: Path):
    head = facts(Head.SEQUENCE_CLASSIFICATION)
    engine = opened(JaxEngine, smallest("bert"), head, model={"frozen": ["encoder"]})
    before = weights(engine, tmp_path / "before")
    engine.train_step([head_batch(head.head, 6)], 0, RATE)
    after = weights(engine, tmp_path / "after")
    assert {name for name in before if not np.array_equal(before[name], after[name])} == {
        "classifier.bias",
        "classifier.weight",
    }
