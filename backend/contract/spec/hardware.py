"""Owns the `hardware` section: where a run computes and with which numbers."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from backend.contract.spec.environment import VARIABLES, refusal
from backend.contract.spec.section import Section
from backend.contract.spec.training import ADVANCED, HIDDEN


class HardwareSection(Section):
    """Where a run computes. An engine adds its own settings beside these."""

    model_config = ConfigDict(extra="allow")

    engine: Annotated[str, Field(title="Engine")] = "torch"
    """Which framework trains: `torch` (PyTorch with Accelerate) or `jax` (JAX with Flax and Optax)."""
    device: Annotated[Literal["auto", "cpu", "cuda", "mps", "xpu", "tpu"], Field(title="Device")] = "auto"
    """`auto` takes the first accelerator that is here, else the processor."""
    devices: Annotated[list[int] | None, Field(title="Which devices", json_schema_extra=ADVANCED)] = None
    """Numbers of the accelerators to use; empty takes the first, of several hosts all that each has. With several, each
    reads a part of every batch."""
    precision: Annotated[Literal["auto", "float32", "bfloat16", "float16"], Field(title="Precision")] = "auto"
    """Number format of the computation. Weights and optimizer stay in float32."""
    processes: Annotated[int, Field(title="Processes", ge=1, le=1024, json_schema_extra=HIDDEN)] = 1
    """Training processes, usually one per accelerator. Not supported yet."""
    bridge: Annotated[bool, Field(title="Bridge", exclude=True, json_schema_extra=HIDDEN)] = False
    """Only older specs set it: it let JAX compute PyTorch's code through torchax, which was removed."""
    micro_batch_size: Annotated[int | None, Field(title="Rows per device", ge=1)] = None
    """Rows of one device in one forward pass; fewer need less memory and change no result. Empty takes what fits."""
    memory_limit: Annotated[
        float | None, Field(title="Memory limit", gt=0, json_schema_extra={**ADVANCED, "unit": "GB"})
    ] = None
    """Plan as if the device had only this much memory."""
    environment: Annotated[
        dict[str, str],
        Field(
            title="Environment",
            json_schema_extra={**ADVANCED, "propertyNames": {"enum": list(VARIABLES)}},
        ),
    ] = {}
    """Environment variables for the training process, of those that only tune computation."""

    @field_validator("environment", mode="before")
    @classmethod
    def _numbers_are_text(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: str(value) if type(value) in (int, float) else value for name, value in values.items()}

    @field_validator("environment")
    @classmethod
    def _only_tunes(cls, values: dict[str, str]) -> dict[str, str]:
        if reason := refusal(values):
            raise ValueError(reason)
        return values
