"""The shape of the catalog, which `burnish describe --json` prints and forms are made from."""

from collections.abc import Callable
from typing import Any

import msgspec

from backend.contract.messages import message
from backend.contract.metrics import Range
from backend.contract.versions import CONTRACT_VERSION


class Column(msgspec.Struct, frozen=True):
    """A role that a data column can have in a task, for example `text` or `label`."""

    name: str
    title: str
    description: str
    required: bool = True
    needed_to_predict: bool = True
    usual_names: list[str] = []
    """Names under which such a column is often found, best first; used to guess."""
    holds: str = ""
    """What its cells are: `text`, `label`, `number`, `words`, `tags`, `messages`; empty where it may be of several kinds."""
    when: dict[str, list[str]] = {}
    """Settings of the task, and their values, under which the column plays a part; empty always."""
    several: bool = False
    """Whether a list of columns may play the part together, each then as `labels_0`, `labels_1` …"""
    instead_of: str = ""
    """The part that it plays under other settings; a column that is chosen for that one is meant for this one."""


def is_used(column: Column, setting: Callable[[str], Any]) -> bool:
    """Whether a column is used under a task's settings, looked up by name."""
    return all(setting(name) in values for name, values in column.when.items())


class TaskEntry(msgspec.Struct, frozen=True):
    """One task: `settings` is the JSON Schema of its section."""

    name: str
    title: str
    description: str
    head: str
    columns: list[Column]
    metrics: list[str]
    default_metric: str
    """The metric that a person looks at first."""
    settings: dict[str, Any]
    defaults: dict[str, Any] = {}
    """Sensible other sections for this task, as a fragment of a spec."""
    examples: list[dict[str, Any]] = []
    """Rows to try a model with if no run's data is at hand, by part."""
    trained_architecture: str = ""
    """How the name of an architecture ends whose head was trained for the task; empty if every model of it was."""
    try_settings: dict[str, Any] = {}
    """Settings with which a person tries a model, where they differ from the defaults, with which it is measured."""
    row_view: str = ""
    """How the window shows a row and its prediction (`app.widgets.row_views.registry`); empty lets the columns decide."""


class SourceEntry(msgspec.Struct, frozen=True):
    """One kind of data source."""

    name: str
    title: str
    description: str
    settings: dict[str, Any]
    own_splits: list[str] = []
    """Splits that are there without being named."""
    path_fields: list[str] = []
    """Keys of the `data` section that hold paths; where `train` is none of them, it names a split."""


DEVICES_OF_EVERY_ENGINE = ("auto", "cpu", "cuda")
"""Values of `hardware.device` that another engine may find too."""


class EngineEntry(msgspec.Struct, frozen=True):
    """One engine; `missing` says what to install if it cannot be used."""

    name: str
    title: str
    description: str
    settings: dict[str, Any]
    missing: str = ""
    architectures: list[str] = []
    """Model types that it knows, with `_` for `-`; empty where it takes whatever transformers knows."""
    optimizers: list[str] = []
    """Optimizers that it has; empty where it has them all."""
    continues: list[str] = []
    """Engines whose checkpoints it can continue from, with their weights and a new optimizer."""


class Refusal(msgspec.Struct, frozen=True):
    """Why an engine rejects a spec: the key to change, and a sentence."""

    field: str
    reason: str


def find_refusal(engine: EngineEntry, model_type: str, optimizer: str) -> Refusal | None:
    """Why an engine cannot train a model with an optimizer; an empty model type means not known yet.

    No optimizer means that nothing is trained.
    """
    if engine.missing:
        return Refusal(
            "hardware.engine",
            message("{title} cannot be used here: {missing}", title=engine.title, missing=engine.missing),
        )
    if engine.architectures and model_type and model_type.replace("-", "_") not in engine.architectures:
        return Refusal(
            "hardware.engine",
            message(
                "the {title} engine does not support the architecture {model_type}",
                title=engine.title,
                model_type=repr(model_type),
            ),
        )
    if engine.optimizers and optimizer and optimizer not in engine.optimizers:
        has = ", ".join(engine.optimizers)
        return Refusal(
            "training.optimizer",
            message(
                "the {title} engine does not have {optimizer}; it has {has}",
                title=engine.title,
                optimizer=repr(optimizer),
                has=has,
            ),
        )
    return None


class OptimizerEntry(msgspec.Struct, frozen=True):
    """One optimizer; `settings` is the JSON Schema of `training.optimizer_options`."""

    name: str
    title: str
    description: str
    settings: dict[str, Any]


class AdapterEntry(msgspec.Struct, frozen=True):
    """One kind of adapter; `settings` is the JSON Schema of the `adapter` section."""

    name: str
    title: str
    description: str
    settings: dict[str, Any]


class TrackerEntry(msgspec.Struct, frozen=True):
    """A tracker that curves can be sent to; `settings` is the JSON Schema of its part of `trackers.yaml`."""

    name: str
    title: str
    description: str
    settings: dict[str, Any]


class MetricEntry(msgspec.Struct, frozen=True):
    """A metric of one or more tasks or of an installed package; `tasks` is empty if it applies to all."""

    name: str
    title: str
    tasks: list[str]
    greater_is_better: bool | None
    """None if it is not declared; then the metric cannot select the best checkpoint."""
    range: Range = (None, None)
    """The least and the greatest possible value; None where there is no limit."""


class Preset(msgspec.Struct, frozen=True):
    """A named fragment of a spec."""

    name: str
    title: str
    description: str
    spec: dict[str, Any]


class Device(msgspec.Struct, frozen=True):
    """A device to compute on."""

    kind: str
    index: int
    name: str
    memory_mb: float
    free_mb: float
    precisions: list[str] = []
    engine: str = ""
    """The engine that found it, if several were queried."""
    cores: int = 0
    """Of a CPU; 0 if unknown."""
    emulates_bfloat16: bool = False
    """Whether a CPU is known to have no unit for it: its flags name neither AVX512_BF16 nor AMX nor Arm's BF16."""
    note: str = ""
    """Of a CPU that was found alone: why the engine may not see other devices."""


class Catalog(msgspec.Struct, frozen=True):
    """Everything that can be chosen. `spec` is the JSON Schema of the sections that are not open."""

    tasks: list[TaskEntry]
    sources: list[SourceEntry]
    engines: list[EngineEntry]
    presets: list[Preset]
    spec: dict[str, Any]
    versions: dict[str, str]
    contract_version: str = CONTRACT_VERSION
    devices: list[Device] | None = None
    """None in the static catalog; filled if devices were requested."""
    optimizers: list[OptimizerEntry] = []
    adapters: list[AdapterEntry] = []
    mirrors: list[TrackerEntry] = []
    metrics: list[MetricEntry] = []
    tokenizer_training: dict[str, Any] = {}
    """The JSON Schema of the settings of a new tokenizer."""
    search: dict[str, Any] = {}
    """The JSON Schema of a spec's `search` section."""
    problems: list[str] = []
    """What is wrong with installed plugins, a sentence each; they are left out."""
