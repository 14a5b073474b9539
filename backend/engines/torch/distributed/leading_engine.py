"""An engine of several processes: the first runs the loop, and its calls that compute are made by all of them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from backend import registry
from backend.contract.heads import HeadFacts
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import ModelSection, Section, TrainingSection
from backend.engines.engine import Batch, Finish, LoadedModel, LoadRequest, StepNumbers, StepResult
from backend.engines.initial_weights import NewTokens
from backend.engines.torch import Settings
from backend.engines.torch.distributed.process_group import Call, ProcessGroup
from backend.engines.torch.engine import TorchEngine


class LeadingEngine:
    """The engine of the first process (`backend.engines.engine.Engine`)."""

    constant_rows: ClassVar[bool] = TorchEngine.constant_rows

    def __init__(self, group: ProcessGroup) -> None:
        self._group, self._own = group, TorchEngine(group)
        self._is_sharded = False

    def load(self, loading: LoadRequest) -> LoadedModel:
        """Load the model on every process's device."""
        self._is_sharded = isinstance(loading.hardware, Settings) and loading.hardware.strategy == "fsdp"
        self._group.send("load", _pack_request(loading))
        return self._own.load(loading)

    def train_step(self, micro_batches: Sequence[Batch], step: int, learning_rate: float) -> StepResult:
        """One optimizer step; every process gets the whole step and computes its own rows."""
        self._group.send("train_step", {"step": step, "learning_rate": learning_rate}, micro_batches)
        return self._own.train_step(micro_batches, step, learning_rate)

    def read(self, results: Sequence[StepResult]) -> list[StepNumbers]:
        """Fetch a group of results from the first device."""
        return self._own.read(results)

    def evaluate(self, batch: Batch) -> dict[str, np.ndarray]:
        """The head's outputs for every row of the batch, each computed once."""
        self._group.send("evaluate", {}, [batch])
        return self._own.evaluate(batch)

    def generate(self, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        """The generated text of every row, each written once."""
        self._group.send("generate", _pack_settings(settings), [batch])
        return self._own.generate(batch, settings)

    def continue_prompt(self, input_ids: Sequence[int], settings: GenerationSettings) -> Iterator[int]:
        """Continue one prompt on the first process alone."""
        return self._own.continue_prompt(input_ids, settings)

    def save(self, folder: Path) -> Finish:
        """Save what the first process has, or of a sharded model what each has; how many there are leaves no trace."""
        if self._is_sharded:
            self._group.send("save", {"folder": str(folder)})
        return self._own.save(folder)

    def restore(self, folder: Path) -> str:
        """Restore a checkpoint in every process."""
        self._group.send("restore", {"folder": str(folder)})
        return self._own.restore(folder)

    def export(self, folder: Path) -> None:
        """Write the first process's weights, or those of all if each has a part."""
        if self._is_sharded:
            self._group.send("export", {"folder": str(folder)})
        self._own.export(folder)

    def device_memory_mb(self) -> float | None:
        """Peak memory used on the first process's accelerator, or None on a CPU."""
        return self._own.device_memory_mb()


def follow(group: ProcessGroup) -> None:
    """Make the first process's calls until it is done."""
    engine = TorchEngine(group)
    while (call := group.receive()).method != END:
        _make(engine, call)


END = "end"


def _make(engine: TorchEngine, call: Call) -> None:
    match call.method:
        case "load":
            engine.load(_unpack_request(call.values))
        case "train_step":
            engine.train_step(call.batches, call.values["step"], call.values["learning_rate"])
        case "evaluate":
            engine.evaluate(call.batches[0])
        case "generate":
            engine.generate(call.batches[0], GenerationSettings(**call.values))
        case "restore":
            engine.restore(Path(call.values["folder"]))
        case "save":
            with suppress(OSError):  # the first process says so
                engine.save(Path(call.values["folder"]))
        case "export":
            with suppress(OSError):
                engine.export(Path(call.values["folder"]))
        case _:
            raise AssertionError(call.method)


def _pack_request(loading: LoadRequest) -> dict[str, Any]:
    return {each.name: _pack(getattr(loading, each.name)) for each in fields(loading) if each.name != "compiling"}


def _pack(value: Any) -> Any:
    if isinstance(value, Section):
        return value.model_dump(mode="json")
    return str(value) if isinstance(value, Path) else msgspec.to_builtins(value, str_keys=True)


def _unpack_request(values: dict[str, Any]) -> LoadRequest:
    training, adapter, hardware = (values[name] for name in ("training", "adapter", "hardware"))
    made = {
        "folder": Path(values["folder"]),
        "head": msgspec.convert(values["head"], HeadFacts),
        "model": ModelSection.model_validate(values["model"]),
        "training": training and TrainingSection.model_validate(training),
        "devices": tuple(values["devices"]),
        "new_tokens": msgspec.convert(values["new_tokens"], NewTokens, strict=False),
        "adapter": adapter
        and registry.find("adapter", adapter["type"], "adapter.type").Settings.model_validate(adapter),
        "hardware": hardware and Settings.model_validate(hardware),
    }
    return LoadRequest(**{**values, **made})


def _pack_settings(settings: GenerationSettings) -> dict[str, Any]:
    names = [each.name for each in fields(settings) if each.name != "stop_requested"]
    return {name: getattr(settings, name) for name in names}
