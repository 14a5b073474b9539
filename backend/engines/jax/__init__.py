"""JAX with Flax and Optax. The engine itself is imported when it is first used, so that the catalog stays quick."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from backend import registry
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import Section
from backend.engines.engine import Split
from backend.engines.jax import sharding
from backend.engines.jax.bridge import BRIDGE, SETTING


class Settings(Section):
    """The JAX engine's own keys of the `hardware` section."""

    parallelism: Annotated[
        Literal["data", "fsdp"], Field(title="Parallelism", json_schema_extra={"advanced": True})
    ] = "data"
    """With several devices: `data` keeps the whole model on each; `fsdp` divides large weights and their optimizer state
    among them, which needs less memory and more messages."""
    tensor_parallel: Annotated[
        int, Field(title="Devices per layer", ge=1, le=1024, json_schema_extra={"advanced": True})
    ] = 1
    """Devices that compute every layer together, each with a part of its matrices; for models that know how."""
    bridge: Annotated[bool, Field(title="Bridge to PyTorch", json_schema_extra={"advanced": True})] = False
    """For architectures that JAX does not know itself: it computes transformers' own PyTorch code through torchax. It
    writes slower, and has no adapters; needs burnish[bridge]."""


class JaxEntry:
    """What the catalog says of this engine, and the door to it."""

    title = "JAX"
    description = "JAX with Flax and Optax, on TPU, GPU and processor."
    Settings = Settings
    requires = ("jax", "flax", "optax", "orbax-checkpoint", "transformers", "safetensors")
    extra = "jax"
    optimizers = ("adafactor", "adam", "adamw", "lion", "sgd")
    several_devices = True
    bridge = BRIDGE
    continues = ("torch",)

    @staticmethod
    def architectures() -> tuple[str, ...]:
        """The modules of `models`, found without importing one."""
        return registry.names("family")

    @staticmethod
    def check(model_type: str, head: Head, settings: Settings) -> None:
        """Raises InputError where no family of ours has the head, nor the bridge where it is wished."""
        if settings.bridge and head in BRIDGE.heads:
            return
        if settings.bridge and not _is_family(model_type):
            raise InputError(f"{SETTING}: the bridge knows no {head.replace('_', ' ')}; choose PyTorch", SETTING)
        from backend.engines.jax.model import find_family  # jax takes seconds to import, and few ask for this

        find_family({"model_type": model_type}, head)

    @staticmethod
    def split(settings: Settings, devices: int, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> Split:
        """What each of the devices gets. Raises InputError for groups that do not divide them, or layers."""
        over = sharding.grid(devices, settings.tensor_parallel, settings.parallelism)
        if over.members == 1 or not model_type:
            return sharding.split(shapes, over, {})
        from backend.engines.jax.model import find_family  # jax takes seconds to import, and few ask for this

        rules = (
            {} if settings.bridge and not _is_family(model_type) else find_family({"model_type": model_type}).divided
        )
        sharding.check_rules(model_type, over.members, rules)
        return sharding.split(shapes, over, rules)

    @staticmethod
    def create():
        """The engine; imports jax."""
        from backend.engines.jax.engine import JaxEngine  # jax takes seconds to import

        return JaxEngine()

    @staticmethod
    def devices():
        """What JAX sees to compute on; imports jax."""
        from backend.engines.jax.devices import devices  # jax takes seconds to import

        return devices()


def _is_family(model_type: str) -> bool:
    return model_type.replace("-", "_") in JaxEntry.architectures()


ENGINE = JaxEntry
