"""The interface of an engine: numpy batches in, numbers out; it knows heads, never labels or tasks."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from backend.contract.catalog import Device
from backend.contract.heads import Head, HeadFacts
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import ModelSection, Section, TrainingSection
from backend.engines.initial_weights import NewTokens
from backend.engines.weight_formats import Format

Batch = dict[str, np.ndarray]
"""Arrays of one forward pass, as the head fixes them (`backend.contract.heads`)."""
Finish = Callable[[], None]
"""Waits until everything is on the disk. Raises OSError if it could not be written."""

Compiling = Callable[[Callable[[], Any]], Any]
"""Runs what compiles a program, which may take minutes, and gives the program; may raise what ends the run meanwhile."""


def compile_here(build: Callable[[], Any]) -> Any:
    """Build directly: a `Compiling` that shows no progress."""
    return build()


@dataclass(frozen=True)
class LoadRequest:
    """What an engine needs to load a model."""

    folder: Path
    """A local Hugging Face folder: config.json and, unless new weights are wanted, safetensors."""
    head: HeadFacts
    model: ModelSection
    training: TrainingSection | None
    """None loads for evaluation only: no optimizer, nothing trainable."""
    devices: tuple[str, ...]
    """`cpu`, `cuda:0` …, already decided."""
    precision: Literal["float32", "bfloat16", "float16"]
    vocabulary: int
    """Tokens that the tokenizer knows, added ones included; embeddings are enlarged only if they have fewer rows."""
    new_tokens: NewTokens = field(default_factory=NewTokens)
    """How the rows of added tokens begin."""
    max_length: int = 0
    """The longest sequence that will come; an error says so before training where positions do not reach."""
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    """Of the tokenizer, as are the two above; a language model from scratch takes them for its own."""
    adapter: Section | None = None
    """Settings of a module of `backend.adapters`; None trains every weight."""
    compiling: Compiling = compile_here
    """For engines that compile (`Engine.constant_rows`)."""
    hardware: Section | None = None
    """The engine's own keys of the `hardware` section; None takes their defaults."""


@dataclass(frozen=True)
class Split:
    """How a run is distributed over its devices."""

    replicas: int = 1
    """Devices, or groups of them, that each read rows of their own."""
    share: float = 1.0
    """Part of the weights' bytes, and of the optimizer's, that one device holds."""
    hosts: int = 1
    """Computers that train together, each with as many devices."""


@dataclass(frozen=True)
class LoadedModel:
    """A description of the loaded model."""

    architecture: str
    parameters: int
    trainable: int
    new_weights: list[str] = field(default_factory=list)
    """Parameters that the file did not hold and that were drawn."""
    unused_weights: list[str] = field(default_factory=list)
    """Tensors of the file that this head does not use."""
    resized: str = ""


@dataclass(frozen=True)
class StepResult:
    """A step's numbers, still on the device: pass them to `Engine.read` in groups."""

    loss: Any
    gradient_norm: Any
    warning: str = ""
    """What the engine could not do as it was set, once, if it went on in another way."""


@dataclass(frozen=True)
class StepNumbers:
    """A step's numbers as floats; `loss` is summed over targets and divided by their number (or summed weight)."""

    loss: float
    gradient_norm: float


class EngineEntry(Protocol):
    """What a package of `backend.engines` exports as `ENGINE`: facts for the catalog, and access to the framework.

    If its settings have `hosts`, it is also a `backend.engines.hosts.EngineOfHosts`.
    """

    title: ClassVar[str]
    description: ClassVar[str]
    Settings: ClassVar[type[Section]]
    """The engine's own keys of the `hardware` section."""
    requires: ClassVar[tuple[str, ...]]
    """Distributions that must be installed; the catalog looks for them without importing."""
    extra: ClassVar[str]
    """The extra of burnish that installs them."""
    optimizers: ClassVar[tuple[str, ...]]
    """Those that it has; empty where it has all that are registered."""
    several_processes: ClassVar[bool]
    """Whether each of several devices has a process, and it is an `EngineOfProcesses`; else one process has them all."""
    weight_formats: ClassVar[tuple[Format, ...]]
    """In which it can hold weights that are not trained."""
    rounds_stochastically: ClassVar[bool]
    """Whether it can hold weights that are trained in bfloat16."""
    adapter_initializations: ClassVar[tuple[str, ...]]
    """How the matrices of an adapter can start in it."""
    logits_at_once: ClassVar[int | None]
    """Logits over a vocabulary (targets × vocabulary) that it computes at once; None if those of all targets."""
    continues: ClassVar[tuple[str, ...]]
    """Engines whose checkpoints it can continue from, with their weights and a new optimizer."""

    @staticmethod
    def architectures() -> tuple[str, ...]:
        """Model types that it supports, with `_` for `-`; empty if it accepts whatever transformers supports."""
        ...

    @staticmethod
    def check(model_type: str, head: Head, settings: Any) -> None:
        """Raises InputError if the engine, with its own `settings`, does not support this head of the architecture."""
        ...

    @staticmethod
    def split(settings: Any, devices: int, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Split:
        """How this many devices of a host share rows and parameters (`shapes` by name, empty if unknown).

        `config` is the model's configuration, empty if there is no model yet. `settings` are the engine's own. Raises InputError if they do not fit the devices or the model.
        """
        ...

    @staticmethod
    def create() -> "Engine":
        """The engine; imports its framework."""
        ...

    @staticmethod
    def knows_devices() -> bool:
        """Whether `devices` needs neither its framework nor a spec's environment here."""
        ...

    @staticmethod
    def devices() -> list[Device]:
        """The devices that the framework sees, accelerators first; imports it."""
        ...


class Engine(Protocol):
    """One framework with one loaded model."""

    constant_rows: ClassVar[bool]
    """Whether batches need a constant number of rows and few lengths, because shapes are compiled."""

    def load(self, loading: LoadRequest) -> LoadedModel:
        """Load the model. Raises InputError or RunFailed in one sentence."""
        ...

    def train_step(self, micro_batches: Sequence[Batch], step: int, learning_rate: float) -> StepResult:
        """One optimizer step over all micro-batches: summed loss ÷ the valid targets of the whole step.

        Dropout is seeded from (seed, step, micro-batch, process).
        """
        ...

    def read(self, results: Sequence[StepResult]) -> list[StepNumbers]:
        """Fetch a group of results from the device at once."""
        ...

    def evaluate(self, batch: Batch) -> dict[str, np.ndarray]:
        """The head's outputs for every row of the batch, without dropout or gradients."""
        ...

    def generate(self, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        """The generated text of every row: only new ids, without the end token; filler rows get none.

        CAUSAL_LM prompts are padded on the left, SEQ2SEQ_LM sources on the right.
        """
        ...

    def continue_prompt(self, input_ids: Sequence[int], settings: GenerationSettings) -> Iterator[int]:
        """Continue one prompt, yielding each token as it is generated."""
        ...

    def save(self, folder: Path) -> Finish:
        """Save weights and optimizer state, bit-exact, into an existing empty folder.

        The files are complete once the returned function was called, from any thread; training may continue meanwhile.
        """
        ...

    def restore(self, folder: Path) -> str:
        """Restore what `save` wrote, bit-exact; or only the weights if it `continues` another engine, with a note."""
        ...

    def export(self, folder: Path) -> None:
        """Write config and float32 weights in Hugging Face layout, safetensors; only the first host writes."""
        ...

    def device_memory_mb(self) -> float | None:
        """Peak memory used on the accelerator, or None on a CPU."""
        ...


class CompilingEngine(Engine, Protocol):
    """An engine with `constant_rows`."""

    def step_shapes(self, micro_batches: Sequence[Batch]) -> Hashable:
        """What a step over these micro-batches is compiled for: steps with equal shapes share a program."""
        ...
