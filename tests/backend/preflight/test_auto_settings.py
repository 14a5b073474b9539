"""What `auto` chooses: known values, bounds, and how the numbers reach the plan and the run."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.rpc.plan import DeviceList
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.hardware import devices
from backend.preflight import auto_settings, checks, engine_choice
from backend.preflight.auto_settings import ModelSize, TrainingSize
from backend.preflight.cost import plan
from backend.preflight.datasets import load_splits
from backend.preflight.resolve import BEFORE_AUTO, read_run, resolve

CPU = Device("cpu", 0, "Processor", 8000.0, 6000.0, ["float32"])
DEMO = {
    "task": {"type": "text_classification"},
    "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
    "data": {"source": "demo", "max_rows": 360},
}
PARAMETERS = [100_000, 4_385_920, 22_713_216, 109_482_240, 335_141_888, 1_300_000_000, 70_000_000_000]
ROWS = [1, 24, 63, 64, 360, 1_999, 2_000, 9_999, 10_000, 49_999, 50_000, 499_999, 500_000, 10_000_000]


def size(parameters: int = 4_385_920, rows: int = 360, **more: Any) -> TrainingSize:
    return TrainingSize("model", parameters, rows, **more)


@pytest.mark.parametrize(
    ("parameters", "rate"),
    [(4_385_920, 4e-4), (22_713_216, 1e-4), (109_482_240, 4e-5), (335_141_888, 2e-5), (1_300_000_000, 1e-5)],
)
def test_the_learning_rate_of_all_weights_is_the_usual_one_for_the_size(parameters: int, rate: float):
    assert auto_settings.learning_rate(size(parameters)) == rate


@pytest.mark.parametrize(
    ("parameters", "rate"), [(4_385_920, 1e-3), (109_482_240, 4e-4), (335_141_888, 2e-4), (7_000_000_000, 1e-4)]
)
def test_an_adapter_takes_ten_times_larger_steps(parameters: int, rate: float):
    assert auto_settings.learning_rate(size(parameters, has_adapter=True)) == rate


@pytest.mark.parametrize(
    ("parameters", "rate"), [(4_385_920, 1e-2), (22_713_216, 4e-3), (109_482_240, 2e-3), (1_300_000_000, 1e-3)]
)
def test_a_head_on_frozen_weights_takes_larger_steps_still(parameters: int, rate: float):
    assert auto_settings.learning_rate(size(parameters, trains_head=True)) == rate


@pytest.mark.parametrize(("parameters", "rate"), [(4_385_920, 1e-3), (124_000_000, 6e-4), (1_300_000_000, 2e-4)])
def test_new_weights_take_the_steps_of_pretraining(parameters: int, rate: float):
    assert auto_settings.learning_rate(size(parameters, is_new=True)) == rate


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ({}, 1e-5, 5e-4),
        ({"has_adapter": True}, 1e-4, 1e-3),
        ({"trains_head": True}, 1e-3, 1e-2),
        ({"is_new": True}, 1e-4, 1e-3),
    ],
)
def test_the_learning_rate_falls_with_size_within_bounds(kind: dict[str, bool], least: float, most: float):
    rates = [auto_settings.learning_rate(size(parameters, **kind)) for parameters in PARAMETERS]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == most
    assert rates[-1] == least


def test_lion_needs_less_and_sgd_more():
    adamw, lion, sgd = (auto_settings.learning_rate(size(), optimizer) for optimizer in ("adamw", "lion", "sgd"))
    assert lion == pytest.approx(adamw / 5)
    assert sgd == pytest.approx(adamw * 100)


@pytest.mark.parametrize("kind", [{}, {"is_new": True}, {"writes": True}])
def test_more_rows_never_mean_more_epochs_but_more_examples_seen(kind: dict[str, bool]):
    epochs = [auto_settings.epochs(size(rows=rows, **kind)) for rows in ROWS]
    assert epochs == sorted(epochs, reverse=True)
    assert epochs[-1] == 1
    seen = [count * rows for count, rows in zip(epochs, ROWS, strict=True) if rows < 49_999]
    assert all(before <= after for before, after in pairwise(seen))


def test_few_rows_are_seen_often_and_text_less_so():
    assert auto_settings.epochs(size(rows=360)) == 12
    assert auto_settings.epochs(size(rows=360, writes=True)) == 5
    assert auto_settings.epochs(size(rows=360, is_new=True, writes=True)) == 20
    assert [auto_settings.epochs(size(rows=rows)) for rows in (2_000, 5_000, 10_000)] == [10, 4, 3]


@pytest.mark.parametrize("rows", ROWS)
def test_batches_grow_with_the_rows(rows: int):
    assert auto_settings.batch_size(size(rows=rows)) == (4 if rows < 64 else 8 if rows < 2000 else 16 if rows < 10_000 else 32)  # fmt: skip


def test_a_very_short_run_has_no_warmup():
    assert [auto_settings.warmup(steps) for steps in (1, 49, 50, 5000)] == [0.0, 0.0, 0.1, 0.1]
    assert auto_settings.warmup(5000, "constant") == 0.0


def test_the_plan_has_the_numbers_and_says_why():
    found = plan(resolve(DEMO, Path()), [CPU])
    assert {one.key: one.value for one in found.auto} == {
        "training.batch_size": 8,
        "training.epochs": 12,
        "training.learning_rate": 4e-4,
        "training.warmup": 0.1,
        "training.gradient_checkpointing": False,
        "hardware.compile": "never",
    }
    assert found.auto[2].reason == "learning rate 4e-4: bert-tiny has 4.4 million parameters; small models need larger steps"  # fmt: skip
    assert (found.batch_size, found.total_steps) == (8, 12 * 45)


@pytest.mark.parametrize(
    ("frozen", "config", "rate", "reason"),
    [
        (
            ["encoder"],
            {},
            1e-2,
            "the 4.4 million parameters of bert-tiny are frozen, and a head needs larger steps",
        ),
        (["embeddings", 1], {}, 4e-4, "bert-tiny has 4.4 million parameters; small models need larger steps"),
        (
            ["encoder"],
            {"is_encoder_decoder": True},
            4e-4,
            "bert-tiny has 4.4 million parameters; small models need larger steps",
        ),
    ],
)
def test_the_rate_goes_by_what_is_trained(
    frozen: list[str | int], config: dict[str, Any], rate: float, reason: str, tmp_path: Path
):
    model = tmp_path / "bert-tiny"
    shutil.copytree(DEMO["model"]["name_or_path"], model)
    values = json.loads((model / "config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps(values | config), encoding="utf-8")
    spec = resolve({**DEMO, "model": {"name_or_path": str(model), "frozen": frozen}}, Path())
    splits = load_splits(spec, model)
    chosen = auto_settings.resolve(spec, splits, lambda: ModelSize(4_385_920, model)).chosen
    assert (chosen[2].value, chosen[2].reason) == (rate, f"learning rate {rate:.0e}: {reason}".replace("e-0", "e-"))


def test_what_a_person_sets_holds():
    spec = resolve({**DEMO, "training": {"learning_rate": 2e-5, "epochs": 2}}, Path())
    checked = checks.check(spec)
    assert (checked.spec.training.learning_rate, checked.spec.training.epochs) == (2e-5, 2)
    assert [one.key for one in checked.auto] == [
        "training.batch_size",
        "training.warmup",
        "training.gradient_checkpointing",
        "hardware.compile",
    ]


def test_max_steps_win_over_automatic_epochs():
    said: list[str] = []
    checks.check(resolve({**DEMO, "training": {"max_steps": 7}}, Path()), say=said.append)
    assert said
    assert not any("epochs" in sentence for sentence in said)
    assert plan(resolve({**DEMO, "training": {"max_steps": 7}}, Path()), [CPU]).total_steps == 7


def test_running_text_counts_its_blocks(tmp_path: Path):
    (tmp_path / "train.txt").write_text("word " * 8_000, encoding="utf-8")  # one line of 40,000 characters
    values = {
        "task": {"type": "causal_lm", "max_length": 16},
        "model": {"name_or_path": str(resource("demo", "austen-gpt2"))},
        "data": {"train": "train.txt"},
    }
    assert checks.check(resolve(values, tmp_path)).auto[0].reason.startswith("batch size 8: with 625 training examples")


def test_numbers_are_kept_when_all_is_checked_again():
    once = checks.check(resolve(DEMO, Path())).spec
    again = checks.check(resolve(once.model_dump(mode="json"), Path()))
    assert again.spec == once
    assert again.auto == ()


@pytest.mark.parametrize("training", [{}, None, {"learning_rate": "auto", "epochs": "auto"}])
def test_a_run_folder_without_numbers_means_the_old_defaults(training: dict[str, Any] | None, tmp_path: Path):
    values = {**DEMO, **({} if training is None else {"training": training})}
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump(values))
    found = read_run(folder).training
    assert {name: getattr(found, name) for name in BEFORE_AUTO} == BEFORE_AUTO


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("learning_rate", "automatic", "input should be a valid number, or auto"),
        ("learning_rate", 0, "input should be greater than 0"),
        ("learning_rate", -1e-4, "input should be greater than 0"),
        ("batch_size", 2.5, "should be a valid integer"),
        ("epochs", None, "input should be a valid number"),
        ("warmup", -0.1, "input should be greater than or equal to 0"),
    ],
)
def test_another_word_than_auto_is_refused_in_one_sentence(key: str, value: Any, reason: str):
    with pytest.raises(InputError) as error:
        resolve({**DEMO, "training": {key: value}}, Path())
    assert str(error.value).startswith(f"training.{key}: {value!r} cannot be used: ")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


DEEP = {
    "model.initialise": "from_config", "model.config": {"num_hidden_layers": 48}, "task.max_length": 256,
    "training.batch_size": 1, "training.checkpoint_every": "never", "evaluation.batch_size": 1,
}  # fmt: skip
"""A model whose activations are most of its memory."""


@pytest.fixture(scope="module")
def deep(tmp_path_factory) -> dict[str, Any]:
    """The spec of such a model with long rows."""
    folder = tmp_path_factory.mktemp("deep")
    (folder / "rows.csv").write_text("text,label\n" + "".join(f"{'word ' * 300}{n},{'ab'[n % 2]}\n" for n in range(8)))
    files = {"data": {"train": str(folder / "rows.csv"), "validation": 0.25}}
    return spec_file.set_values({"task": DEMO["task"], "model": DEMO["model"], **files}, DEEP)


def with_checkpointing(deep: dict[str, Any], value: Any, gigabytes: float | None = None) -> RunSpec:
    """Its spec with this setting on a computer with so much memory."""
    changes = {"training.gradient_checkpointing": value, "hardware.memory_limit": gigabytes}
    return resolve(spec_file.set_values(deep, changes), Path())


@pytest.fixture(scope="module")
def between(deep) -> float:
    """Gigabytes that are enough with gradient checkpointing, but not without it."""
    off, on = (plan(with_checkpointing(deep, value), [CPU]).memory_mb for value in (False, True))
    assert on < 0.9 * off
    return (on + off) / 2000


def checkpointing(spec: RunSpec) -> Any:
    """What a plan chooses."""
    return next(one for one in plan(spec, [CPU]).auto if one.key == "training.gradient_checkpointing")


def test_checkpointing_is_on_if_only_that_makes_a_run_fit(deep, between: float):
    chosen, found = checkpointing(with_checkpointing(deep, "auto", between)), with_checkpointing(deep, "auto", between)
    assert chosen.value is True
    assert plan(found, [CPU]).fits
    assert chosen.reason.startswith("gradient checkpointing on: with it the run needs about ")


@pytest.mark.parametrize("gigabytes", [None, 0.1])
def test_checkpointing_is_off_if_a_run_fits_without_it_or_not_even_with_it(deep, gigabytes: float | None):
    chosen = checkpointing(with_checkpointing(deep, "auto", gigabytes))
    assert (chosen.value, chosen.reason) == (False, "")


@pytest.mark.parametrize("value", [True, False])
def test_a_spec_that_says_true_or_false_keeps_it(deep, between: float, value: bool):
    spec = with_checkpointing(deep, value, between)
    assert checks.check(spec).spec.training.gradient_checkpointing is value
    assert plan(spec, [CPU]).auto == [one for one in plan(spec, [CPU]).auto if "checkpointing" not in one.key]


@pytest.mark.parametrize("fits", [True, False])
def test_a_run_starts_with_the_checkpointing_that_its_plan_has(deep, between: float, fits: bool):
    said: list[str] = []
    checked = checks.check(with_checkpointing(deep, "auto", 6 if fits else between), say=said.append)
    assert checked.spec.training.gradient_checkpointing is not fits
    assert any("gradient checkpointing on" in sentence for sentence in said) is not fits


def test_the_devices_are_listed_once_for_all_checks_and_the_queue(deep, between: float, monkeypatch):
    listed: list[DeviceList] = []

    def query(*given: Any, **options: Any) -> DeviceList:
        listed.append(DeviceList([CPU]))
        return listed[-1]

    monkeypatch.setattr(devices, "query_devices", query)
    spec = with_checkpointing(deep, "auto", between)
    checked = checks.check(spec.model_copy(update={"hardware": spec.hardware.model_copy(update={"device": "cpu"})}))
    assert len(listed) == 1
    assert checked.listed is listed[0]


SHORT_QUESTIONS = {
    "task": {"type": "question_answering"},
    "model": {**DEMO["model"], "initialise": "from_config", "config": {"max_position_embeddings": 128}},
    "data": {"source": "squad", "train": str(Path(__file__).parents[2] / "data" / "squad" / "train.json")},
}


def test_default_lengths_above_a_models_limit_are_fitted_and_said_at_the_start():
    said: list[str] = []
    checked = checks.check(resolve(SHORT_QUESTIONS, Path("/")), say=said.append)
    assert (checked.spec.task["max_length"], checked.spec.task["doc_stride"]) == (128, 42)
    assert [one for one in said if "the default" in one] == [
        "max length 128: bert-tiny takes at most 128 tokens, and the default is 384",
        "document stride 42: windows of 128 tokens cannot share the default of 128",
    ]


def test_plan_names_the_lengths_that_a_start_would_fit():
    planned = plan(resolve(SHORT_QUESTIONS, Path("/")), [CPU])
    fitted = {one.key: one.value for one in planned.auto if one.key.startswith("task.")}
    assert fitted == {"task.max_length": 128, "task.doc_stride": 42}


def test_length_that_someone_has_set_is_theirs_to_change():
    asked = {**SHORT_QUESTIONS, "task": {**SHORT_QUESTIONS["task"], "max_length": 100}}
    spec = resolve(asked, Path("/"))
    found = auto_settings.fit_to_model(spec, resource("demo", "bert-tiny"))
    assert (found.spec.task["max_length"], found.spec.task["doc_stride"]) == (100, 33)


# Compiling

GPU = Device("cuda", 0, "Fast", 80_000.0, 70_000.0, ["float32", "float16", "bfloat16"])
OLD = Device("cuda", 0, "Old", 16_000.0, 15_000.0, ["float32", "float16"])


@pytest.fixture
def can_compile(monkeypatch):
    """Whatever is installed here."""
    monkeypatch.setattr(auto_settings, "find_missing_compiler", lambda kind: "")


def compiling(device: Device, steps: int, **hardware: Any) -> Any:
    """What a plan for this device chooses."""
    changes = {"training": {"max_steps": steps}, "hardware": {"processes": 1, **hardware}}
    chosen = plan(resolve({**DEMO, **changes}, Path()), [device, CPU]).auto
    return next((one for one in chosen if one.key == "hardware.compile"), None)


@pytest.mark.parametrize(("device", "steps"), [(CPU, 1_000_000), (GPU, 9_999)])
def test_nothing_is_compiled_on_a_processor_or_for_a_short_run(can_compile, device: Device, steps: int):
    chosen = compiling(device, steps)
    assert (chosen.value, chosen.reason) == ("never", "")


def test_a_long_run_on_a_gpu_is_compiled(can_compile):
    chosen = compiling(GPU, 10_000)
    assert (chosen.value, chosen.reason) == (
        "if_possible",
        "compile if_possible: a run of about 10,000 steps makes up for the minute or more that compiling takes",
    )


def test_fewer_steps_are_enough_for_a_model_that_takes_longer():
    assert auto_settings.training_seconds(500, 32, 7_000_000_000) > auto_settings.WORTH_COMPILING_SECONDS
    assert auto_settings.training_seconds(500, 32, 110_000_000) < auto_settings.WORTH_COMPILING_SECONDS


def test_a_gpu_that_gains_nothing_is_named(can_compile):
    assert compiling(OLD, 10_000).reason == "compile never: Old is too old to gain from it"


def test_what_is_missing_to_compile_is_named(monkeypatch):
    monkeypatch.setattr(engine_choice, "find_spec", lambda package: None)
    assert compiling(GPU, 10_000).reason == (
        "compile never: PyTorch compiles with Triton, which is not installed (pip install triton)"
    )


@pytest.mark.parametrize("value", ["always", "if_possible", "never"])
def test_a_spec_that_says_whether_to_compile_keeps_it(value: str):
    assert compiling(CPU, 10, compile=value) is None
    spec = resolve({**DEMO, "hardware": {"compile": value}}, Path())
    assert checks.check(spec).spec.hardware.model_extra == {**(spec.hardware.model_extra or {}), "compile": value}


def test_a_run_starts_with_what_its_plan_says_about_compiling(can_compile, monkeypatch):
    monkeypatch.setattr(devices, "query_devices", lambda *_, **__: DeviceList([GPU, CPU]))
    said: list[str] = []
    checked = checks.check(resolve({**DEMO, "training": {"max_steps": 10_000}}, Path()), say=said.append)
    assert (checked.spec.hardware.model_extra or {})["compile"] == "if_possible"
    assert any(sentence.startswith("compile if_possible: ") for sentence in said)


@pytest.mark.parametrize("ask", [checks.check, lambda spec: plan(spec, [CPU])])
def test_without_a_compiler_nothing_starts(monkeypatch, ask):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(InputError, match=r"needs the compiler no-such-compiler.*apt install g\+\+.*set it to never"):
        ask(resolve({**DEMO, "hardware": {"compile": "always"}}, Path()))


def test_clang_alone_is_enough_for_triton(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(engine_choice, "find_spec", lambda package: package)
    monkeypatch.setattr(engine_choice, "which", {"clang": "/usr/bin/clang"}.get)
    assert "compiler" not in engine_choice.find_missing_compiler("cuda")


def test_without_a_compiler_a_run_that_may_do_without_starts(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    checks.check(resolve({**DEMO, "hardware": {"compile": "if_possible"}}, Path()))


@pytest.mark.parametrize("value", ["always", "if_possible"])
def test_a_sharded_model_is_not_compiled(value: str):
    hardware = {"compile": value, "strategy": "fsdp", "processes": 2}
    with pytest.raises(InputError, match="sharded with fsdp cannot be compiled; set it to never"):
        checks.check(resolve({**DEMO, "hardware": hardware}, Path()))


def test_jax_has_no_such_setting():
    spec = resolve({**DEMO, "hardware": {"engine": "jax"}}, Path())
    assert not any(one.key == "hardware.compile" for one in checks.check(spec).auto)
