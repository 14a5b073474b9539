"""PyTorch with Accelerate. The engine itself is imported when it is first used, so that the catalog stays fast."""

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from backend.adapters.lora import Initialization
from backend.contract.heads import Head
from backend.contract.spec import Section
from backend.engines.engine import Split
from backend.engines.weight_formats import FORMATS


class Settings(Section):
    """The torch engine's own keys of the `hardware` section."""

    threads: Annotated[int | None, Field(title="CPU threads", ge=1, le=1024, json_schema_extra={"advanced": True})] = (
        None
    )
    """Number of CPU threads. Empty uses all cores."""


class TorchEntry:
    """The catalog's facts about this engine, and access to it."""

    title = "PyTorch"
    description = "PyTorch with Accelerate, on CPU and on NVIDIA, AMD, Intel and Apple GPUs."
    Settings = Settings
    requires = ("torch", "transformers", "accelerate", "safetensors")
    extra = "torch"
    optimizers = ()
    several_devices = False
    weight_formats = FORMATS
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
    def split(settings: Settings, devices: int, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> Split:
        """All on one device."""
        return Split()

    @staticmethod
    def create():
        """The engine; imports torch."""
        from backend.engines.torch import lean_imports  # torch takes seconds to import

        lean_imports.install()
        from backend.engines.torch.engine import TorchEngine

        return TorchEngine()

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
