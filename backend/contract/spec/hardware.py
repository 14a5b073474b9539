"""The `hardware` section: the devices and precision of a run."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from backend.contract.spec.auto import AUTO, OrAuto
from backend.contract.spec.environment import VARIABLES, find_problem
from backend.contract.spec.section import Section
from backend.contract.spec.training import ADVANCED, HIDDEN


class HardwareSection(Section):
    """Where a run computes. An engine adds its own settings to these."""

    model_config = ConfigDict(extra="allow")

    engine: Annotated[str, Field(title="Engine")] = "torch"
    """The framework that trains: `torch` (PyTorch with Accelerate) or `jax` (JAX with Flax and Optax)."""
    device: Annotated[Literal["auto", "cpu", "cuda", "mps", "xpu", "tpu"], Field(title="Device")] = "auto"
    """`auto` uses an accelerator if there is one, otherwise the CPU."""
    devices: Annotated[list[int] | None, Field(title="Device IDs", json_schema_extra=ADVANCED)] = None
    """IDs of the accelerators to use. Empty uses the one with the most free memory, with several processes as many, or
    with several hosts, all devices of each host. With several devices, each processes a part of every batch."""
    precision: Annotated[Literal["auto", "float32", "bfloat16", "float16"], Field(title="Precision")] = "auto"
    """Number format for computing. Weights and optimizer state stay in float32."""
    processes: Annotated[int, Field(title="Processes", ge=1, le=1024, json_schema_extra=ADVANCED), OrAuto()] = AUTO
    """Processes that train together, each with a part of every batch; the result is that of one process. `auto`
    starts one for each device, and one on the CPU. Only PyTorch uses several; JAX uses all devices from one."""
    bridge: Annotated[bool, Field(title="Bridge", exclude=True, json_schema_extra=HIDDEN)] = False
    """Only set in older specs: it let JAX run PyTorch code through torchax, which was removed."""
    micro_batch_size: Annotated[int | None, Field(title="Micro-batch size", ge=1)] = None
    """Rows per device in one forward pass. A smaller value needs less memory and does not change the result. Empty
    chooses a size that fits."""
    memory_limit: Annotated[
        float | None, Field(title="Memory limit", gt=0, json_schema_extra={**ADVANCED, "unit": "GB"})
    ] = None
    """Plan as if the device had only this much memory."""
    max_restarts: Annotated[int, Field(title="Max restarts", ge=0, le=1000, json_schema_extra=ADVANCED)] = 3
    """How often a run restarts by itself from its last checkpoint when its process was killed or crashed. Each new
    checkpoint starts the count again; a run without any restarts once, from the beginning. 0 turns this off. A run on
    several hosts does not restart by itself."""
    environment: Annotated[
        dict[str, str],
        Field(
            title="Environment variables",
            json_schema_extra={**ADVANCED, "propertyNames": {"enum": list(VARIABLES)}},
        ),
    ] = {}
    """Environment variables for the training process. Only variables that tune computation are allowed."""

    @field_validator("environment", mode="before")
    @classmethod
    def _numbers_are_text(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: str(value) if type(value) in (int, float) else value for name, value in values.items()}

    @field_validator("environment")
    @classmethod
    def _only_tunes(cls, values: dict[str, str]) -> dict[str, str]:
        if reason := find_problem(values):
            raise ValueError(reason)
        return values
