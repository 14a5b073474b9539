"""The plan of memory counts what trains and what the optimizer keeps of it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM, BartConfig, MarianConfig, MT5Config, T5Config

from backend.contract.heads import Head, HeadFacts
from backend.contract.resources import resource
from backend.contract.spec import ModelSection, TrainingSection
from backend.engines.engine import LoadRequest
from backend.hardware import planner, run_sizes
from backend.hardware.activations import ModelShape
from backend.preflight import model_options
from backend.preflight.resolve import resolve

MODEL = resource("demo", "bert-tiny")


def spec(**sections):
    model = {"name_or_path": str(MODEL), **sections.pop("model", {})}
    training = {"batch_size": 8, **sections.pop("training", {})}
    values = {
        "task": {"type": "text_classification"},
        "model": model,
        "data": {"train": "x.csv"},
        "training": training,
        **sections,
    }
    return resolve(values, Path("/"))


def work(**sections) -> planner.TrainingLoad:
    made = spec(**sections)
    parameters = run_sizes.count_parameters(made, MODEL)
    return planner.TrainingLoad(made, MODEL, Head.SEQUENCE_CLASSIFICATION, 32, parameters, "float32")


def megabytes(part: str, **sections) -> float:
    return next(one.megabytes for one in work(**sections).memory(8) if one.name == part)


def trained_by_the_engine(**sections) -> int:
    """Without the new head, which no plan can count."""
    from backend.engines.torch import Settings
    from backend.engines.torch.engine import TorchEngine

    made, engine = spec(**sections), TorchEngine()
    head = HeadFacts(Head.SEQUENCE_CLASSIFICATION, ("a", "b"))
    loaded = engine.load(
        LoadRequest(
            folder=MODEL, head=head, model=ModelSection(**made.model.model_dump()), training=TrainingSection(learning_rate=2e-5),
            devices=("cpu",), precision="float32", vocabulary=30522, pad_token_id=0, hardware=Settings(threads=1),
            adapter=model_options.adapter_settings(made),
        )
    )  # fmt: skip
    return loaded.trainable - (2 * 128 + 2)


def logits_mb(engine: str, rows: int) -> float:
    """What a language head adds to the activations of a row classifier."""
    made = spec(hardware={"engine": engine}, adapter={"type": "lora"})
    heads = (Head.CAUSAL_LM, Head.SEQUENCE_CLASSIFICATION)
    loads = [planner.TrainingLoad(made, MODEL, head, 512, 4_000_000, "float32") for head in heads]
    language, plain = (peak(load, rows)["Activations"] for load in loads)
    return language - plain


def test_of_a_sharded_model_a_process_holds_its_part_and_what_is_gathered():
    load = work(hardware={"processes": 4, "strategy": "fsdp"})
    load = replace(load, split=run_sizes.split(load.spec, MODEL, 4))
    found, whole = peak(load, 8), 4 * load.parameters / planner.MB
    assert found["Weights"] == pytest.approx(whole / 4)
    assert found["Optimizer"] == pytest.approx(2 * whole / 4)
    embeddings = 4 * 30522 * 128 / planner.MB
    assert embeddings < found["Gathered weights"] < whole + embeddings


def test_parts_of_the_logits_do_not_grow_with_the_batch():
    assert logits_mb("torch", 8) == pytest.approx(logits_mb("torch", 16))
    assert logits_mb("torch", 16) < logits_mb("jax", 16) / 2
    assert logits_mb("jax", 16) == pytest.approx(2 * logits_mb("jax", 8))


def test_jax_keeps_the_moments_of_words_that_the_data_cannot_reach():
    loads = [replace(work(hardware={"engine": engine}), counts={"train": 4}) for engine in ("torch", "jax")]
    torch_mb, jax_mb = (peak(load, 8)["Optimizer"] for load in loads)
    assert torch_mb < jax_mb == pytest.approx(2 * 4 * loads[1].parameters / planner.MB)


@pytest.mark.parametrize(("length", "is_named"), [(32, False), (512, True)])
def test_an_evaluation_of_long_texts_needs_more_in_jax_than_a_step(length: int, is_named: bool):
    load = replace(work(hardware={"engine": "jax"}), length=length, counts={"train": 500, "validation": 500})
    assert ("Evaluation" in peak(load, 8)) is is_named


def test_few_logits_are_computed_at_once():
    each = 4 * 512 * 30_522 / 1e6  # the logits, their logarithms, and the gradients of both
    assert 4 * each < logits_mb("torch", 1) < 5.5 * each


@pytest.mark.parametrize(
    "sections",
    [
        {"adapter": {"type": "lora", "rank": 4}},
        {"adapter": {"type": "lora", "rank": 2, "targets": ["query", "dense"], "dora": True}},
        {"model": {"frozen": ["embeddings"]}},
        {"model": {"frozen": [1]}},
        {"model": {"frozen": ["encoder.layer.1", "*.query.*"]}},
    ],
)
def test_trainable_parameters_are_those_that_the_engine_trains(sections):
    expected = trained_by_the_engine(**sections)
    # The file holds a head for masked words beside the encoder, or lacks a pooler.
    assert work(**sections).trainable == pytest.approx(expected, rel=0.05)


def test_an_adapter_needs_little_for_gradients_and_optimizer():
    lora = {"adapter": {"type": "lora"}}
    assert megabytes("Gradients", **lora) < 0.02 * megabytes("Gradients")  # most of the rest are word embeddings
    assert megabytes("Optimizer", **lora) < 0.01 * megabytes("Optimizer")


@pytest.mark.parametrize(("optimizer", "share"), [("adamw", 1.0), ("lion", 0.5), ("sgd", 0.0), ("adafactor", 0.0)])
def test_the_optimizer_counts_by_what_it_keeps(optimizer, share):
    found = megabytes("Optimizer", training={"optimizer": optimizer})
    assert found == pytest.approx(share * megabytes("Optimizer"))


def test_the_state_in_8_bits_is_planned_as_large_as_it_is():
    from backend.engines.torch.optimizer import Optimizer
    from backend.engines.torch.precision import Precision

    model = AutoModelForMaskedLM.from_pretrained(MODEL)
    training = TrainingSection(learning_rate=2e-5, optimizer="adamw_8bit")
    optimizer = Optimizer(model, None, training, Precision(torch.device("cpu"), "float32"))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step(1e-3, 1)
    held = sum(value.nbytes for key, value in optimizer.state().items() if not key.startswith("step"))
    planned = megabytes("Optimizer", training={"optimizer": "adamw_8bit"})
    assert planned == pytest.approx(held / 1e6, rel=0.01)
    assert planned < 0.95 * megabytes("Optimizer")


@pytest.mark.parametrize("optimizer", ["paged_adamw", "paged_adamw_8bit"])
def test_paged_state_may_leave_the_device(optimizer):
    assert megabytes("Optimizer", training={"optimizer": optimizer}) == 0


@pytest.mark.parametrize(
    "config",
    [MT5Config(), T5Config(), BartConfig(), MarianConfig(vocab_size=65_001)],
    ids=lambda config: config.model_type,
)
def test_encoder_and_decoder_are_both_counted(config):
    with torch.device("meta"):
        real = AutoModelForSeq2SeqLM.from_config(config).num_parameters()
    assert ModelShape(config.to_dict()).parameters() == pytest.approx(real, rel=0.05)


@pytest.mark.parametrize("weights", ["bfloat16", "int8", "nf4"])
@pytest.mark.parametrize("sections", [{"adapter": {"type": "lora"}}, {"model": {"frozen": ["embeddings", 1]}}])
def test_weights_count_in_the_format_in_which_the_engine_holds_them(weights, sections):
    from backend.engines.torch import Settings
    from backend.engines.torch.engine import TorchEngine

    sections = {**sections, "model": {**sections.get("model", {}), "weights": weights}}
    made, engine = spec(**sections), TorchEngine()
    engine.load(
        LoadRequest(
            folder=MODEL, head=HeadFacts(Head.SEQUENCE_CLASSIFICATION, ("a", "b")), model=ModelSection(**made.model.model_dump()),
            training=TrainingSection(learning_rate=2e-5), devices=("cpu",), precision="float32", vocabulary=30522, pad_token_id=0,
            hardware=Settings(threads=1), adapter=model_options.adapter_settings(made),
        )
    )  # fmt: skip
    held = sum(each.nbytes for each in engine._model.parameters())
    # The file holds a head for masked words, which the engine does not load, and lacks a pooler.
    assert megabytes("Weights", **sections) == pytest.approx(held / 1e6, abs=0.3)


def test_weights_that_are_rounded_count_half_and_so_do_their_gradients():
    from backend.engines.torch import Settings
    from backend.engines.torch.engine import TorchEngine

    rounded = {"training": {"master_weights": "bfloat16_stochastic", "learning_rate": 2e-5}}
    made, engine = spec(**rounded), TorchEngine()
    engine.load(
        LoadRequest(
            folder=MODEL, head=HeadFacts(Head.SEQUENCE_CLASSIFICATION, ("a", "b")), model=ModelSection(**made.model.model_dump()),
            training=made.training, devices=("cpu",), precision="bfloat16", vocabulary=30522, pad_token_id=0,
            hardware=Settings(threads=1),
        )
    )  # fmt: skip
    held = sum(each.nbytes for each in engine._model.parameters())
    assert megabytes("Weights", **rounded) == pytest.approx(held / 1e6, abs=0.3)
    assert megabytes("Gradients", **rounded) == megabytes("Weights", **rounded)


def planned(length: int = 512, **sections) -> planner.TrainingLoad:
    """A load with sequences of this length and a thousand rows to evaluate."""
    made = spec(**sections)
    counts = {"train": 1000, "validation": 1000}
    parameters = run_sizes.count_parameters(made, MODEL)
    return planner.TrainingLoad(made, MODEL, Head.SEQUENCE_CLASSIFICATION, length, parameters, "float32", counts=counts)


def peak(load: planner.TrainingLoad, rows: int = 1) -> dict[str, float]:
    return {part.name: part.megabytes for part in load.memory(rows)}


SMALL_STEP = {"adapter": {"type": "lora"}, "training": {"batch_size": 1, "gradient_checkpointing": True}}
"""Hardly anything trains, so that another time of the run needs the most."""


def test_a_layer_is_computed_again_until_all_gradients_are_there():
    beyond = [
        peak(planned(length=8, training={"batch_size": 1, "gradient_checkpointing": again}))["Activations"]
        for again in (False, True)
    ]
    assert beyond[0] == 0 < beyond[1]


def test_a_model_without_layers_has_a_plan_too():
    made = planned(model={"initialise": "from_config", "config": {"num_hidden_layers": 0}})
    assert 0 < peak(made)["Activations"] < peak(planned())["Activations"]


def test_a_tokenizer_takes_memory_for_its_words():
    few, many = (
        peak(planned(model={"initialise": "from_config", "config": {"vocab_size": words}}))
        for words in (30_000, 250_000)
    )
    assert many["Libraries"] - few["Libraries"] == pytest.approx(130, abs=5)


def test_an_evaluation_takes_no_more_rows_than_need_a_steps_memory():
    rows = [planned(length=length, **SMALL_STEP).evaluation_rows(1) for length in (16, 128, 512)]
    assert rows == sorted(rows, reverse=True)
    assert 1 <= rows[-1] < planner.ROWS
    assert "Evaluation" not in peak(planned(**SMALL_STEP))


def test_an_evaluation_of_short_rows_takes_the_usual_number():
    assert planned(length=16, training={"batch_size": 32}).evaluation_rows(32) == planner.ROWS


def test_more_rows_than_that_have_a_part_of_their_own():
    parts = peak(planned(**SMALL_STEP, evaluation={"batch_size": 256}))
    assert parts["Evaluation"] > 100
    assert planned(**SMALL_STEP, evaluation={"batch_size": 256}).evaluation_rows(1) == 256


def test_reading_weights_into_another_format_takes_the_largest_of_them_twice():
    parts = peak(planned(length=8, **SMALL_STEP, model={"weights": "int8"}))
    largest = 4 * 30_522 * 128 / 1e6
    assert largest < parts["Loading"] + parts["Activations"] + parts["Optimizer"] + parts["Gradients"] < 1.5 * largest


@pytest.mark.parametrize(("saved", "copies"), [("merged", True), ("adapter", False)])
def test_an_adapter_is_merged_into_copies_of_the_layers(saved: str, copies: bool):
    step = {**SMALL_STEP, "adapter": {"type": "lora", "saved": saved}}
    assert ("Saving" in peak(planned(length=8, **step))) is copies


def test_an_allocator_that_keeps_what_was_freed_takes_more():
    """Which is done where all weights are float32, on a CPU."""
    load = planned(training={"batch_size": 8})
    kept, freed = (peak(replace(load, on_cpu=on_cpu), 8)["Activations"] for on_cpu in (True, False))
    assert kept > 1.1 * freed
