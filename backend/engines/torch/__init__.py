"""PyTorch with Accelerate. The engine itself is imported when it is first used, so that the catalog stays fast."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from backend.adapters.lora import Initialization
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import Section
from backend.engines.engine import Split
from backend.engines.weight_formats import FORMATS

if TYPE_CHECKING:
    from backend.engines.torch.distributed.process_group import ProcessGroup


_SKIPPED = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop")
"""What a configuration calls the probability that a layer is skipped; no other block is entered for some rows only:
experts are parts of a layer, and a layer is gathered as a whole."""
_SKIPS_UNLESS_SET = {"m2m_100", "nllb-moe"}
"""Families whose configuration skips layers if it says nothing."""
_SHARE_LAYERS = {"zamba", "zamba2"}
COMPILATION_FAILED = "compilation_failed"
"""The code of a failure to compile the model."""


class Settings(Section):
    """The torch engine's own keys of the `hardware` section."""

    threads: Annotated[int | None, Field(title="CPU threads", ge=1, le=1024, json_schema_extra={"advanced": True})] = (
        None
    )
    """Number of CPU threads of each process. Empty divides the cores among the processes."""
    compile: Annotated[
        Literal["auto", "never", "if_possible", "always"], Field(title="Compile", json_schema_extra={"advanced": True})
    ] = "auto"
    """Compile the model's layers with `torch.compile`: steps are faster, but the first one takes a minute or more. `auto`
    compiles on a GPU if the run is long enough for that to pay. If PyTorch cannot compile the model, the run fails with
    `always`, and goes on without with `if_possible` or `auto`. Evaluations and predictions are computed without it."""
    strategy: Annotated[Literal["ddp", "fsdp"], Field(title="Strategy", json_schema_extra={"advanced": True})] = "ddp"
    """How several processes train one model. With `ddp` each holds all of it. With `fsdp` each holds a part of the
    weights, gradients and optimizer state, and gathers one layer after another: for models that do not fit into the
    memory of one device. The result is the same."""
    cpu_offload: Annotated[
        bool, Field(title="CPU offload", json_schema_extra={"advanced": True, "when": {"strategy": ["fsdp"]}})
    ] = False
    """With `fsdp` on accelerators, keep each process's part in the computer's memory, where the optimizer computes too.
    This saves the most device memory, and is slower."""
    collective_timeout: Annotated[
        int, Field(title="Collective timeout", ge=1, le=86400, json_schema_extra={"advanced": True, "unit": "s"})
    ] = 600
    """With several processes, number of seconds that they wait for one another in a step before the run fails. Raise
    it if a step takes longer than this on one of them. A process that dies ends the run at once in any case."""


def _check_sharding(shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> None:
    """Raises InputError for a model that PyTorch cannot shard, or whose processes would wait for one another."""
    model_type = str(config.get("model_type", ""))
    usual = model_type in _SKIPS_UNLESS_SET
    if skips := [name for name in _SKIPPED if config.get(name, usual and name != "layerdrop")]:
        raise InputError(
            "hardware.strategy: this model skips layers at random in training, each process others, and fsdp needs "
            "every layer in every process; set {names} to 0 in model.config, or this to ddp",
            "hardware.strategy",
            names=" and ".join(skips),
        )
    if model_type in _SHARE_LAYERS:
        raise InputError(
            "hardware.strategy: fsdp cannot shard a {model_type} model, whose layers share weights; set it to ddp",
            "hardware.strategy",
            model_type=model_type,
        )
    if scalar := next((name for name, shape in shapes.items() if not shape), ""):
        raise InputError(
            "hardware.strategy: fsdp cannot shard {name}, which is a single number without a dimension; set it to ddp",
            "hardware.strategy",
            name=scalar,
        )


class TorchEntry:
    """The catalog's facts about this engine, and access to it."""

    _group: "ClassVar[ProcessGroup | None]" = None
    title = "PyTorch"
    description = "PyTorch with Accelerate, on CPU and on NVIDIA, AMD, Intel and Apple GPUs."
    Settings = Settings
    requires = ("torch", "transformers", "accelerate", "safetensors")
    extra = "torch"
    optimizers = ()
    several_processes = True
    weight_formats = FORMATS
    rounds_stochastically = True
    adapter_initializations = get_args(Initialization)
    logits_at_once = 1 << 25
    continues = ()

    @staticmethod
    def architectures() -> tuple[str, ...]:
        """Whatever transformers supports."""
        return ()

    @staticmethod
    def check(model_type: str, head: Head, settings: Settings) -> None:
        """Checks nothing: if transformers has no class for a head, the model check reports it."""

    @staticmethod
    def split(
        settings: Settings, devices: int, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]
    ) -> Split:
        """Each device reads rows of its own, and holds the whole model or, with FSDP, a part of it.

        Raises InputError if FSDP cannot shard the model.
        """
        if settings.strategy != "fsdp":
            return Split(replicas=devices)
        _check_sharding(shapes, config)
        return Split(replicas=devices, share=1 / devices)

    @staticmethod
    def onnx() -> Any:
        """What writes models as ONNX and answers with such files (`onnx_model.py`); imports torch."""
        from backend.engines.torch import onnx_model

        return onnx_model

    @staticmethod
    def create():
        """The engine, of all processes that this one has met; imports torch."""
        from backend.engines.torch import lean_imports  # torch takes seconds to import

        lean_imports.install()
        if TorchEntry._group is not None:
            from backend.engines.torch.distributed.leading_engine import LeadingEngine

            return LeadingEngine(TorchEntry._group)
        from backend.engines.torch.engine import TorchEngine

        return TorchEngine()

    @staticmethod
    def join_processes(rank: int, count: int, rendezvous: str) -> None:
        """Meet the other processes of the run; imports torch."""
        from backend.engines.torch import lean_imports

        lean_imports.install()
        from backend.engines.torch.distributed.process_group import ProcessGroup

        TorchEntry._group = ProcessGroup.join(rank, count, rendezvous)

    @staticmethod
    def follow() -> None:
        """Compute what the first process wants, until it is done."""
        from backend.engines.torch.distributed import leading_engine

        assert TorchEntry._group is not None
        leading_engine.follow(TorchEntry._group)
        TorchEntry._group.leave()

    @staticmethod
    def leave_processes() -> None:
        """Let the other processes end."""
        from backend.engines.torch.distributed.leading_engine import END

        assert TorchEntry._group is not None
        TorchEntry._group.send(END, {})
        TorchEntry._group.leave()

    @staticmethod
    def knows_devices() -> bool:
        """Where the system has no accelerator there is nothing to ask torch for."""
        from backend.engines.torch.devices import may_have_accelerator  # a program, which a package must not import

        return not may_have_accelerator()

    @staticmethod
    def devices():
        """What PyTorch sees to compute on; imports torch where there may be an accelerator."""
        from backend.engines.torch.devices import devices

        return devices()


ENGINE = TorchEntry
