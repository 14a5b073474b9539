"""JAX with Flax and Optax. The engine itself is imported when it is first used, so that the catalog stays fast."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from backend import registry
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.spec import Section
from backend.engines.engine import Split
from backend.engines.hosts import Position, Store
from backend.engines.jax import cluster, sharding


class Settings(Section):
    """The JAX engine's own keys of the `hardware` section."""

    parallelism: Annotated[
        Literal["data", "fsdp"], Field(title="Parallelism", json_schema_extra={"advanced": True})
    ] = "data"
    """With several devices: `data` keeps the whole model on each; `fsdp` shards large weights and their optimizer
    state across them, which needs less memory and more communication."""
    tensor_parallel: Annotated[
        int, Field(title="Tensor parallelism", ge=1, le=1024, json_schema_extra={"advanced": True})
    ] = 1
    """Number of devices that compute each layer together, for models that support it."""
    hosts: Annotated[int, Field(title="Hosts", ge=1, le=4096, json_schema_extra={"advanced": True})] = 1
    """Number of computers that train this run together. Start each with the same command; `BURNISH_HOST` specifies
    which one it is."""
    coordinator: Annotated[str, Field(title="Coordinator address", json_schema_extra={"advanced": True})] = ""
    """Address at which the first of several hosts listens for the others, such as `10.0.0.1:8476`. Empty on a TPU pod
    and under Slurm."""
    host_timeout: Annotated[
        int, Field(title="Host timeout", ge=1, le=86400, json_schema_extra={"advanced": True, "unit": "s"})
    ] = 300
    """Number of seconds that hosts wait for one another before the run starts."""

    @field_validator("coordinator")
    @classmethod
    def _has_a_port(cls, coordinator: str) -> str:
        host, _, port = coordinator.rpartition(":")
        if coordinator and not (host and port.isdecimal() and 0 < int(port) < 65536):
            raise ValueError(message("specify a host and a port, such as 10.0.0.1:8476"))
        return coordinator


class JaxEntry:
    """The catalog's facts about this engine, and access to it."""

    title = "JAX"
    description = "JAX with Flax and Optax, on TPU, GPU and CPU."
    Settings = Settings
    requires = ("jax", "flax", "optax", "orbax-checkpoint", "transformers", "safetensors")
    extra = "jax"
    optimizers = ("adafactor", "adam", "adamw", "lion", "sgd")
    several_processes = False
    weight_formats = ("float32",)
    rounds_stochastically = False
    adapter_initializations = ("default",)
    logits_at_once = None
    continues = ("torch",)

    @staticmethod
    def architectures() -> tuple[str, ...]:
        """The modules of `models`, found without importing them."""
        return registry.names("family")

    @staticmethod
    def check(model_type: str, head: Head, settings: Settings) -> None:
        """Raises InputError if no supported family has the head."""
        from backend.engines.jax.model import find_family  # jax takes seconds to import, and few ask for this

        find_family({"model_type": model_type}, head)

    @staticmethod
    def split(
        settings: Settings, devices: int, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]
    ) -> Split:
        """How the devices of every host share the work. Raises InputError if groups do not divide them or layers."""
        model_type = str(config.get("model_type", ""))
        over = sharding.grid(devices * settings.hosts, settings.tensor_parallel, settings.parallelism)
        if over.members == 1 or not model_type:
            return replace(sharding.split(shapes, over, {}), hosts=settings.hosts)
        from backend.engines.jax.model import find_family  # jax takes seconds to import, and few ask for this

        rules = find_family({"model_type": model_type}).divided
        sharding.check_rules(model_type, over.members, rules)
        return replace(sharding.split(shapes, over, rules), hosts=settings.hosts)

    @staticmethod
    def position(settings: Settings) -> Position:
        """Which of the run's hosts this one is. Raises InputError if that cannot be determined."""
        return cluster.position(settings.hosts, settings.coordinator, settings.host_timeout)

    @staticmethod
    def join(position: Position) -> Store:
        """Connect to the other hosts, before JAX is used for anything else. Raises RunFailed if one does not arrive."""
        return cluster.join(position)

    @staticmethod
    def create():
        """The engine; imports jax."""
        from backend.engines.jax.engine import JaxEngine  # jax takes seconds to import

        return JaxEngine()

    @staticmethod
    def knows_devices() -> bool:
        """A spec may ask XLA for several processors by an environment of its own."""
        return False

    @staticmethod
    def devices():
        """The devices that JAX sees; imports jax."""
        from backend.engines.jax.devices import devices  # jax takes seconds to import

        return devices()


ENGINE = JaxEntry
