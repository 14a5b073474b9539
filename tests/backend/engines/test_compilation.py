"""A model whose layers are compiled trains as it does without that, and is saved, resumed and evaluated as usual."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import InternalTorchDynamoError

from backend import registry
from backend.contract.errors import InputError, RunFailed
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.torch import Settings, compilation
from backend.engines.torch.distributed import sharded_model
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import BERT_TINY, LANGUAGE, classes, language_batch, text_batch
from tests.backend.engines.head_batches import head_batch

TRAINING = TrainingSection(learning_rate=1e-3, seed=3)
CHECKPOINTING = TrainingSection(learning_rate=1e-3, seed=3, gradient_checkpointing=True)
HEAD = classes("negative", "positive")
NO_DROPOUT = {"dropout": 0.0}
STEPS = 4

Make = Callable[..., TorchEngine]
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"
    ),  # when it is loaded
    # The compiler does so with functions of bitsandbytes.
    pytest.mark.filterwarnings("ignore:.* should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # PEFT asks by the old name
]


@pytest.fixture
def graphs(monkeypatch) -> list[Any]:
    """What the compiler was given; it leaves the computation as it is, because to translate that takes minutes."""
    found: list[Any] = []

    def keep(graph: Any, inputs: Any) -> Any:
        found.append(graph)
        return graph.forward

    torch.compiler.reset()
    monkeypatch.setattr(compilation, "BACKEND", keep)
    return found


def options(compile: str, **changes: Any) -> dict[str, Any]:
    return {"hardware": Settings(threads=1, compile=compile), **changes}


def losses(engine: TorchEngine, make: Callable[..., Any], numbers: range = range(STEPS)) -> list[float]:
    """Of steps whose batches differ in rows and length."""
    return [each.loss for each in engine.read(train(engine, make, numbers))]


def train(engine: TorchEngine, make: Callable[..., Any] = text_batch, numbers: range = range(STEPS)) -> list[Any]:
    return [engine.train_step([make(3 + step % 3, seed=step)], step, 1e-3) for step in numbers]


def answers(rows: int, seed: int) -> Any:
    return head_batch(Head.SEQ2SEQ_LM, rows + seed % 2)


def test_a_compiled_encoder_with_dropout_trains_as_usual_with_one_program(graphs, engine_for: Make):
    usual, compiled = (
        engine_for(BERT_TINY, HEAD, TRAINING, vocabulary=30522, **options(mode)) for mode in ("never", "always")
    )
    make = lambda rows, seed: text_batch(rows, seed, 30522)  # noqa: E731
    expected = losses(usual, make)
    assert not graphs
    assert losses(compiled, make, range(1)) == pytest.approx(expected[:1], abs=1e-5)
    count = len(graphs)
    assert count
    assert losses(compiled, make, range(1, STEPS)) == pytest.approx(expected[1:], abs=1e-5)
    assert len(graphs) == count, "batches of other sizes, or the second layer, were compiled again"


CASES: dict[str, tuple[str, HeadFacts, Any, dict[str, Any]]] = {
    "lora and checkpointing": ("llama", LANGUAGE, language_batch, {"adapter": {"type": "lora", "rank": 4}}),
    "encoder-decoder": ("t5", HeadFacts(Head.SEQ2SEQ_LM), answers, {}),
    "shared layers": ("albert", HEAD, text_batch, {}),
    "nf4": ("llama", LANGUAGE, language_batch, {"adapter": {"type": "lora"}, "model": {"weights": "nf4"}}),
    "with padding": ("xlnet", HEAD, text_batch, {}),
}


@pytest.mark.parametrize(
    "name", [name if name.startswith("lora") else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_compiled_layers_of_every_kind_train_as_usual(graphs, engine_for: Make, tiny, name: str):
    folder, head, make, changes = CASES[name]
    changes = {**changes, "model": {**NO_DROPOUT, **changes.get("model", {})}}
    if "adapter" in changes:
        settings = registry.find("adapter", "lora", "adapter.type").Settings
        changes["adapter"] = settings.model_validate(changes["adapter"])
    training = CHECKPOINTING if "checkpointing" in name else TRAINING
    usual, compiled = (
        engine_for(tiny(folder), head, training, **options(mode, **changes)) for mode in ("never", "always")
    )
    assert losses(compiled, make) == pytest.approx(losses(usual, make), abs=1e-5)
    assert graphs


def test_what_is_saved_and_evaluated_is_that_of_the_model_itself(graphs, engine_for: Make, bert, tmp_path):
    usual, compiled = (engine_for(bert, HEAD, TRAINING, **options(mode)) for mode in ("never", "always"))
    losses(usual, text_batch)
    losses(compiled, text_batch)
    count = len(graphs)
    one, other = (engine.evaluate(text_batch(5)) for engine in (usual, compiled))
    np.testing.assert_array_equal(one["logits"], other["logits"])
    for name, engine in (("usual", usual), ("compiled", compiled)):
        (tmp_path / name).mkdir()
        engine.save(tmp_path / name)()
        engine.export(tmp_path / name / "model")
    for file in ("model.safetensors", "optimizer.safetensors", "model/model.safetensors"):
        found, expected = load_file(tmp_path / "compiled" / file), load_file(tmp_path / "usual" / file)
        assert found.keys() == expected.keys()
    assert len(graphs) == count, "an evaluation was compiled"


def test_compiling_is_reported_once_and_tries_without_a_trace(graphs, engine_for: Make, bert):
    usual, reported = engine_for(bert, HEAD, TRAINING, **options("never")), []

    def report(build: Callable[[], Any]) -> Any:
        reported.append(len(graphs))
        return build()

    compiled = engine_for(bert, HEAD, TRAINING, **options("always", compiling=report))
    assert losses(compiled, text_batch) == pytest.approx(losses(usual, text_batch), abs=1e-6)
    assert reported == [0]


@pytest.mark.slow
def test_who_is_stopped_while_compiling_has_the_weights_of_before(graphs, engine_for: Make, bert, tmp_path):
    class Stopped(Exception):
        pass

    def stop(build: Callable[[], Any]) -> Any:
        build()  # on a thread that nobody waits for
        raise Stopped

    untouched = engine_for(bert, HEAD, TRAINING, **options("never"))
    stopped = engine_for(bert, HEAD, TRAINING, **options("always", compiling=stop))
    with pytest.raises(Stopped):
        losses(stopped, text_batch)
    for name, engine in (("a", untouched), ("b", stopped)):
        engine.export(tmp_path / name)
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert all(np.array_equal(one[name], other[name]) for name in one)


def fail(*given: Any) -> Any:
    raise ValueError("no such instruction")


COMPILERS: dict[str, Any] = {
    "when it compiles": fail,
    "in the backward pass": aot_autograd(fw_compiler=lambda graph, inputs: graph, bw_compiler=fail),
    "when its program runs": lambda graph, inputs: fail,
}


@pytest.mark.parametrize(
    "when", [when if "compiles" in when else pytest.param(when, marks=pytest.mark.slow) for when in COMPILERS]
)
def test_a_compiler_that_fails_says_what_to_set(monkeypatch, engine_for: Make, bert, when: str):
    torch.compiler.reset()
    monkeypatch.setattr(compilation, "BACKEND", COMPILERS[when])
    with pytest.raises(RunFailed, match=r"could not compile the model .*no such instruction") as failed:
        losses(engine_for(bert, HEAD, TRAINING, **options("always")), text_batch)
    assert (failed.value.code, failed.value.hint) == ("compilation_failed", "Set hardware.compile to never.")


@pytest.mark.parametrize(
    "when", [when if "compiles" in when else pytest.param(when, marks=pytest.mark.slow) for when in COMPILERS]
)
def test_a_run_that_may_do_without_compiling_goes_on_with_the_same_numbers(
    monkeypatch, engine_for: Make, bert, when: str
):
    torch.compiler.reset()
    monkeypatch.setattr(compilation, "BACKEND", COMPILERS[when])
    usual, without = (engine_for(bert, HEAD, TRAINING, **options(mode)) for mode in ("never", "if_possible"))
    expected, found = train(usual), train(without)
    assert [bool(one.warning) for one in found] == [True, False, False, False]
    assert found[0].warning.startswith("PyTorch could not compile the model (")
    assert without.read(found) == usual.read(expected)


@pytest.mark.slow
def test_a_step_whose_program_fails_late_is_computed_again_from_its_start(monkeypatch, engine_for: Make, bert):
    calls, most = [0], [1 << 30]

    def count(graph: Any, inputs: Any) -> Any:
        def run(*given: Any) -> Any:
            calls[0] += 1
            if calls[0] > most[0]:
                raise InternalTorchDynamoError("too many programs")
            return graph.forward(*given)

        return run

    torch.compiler.reset()
    monkeypatch.setattr(compilation, "BACKEND", count)
    usual, without = (engine_for(bert, HEAD, TRAINING, **options(mode)) for mode in ("never", "if_possible"))
    steps = [[text_batch(4, seed=2 * step), text_batch(4, seed=2 * step + 1)] for step in range(3)]
    expected = [usual.train_step(batches, step, 1e-3) for step, batches in enumerate(steps)]
    found = [without.train_step(steps[0], 0, 1e-3)]
    most[0] = calls[0] + calls[0] // 3 + 1  # it was tried and then computed both; now the second micro-batch fails
    found += [without.train_step(batches, step, 1e-3) for step, batches in enumerate(steps[1:], 1)]
    assert [bool(one.warning) for one in found] == [False, True, False]
    for one, other in zip(without.read(found), usual.read(expected), strict=True):
        assert (one.loss, one.gradient_norm) == pytest.approx((other.loss, other.gradient_norm), abs=1e-5)


def test_a_model_without_layers_that_repeat_is_trained_without_compiling_if_it_may(
    monkeypatch, graphs, engine_for: Make, bert
):
    monkeypatch.setattr(sharded_model, "find_blocks", lambda model: [])
    with pytest.raises(InputError, match="has no layers that repeat; set it to never"):
        engine_for(bert, HEAD, TRAINING, **options("always"))
    assert "no layers that repeat" in train(engine_for(bert, HEAD, TRAINING, **options("if_possible")))[0].warning


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("folder", ["bert-tiny", "llama"])
def test_resumed_steps_equal_uninterrupted_ones_to_the_bit(engine_for: Make, tiny, tmp_path, monkeypatch, folder: str):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    changes, head, make = options("always"), LANGUAGE, language_batch
    path = BERT_TINY if folder == "bert-tiny" else tiny(folder)
    if folder == "bert-tiny":
        changes, head = {**changes, "vocabulary": 30522}, HEAD
        make = lambda rows, seed: text_batch(rows, seed, 30522)  # noqa: E731
    usual = engine_for(path, head, TRAINING, **{**changes, **options("never")})
    whole = engine_for(path, head, TRAINING, **changes)
    before = losses(whole, make, range(3))
    assert before == pytest.approx(losses(usual, make, range(3)), abs=1e-5)
    whole.save(tmp_path)()
    expected = losses(whole, make, range(3, 6))
    torch.compiler.reset()  # as another computer, which sees the batches of later steps first
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled there"))
    resumed = engine_for(path, head, TRAINING, **changes)
    resumed.restore(tmp_path)
    assert losses(resumed, make, range(3, 6)) == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator of CUDA")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_compiled_layers_on_cuda_train_as_usual(engine_for: Make, tiny, precision: str):
    changes = {"devices": ("cuda:0",), "precision": precision}
    usual, compiled = (
        engine_for(tiny("llama"), LANGUAGE, TRAINING, **options(mode, **changes)) for mode in ("never", "always")
    )
    rounding = 1e-4 if precision == "float32" else 2e-2
    assert losses(compiled, language_batch) == pytest.approx(losses(usual, language_batch), abs=rounding)
