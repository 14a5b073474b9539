"""Chooses the settings that a spec leaves at `auto`: learning rate, epochs, batch size, warmup, and whether to compile.

Gradient checkpointing depends on the memory of a device, so `backend.preflight.fixes` chooses it.

Pure functions of the model's size, the number of training examples, and what is trained; the same spec and data always
give the same numbers. They are resolved once, when a run is planned or started, and written into the run's spec. How well
they do without a change is in docs/results.md.

Sources:
- Learning rate of all weights: Devlin et al. 2019 (BERT: 2e-5 to 5e-5 for 110 and 340 million parameters), Turc et al.
  2019 (small BERTs: the best of 3e-4, 1e-4, 5e-5 and 3e-5), Liu et al. 2019 (RoBERTa-large: 1e-5 to 3e-5). A power law
  through 4e-4 at 4.4 million and 4e-5 at 110 million parameters meets them.
- A head on frozen weights: our own measurements (5e-3 to 2e-2 at 4.4 million parameters); SetFit trains such heads with
  1e-2. Wider models have larger sums in the head, so that its rate falls with the root of their size.
- From scratch: Brown et al. 2020, table 2.1 (6e-4 at 125 million, 3e-4 at 350 million, 2e-4 at 1.3 billion).
- LoRA: Hu et al. 2022 (2e-4 to 5e-4 for RoBERTa and GPT-2); Schulman et al. 2025, "LoRA without regret" (ten times the
  rate of full fine-tuning).
- Lion: Chen et al. 2023 (a third to a tenth of AdamW's rate).
- Epochs and warmup with few rows: Mosbach et al. 2021 and Zhang et al. 2021 (many more than 3 epochs, a tenth of the
  steps as warmup), and our own measurements (names in 1,994 tweets with bert-tiny: F1 0.230 after 3 epochs, 0.245 after 5,
  0.308 after 10); with many rows: Devlin et al. 2019 (3 epochs). From scratch: Muennighoff et al. 2023 (repeating data a
  few times is as good as new data, and more helps less and less).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from backend.contract.catalog import Device
from backend.contract.lengths import FITTED, fit_lengths
from backend.contract.messages import message
from backend.contract.rpc.plan import AutoSetting
from backend.contract.spec import RunSpec, TrainingSection
from backend.contract.spec.auto import AUTO
from backend.data.rows import Rows
from backend.models.config import longest_sequence
from backend.models.inspection import read_config
from backend.preflight.datasets import Splits, make_task
from backend.preflight.engine_choice import (
    IF_POSSIBLE,
    NEVER,
    compile_setting,
    find_compile_problem,
    find_missing_compiler,
)
from backend.preflight.steps import steps_per_epoch, total_steps
from backend.tasks.task import Columns

KEYS = ("batch_size", "epochs", "learning_rate", "warmup")
"""The settings of `training` that may be `auto`, in the order in which they are chosen."""
LEAST_RATE, MOST_RATE = 1e-5, 5e-4
"""Of all weights of a pretrained model, with AdamW."""
LEAST_ADAPTER_RATE, MOST_ADAPTER_RATE = 1e-4, 1e-3
LEAST_HEAD_RATE, MOST_HEAD_RATE = 1e-3, 1e-2
"""Of a head alone."""
LEAST_NEW_RATE, MOST_NEW_RATE = 1e-4, 1e-3
OPTIMIZERS = {"lion": 0.2, "sgd": 100.0}
"""An optimizer's learning rate as a multiple of AdamW's; 1 for those not listed."""
EXAMPLES = 20_000
"""A pretrained model sees about as many examples, within the bounds on epochs."""
NEW_EXAMPLES = 50_000
"""The same for new weights."""
MOST_EPOCHS, MOST_NEW_EPOCHS, MOST_TEXT_EPOCHS = 12, 20, 5
"""With few rows. More with new weights, and less of text that a model continues or rewrites, because it learns that by
heart."""
WARMUP, FEWEST_STEPS = 0.1, 50
"""The share of all steps, and the length from which a run has a warmup."""
LEAST_STEP_SECONDS, TOKENS_PER_ROW, MOST_OPERATIONS = 0.03, 64, 1e14
"""Of a step on a GPU; of a row, roughly; and operations per second of a GPU in bfloat16 that computes well."""
WORTH_COMPILING_SECONDS = 300.0
"""The length from which a run on a GPU makes up for the minute or more that compiling takes."""
CHARACTERS_PER_TOKEN = 4
"""Of running text, to count its blocks before it is tokenized."""


@dataclass(frozen=True)
class TrainingSize:
    """What the settings are chosen from."""

    model: str
    """Its name, for the reasons."""
    parameters: int
    examples: int
    """Rows, or blocks of running text."""
    is_new: bool = False
    """Whether the weights are initialised randomly."""
    has_adapter: bool = False
    writes: bool = False
    """Whether the model's outputs are text."""
    trains_head: bool = False
    """Whether everything below the head is frozen."""


def learning_rate(size: TrainingSize, optimizer: str = "adamw") -> float:
    """The peak learning rate, with one significant digit; it falls with the size of the model."""
    if size.is_new:
        rate = _clamp(6e-4 * (size.parameters / 125e6) ** -0.5, LEAST_NEW_RATE, MOST_NEW_RATE)
    elif size.has_adapter:
        rate = _clamp(10 * _full_rate(size.parameters), LEAST_ADAPTER_RATE, MOST_ADAPTER_RATE)
    elif size.trains_head:
        rate = _clamp(1e-2 * (max(1, size.parameters) / 4.4e6) ** -0.5, LEAST_HEAD_RATE, MOST_HEAD_RATE)
    else:
        rate = _clamp(_full_rate(size.parameters), LEAST_RATE, MOST_RATE)
    return float(f"{rate * OPTIMIZERS.get(optimizer, 1.0):.0e}")


def _full_rate(parameters: int) -> float:
    """The power law through 4e-4 at 4.4 million and 4e-5 at 110 million parameters."""
    return 4e-4 * (max(1, parameters) / 4.4e6) ** -0.715


def _clamp(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)


def batch_size(size: TrainingSize) -> int:
    """Rows per step: small with few rows, so that there are enough steps."""
    return next((batch for below, batch in ((64, 4), (2_000, 8), (10_000, 16)) if size.examples < below), 32)


def epochs(size: TrainingSize) -> float:
    """Passes over the data, at least one; never more with more rows."""
    most = MOST_NEW_EPOCHS if size.is_new else MOST_TEXT_EPOCHS if size.writes else MOST_EPOCHS
    least = 3 if size.examples < 50_000 else 2 if size.examples < 500_000 else 1
    wanted = round((NEW_EXAMPLES if size.is_new else EXAMPLES) / max(1, size.examples))
    return float(max(least, min(most, wanted)))


def warmup(total_steps: int, schedule: str = "linear") -> float:
    """The share of all steps; none for a very short run, or for a schedule that is said to be constant."""
    return 0.0 if total_steps < FEWEST_STEPS or schedule == "constant" else WARMUP


def training_seconds(total_steps: int, batch_size: int, parameters: int) -> float:
    """What a GPU takes at least for such a run: it starts kernels only so fast, and computes only so fast."""
    return total_steps * max(LEAST_STEP_SECONDS, 6 * parameters * batch_size * TOKENS_PER_ROW / MOST_OPERATIONS)


@dataclass(frozen=True)
class AutoResolution:
    """A spec in which every setting is a number, and how those that were `auto` were chosen."""

    spec: RunSpec
    chosen: tuple[AutoSetting, ...]


def needs_size(spec: RunSpec) -> bool:
    """Whether any setting is `auto`, so that `resolve` must know the model and the data."""
    return any(getattr(spec.training, name) == AUTO for name in KEYS)


@dataclass(frozen=True)
class ModelSize:
    """What the settings need to know about the model."""

    parameters: int
    folder: Path
    """With its configuration."""


def resolve(spec: RunSpec, splits: Splits, model: Callable[[], ModelSize]) -> AutoResolution:
    """Choose what is `auto` in `spec`. `model` is called only if needed, because it may have to be fetched for that."""
    if not needs_size(spec):
        return AutoResolution(spec, ())
    size = training_size(spec, splits.rows["train"], splits.columns, splits.facts["max_length"], model())
    return choose(spec, size)


def choose(spec: RunSpec, size: TrainingSize) -> AutoResolution:
    """Choose what is `auto` in `spec` for a training of this size."""
    training, chosen = spec.training, []
    for name in KEYS:
        if getattr(training, name) == AUTO:
            value, reason = _CHOICES[name](size, training)
            training = training.model_copy(update={name: value})
            chosen.append(AutoSetting(f"training.{name}", value, reason))
    return AutoResolution(spec.model_copy(update={"training": training}), tuple(chosen))


def training_size(spec: RunSpec, train: Rows, columns: Columns, max_length: int, model: ModelSize) -> TrainingSize:
    """The size of a training run with these rows."""
    writes = make_task(spec).head.declared.over_vocabulary
    freezes_all = "encoder" in spec.model.frozen and not read_config(model.folder).get("is_encoder_decoder")
    return TrainingSize(
        model=_short_name(spec),
        parameters=model.parameters,
        examples=_count_examples(spec, train, columns, max_length),
        is_new=spec.model.initialise == "from_config",
        has_adapter=spec.adapter is not None,
        writes=writes,
        trains_head=freezes_all and not writes,  # the head over a vocabulary is pretrained as well
    )


def _count_examples(spec: RunSpec, train: Rows, columns: Columns, max_length: int) -> int:
    """The rows; running text has about as many examples as its characters fill blocks."""
    column = columns.get("text")
    if spec.task.get("rows") != "blocks" or column is None:
        return len(train)
    characters = pc.sum(pc.utf8_length(train.table[column].cast("string"))).as_py() or 0
    return max(1, characters // (CHARACTERS_PER_TOKEN * max_length))


def choose_compile(
    auto: AutoResolution, parameters: int, splits: Splits, find_device: Callable[[], Device | None]
) -> AutoResolution:
    """Choose whether to compile if that is `auto`: only on a GPU, for a run that is long enough.

    Shapes are few in any case, because sizes of batches are variables of a program. `find_device` may take seconds, and is
    called only for such a run.
    """
    spec = auto.spec
    if compile_setting(spec) != AUTO:
        return auto
    training = spec.training
    examples = _count_examples(spec, splits.rows["train"], splits.columns, splits.facts["max_length"])
    total = total_steps(training, steps_per_epoch(training, examples))
    is_long = training_seconds(total, training.batch_size, parameters) >= WORTH_COMPILING_SECONDS
    device = find_device() if is_long and not find_compile_problem(spec) else None
    value, reason = NEVER, ""
    if device is not None and device.kind == "cuda":
        if problem := find_missing_compiler(device.kind):
            reason = message("compile never: {problem}", problem=problem)
        elif "bfloat16" not in device.precisions:
            reason = message("compile never: {name} is too old to gain from it", name=device.name)
        else:
            value, reason = IF_POSSIBLE, message("compile if_possible: a run of about {total:,} steps makes up for the minute or more that compiling takes", total=total)  # fmt: skip
    chosen = AutoSetting("hardware.compile", value, reason)
    return AutoResolution(with_chosen(spec, [chosen]), (*auto.chosen, chosen))


def with_chosen(spec: RunSpec, chosen: Iterable[AutoSetting]) -> RunSpec:
    """The spec with what was chosen for it before."""
    values: dict[str, dict[str, Any]] = {"task": {}, "training": {}, "hardware": {}}
    for one in chosen:
        section, _, name = one.key.partition(".")
        values[section][name] = one.value
    training = spec.training.model_copy(update=values["training"])
    hardware = spec.hardware.model_copy(update=values["hardware"])
    task = {**spec.task, **values["task"]}
    return spec.model_copy(update={"task": task, "training": training, "hardware": hardware})


def fit_to_model(spec: RunSpec, folder: Path) -> AutoResolution:
    """Lower lengths that nobody has set to what the model in `folder` takes; others that the task has are now said."""
    defaults = type(make_task(spec).settings)(type=spec.task["type"]).model_dump()
    limit = longest_sequence({**read_config(folder), **spec.model.config})
    chosen = fit_lengths(spec.task, defaults, limit, _short_name(spec))
    usual = {name: defaults[name] for name in FITTED & defaults.keys()}
    spec = spec.model_copy(update={"task": {**usual, **spec.task}})
    return AutoResolution(with_chosen(spec, chosen), tuple(chosen))


def _short_name(spec: RunSpec) -> str:
    return Path(spec.model.name_or_path).name or spec.model.name_or_path


# Each chooses a setting and gives the reason.


def _choose_batch_size(size: TrainingSize, training: TrainingSection) -> tuple[float, str]:
    value = batch_size(size)
    if value >= 32:
        return value, message("batch size {value}: there are {examples:,} training examples", value=value, examples=size.examples)  # fmt: skip
    return value, message(
        "batch size {value}: with {examples:,} training examples, small batches give enough steps",
        value=value,
        examples=size.examples,
    )


def _choose_epochs(size: TrainingSize, training: TrainingSection) -> tuple[float, str]:
    value = epochs(size)
    facts: dict[str, Any] = {"value": f"{value:g}", "examples": size.examples}
    if training.max_steps is not None or training.max_records is not None:
        return value, ""  # not used, so there is nothing to say
    if value > 3:
        return value, message("epochs {value}: with {examples:,} training examples, the model sees each of them more often", **facts)  # fmt: skip
    return value, message("epochs {value}: {examples:,} training examples need no more passes", **facts)


def _choose_learning_rate(size: TrainingSize, training: TrainingSection) -> tuple[float, str]:
    value = learning_rate(size, training.optimizer)
    facts = {"value": f"{value:.0e}".replace("e-0", "e-"), "model": size.model, "count": _millions(size.parameters)}
    if size.is_new:
        return value, message("learning rate {value}: {model} has {count} million parameters, and they are new; new weights need larger steps", **facts)  # fmt: skip
    if size.has_adapter:
        return value, message("learning rate {value}: {model} has {count} million parameters, and an adapter needs about ten times larger steps than full fine-tuning", **facts)  # fmt: skip
    if size.trains_head:
        return value, message("learning rate {value}: the {count} million parameters of {model} are frozen, and a head needs larger steps", **facts)  # fmt: skip
    if value >= 1e-4:
        return value, message("learning rate {value}: {model} has {count} million parameters; small models need larger steps", **facts)  # fmt: skip
    return value, message("learning rate {value}: {model} has {count} million parameters; large models need smaller steps", **facts)  # fmt: skip


def _choose_warmup(size: TrainingSize, training: TrainingSection) -> tuple[float, str]:
    total = total_steps(training, steps_per_epoch(training, size.examples))
    value = warmup(total, training.schedule)
    if value:
        return value, message("warmup {value}: the learning rate rises during the first tenth of about {total:,} steps", value=value, total=total)  # fmt: skip
    if training.schedule == "constant":
        return value, message("warmup 0: the schedule is constant")
    return value, message("warmup 0: a run of about {total:,} steps is too short for one", total=total)


def _millions(parameters: int) -> str:
    count = parameters / 1e6
    return f"{count:,.0f}" if count >= 10 else f"{count:.1f}"


_CHOICES: Mapping[str, Callable[[TrainingSize, TrainingSection], tuple[float, str]]] = {
    "batch_size": _choose_batch_size,
    "epochs": _choose_epochs,
    "learning_rate": _choose_learning_rate,
    "warmup": _choose_warmup,
}
