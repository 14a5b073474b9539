"""Imports a file of `accelerate config` (YAML): the `hardware` section of a spec, and what is done otherwise here."""

from typing import Any

from backend.contract.errors import InputError
from backend.importing.foreign import ForeignConfig, ImportedSpec

_DEVICES = {"MULTI_GPU": "cuda", "MULTI_XPU": "xpu", "MULTI_CPU": "cpu"}
_SHARDED = ("DEEPSPEED", "MEGATRON_LM")
_TPUS = ("TPU", "XLA")
_PRECISIONS = {"no": "float32", "bf16": "bfloat16", "fp16": "float16"}
_OF_NO_MATTER = (
    "debug", "main_process_ip", "main_process_port", "main_training_function", "rdzv_backend", "same_network", "machine_rank",
    "tpu_env", "tpu_name", "tpu_zone", "tpu_use_cluster", "tpu_use_sudo", "tpu_vm", "command_file", "commands",
)  # fmt: skip


def recognises(values: dict[str, Any]) -> bool:
    """Whether this is such a file."""
    return "distributed_type" in values and not values.keys().isdisjoint(("compute_environment", "num_processes"))


def import_config(values: dict[str, Any]) -> ImportedSpec:
    """The file as a `hardware` section. Raises InputError for a number that is none."""
    config, result = ForeignConfig(values), ImportedSpec()
    kind = str(config.take("distributed_type")).upper()
    result.add(hardware={"device": "cpu" if config.take("use_cpu", False) else _DEVICES.get(kind)})
    if kind in _SHARDED:
        result.unmatched.append(f"distributed_type: {kind} (hardware.strategy: fsdp shards a model here)")
    elif kind in _TPUS:
        result.unmatched.append(f"distributed_type: {kind} (JAX trains on TPUs: hardware.engine: jax)")
    elif kind not in ("NO", "FSDP", *_DEVICES):
        result.unmatched.append(f"distributed_type: {kind} (hardware.device is auto)")
    _processes(config, result)
    if count_processes(result.spec.get("hardware", {})) > 1:
        result.notes.append(
            "even_batches: no row is repeated here to fill the last batch of an epoch; the processes share it unevenly."
        )
    _precision(config, result)
    if config.take("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        result.unmatched.append("compute_environment: a run starts on this computer")
    sections = {name: config.section(name) for name in ("deepspeed_config", "fsdp_config", "megatron_lm_config")}
    if kind == "FSDP" and count_processes(result.spec.get("hardware", {})) > 1:
        offloads = sections["fsdp_config"].take("fsdp_offload_params", False)
        result.add(hardware={"strategy": "fsdp", "cpu_offload": True if offloads else None})
    if sections["fsdp_config"].take("fsdp_activation_checkpointing", False):
        result.add(training={"gradient_checkpointing": True})
    sections["fsdp_config"].skip("fsdp_version")
    for section in sections.values():
        result.unmatched += section.unused()
    _compiler(config.section("dynamo_config"), result)
    result.unmatched += config.refuse("enable_cpu_affinity", "the system places the processes")
    if config.take("downcast_bf16", "no") in ("no", False):
        config.skip("downcast_bf16")
    config.skip(*_OF_NO_MATTER)
    result.unmatched += config.unused()
    return result


def _compiler(config: ForeignConfig, result: ImportedSpec) -> None:
    backend = str(config.take("dynamo_backend", "NO")).upper()
    if backend != "NO" and result.spec.get("hardware", {}).get("strategy") == "fsdp":
        result.unmatched.append(f"dynamo_backend: {backend} (with hardware.strategy: fsdp, layers are not compiled)")
    elif backend != "NO":
        result.add(hardware={"compile": "always"})
        if config.take("dynamo_mode", "default") != "default":
            result.unmatched.append("dynamo_mode: only the default one is used")
        # Lengths are variables in any case, and one layer at a time is compiled, as far as it can be.
        config.skip("dynamo_use_dynamic", "dynamo_use_fullgraph", "dynamo_use_regional_compilation")
        if backend != "INDUCTOR":
            result.unmatched.append(f"dynamo_backend: {backend} (INDUCTOR is used)")
        result.unmatched += config.unused()


def count_processes(hardware: dict[str, Any]) -> int:
    """The processes that a `hardware` section of `import_config` starts."""
    return hardware.get("processes") or len(hardware.get("devices") or "1")


def _processes(config: ForeignConfig, result: ImportedSpec) -> None:
    machines, processes = _whole(config, "num_machines"), _whole(config, "num_processes")
    count = max(1, processes // machines)
    devices = _numbers(str(config.take("gpu_ids", "all")))[:count]
    if machines > 1:
        result.unmatched.append(
            f"num_machines: {machines} (PyTorch trains on one computer; its part is {count} processes)"
        )
    if devices:
        result.add(hardware={"devices": devices})
    if count > max(1, len(devices)):
        result.add(hardware={"processes": count})


def _whole(config: ForeignConfig, key: str) -> int:
    number = config.take(key, 1)
    if not isinstance(number, int) or number < 1:
        raise InputError(f"{key}: {number} is not a number of at least 1 without decimals; write one", key)
    return number


def _numbers(ids: str) -> list[int]:
    if ids == "all":
        return []
    try:
        return [int(one) for one in ids.split(",")]
    except ValueError:
        raise InputError(
            f"gpu_ids: {ids!r} is not a list of numbers; write all, or for example 0,1", "gpu_ids"
        ) from None


def _precision(config: ForeignConfig, result: ImportedSpec) -> None:
    chosen = config.take("mixed_precision") or ("fp16" if config.take("fp16", False) else "no")
    config.skip("fp16")
    if chosen not in _PRECISIONS:
        result.unmatched.append(f"mixed_precision: {chosen} (hardware.precision is auto)")
    result.add(hardware={"precision": _PRECISIONS.get(chosen)})
