"""A file of `accelerate config` becomes a hardware section, and counts the processes of a launched script."""

import pytest

from backend.contract.errors import InputError
from backend.importing.accelerate_config import import_config, recognises
from backend.importing.example_scripts import from_command, import_arguments

TWO_GPUS = {
    "compute_environment": "LOCAL_MACHINE", "debug": False, "distributed_type": "MULTI_GPU", "downcast_bf16": "no",
    "enable_cpu_affinity": False, "gpu_ids": "all", "machine_rank": 0, "main_training_function": "main", "mixed_precision": "bf16",
    "num_machines": 1, "num_processes": 2, "rdzv_backend": "static", "same_network": True, "tpu_env": [],
    "tpu_use_cluster": False, "tpu_use_sudo": False, "use_cpu": False,
}  # fmt: skip
"""As accelerate writes it."""


def of(command: str, **changes):
    """What a script's command line becomes that was launched with the file."""
    values, script = from_command(command)
    return import_arguments(values, script, import_config(TWO_GPUS | changes))


def test_processes_devices_and_precision_are_taken_over():
    result = import_config(TWO_GPUS)
    assert recognises(TWO_GPUS)
    assert result.spec == {"hardware": {"device": "cuda", "processes": 2, "precision": "bfloat16"}}
    assert result.unmatched == []


def test_listed_gpus_have_a_process_each():
    hardware = import_config(TWO_GPUS | {"gpu_ids": "2,3"}).spec["hardware"]
    assert (hardware["devices"], hardware.get("processes")) == ([2, 3], None)


def test_no_mixed_precision_is_float32():
    assert import_config(TWO_GPUS | {"mixed_precision": "no"}).spec["hardware"]["precision"] == "float32"


def test_fsdp_and_its_offload_are_taken_over():
    sharded = {"distributed_type": "FSDP", "fsdp_config": {"fsdp_offload_params": True}}
    hardware = import_config(TWO_GPUS | sharded).spec["hardware"]
    assert (hardware["strategy"], hardware["cpu_offload"], hardware["processes"]) == ("fsdp", True, 2)


def test_a_file_for_fsdp2_keeps_its_checkpointing():
    sharded = {"fsdp_version": 2, "fsdp_offload_params": False, "fsdp_activation_checkpointing": True}
    result = import_config(TWO_GPUS | {"distributed_type": "FSDP", "fsdp_config": sharded})
    assert (result.spec["training"], result.unmatched) == ({"gradient_checkpointing": True}, [])


def test_a_compiler_is_hardware_compile():
    dynamo = {"dynamo_backend": "INDUCTOR", "dynamo_use_dynamic": True, "dynamo_use_fullgraph": False}
    result = import_config(TWO_GPUS | {"dynamo_config": dynamo})
    assert (result.spec["hardware"]["compile"], result.unmatched) == ("always", [])
    assert "compile" not in import_config(TWO_GPUS | {"dynamo_config": {"dynamo_backend": "NO"}}).spec["hardware"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"distributed_type": "DEEPSPEED"}, "distributed_type: DEEPSPEED (hardware.strategy: fsdp shards a model here)"),
        ({"distributed_type": "XLA"}, "distributed_type: XLA (JAX trains on TPUs: hardware.engine: jax)"),
        ({"distributed_type": "MULTI_NPU"}, "distributed_type: MULTI_NPU (hardware.device is auto)"),
        ({"deepspeed_config": {"zero_stage": 3}}, "deepspeed_config.zero_stage: 3"),
        ({"dynamo_config": {"dynamo_backend": "EAGER"}}, "dynamo_backend: EAGER (INDUCTOR is used)"),
        ({"dynamo_config": {"dynamo_backend": "INDUCTOR", "dynamo_mode": "max-autotune"}}, "dynamo_mode: only the default one is used"),
        (
            {"distributed_type": "FSDP", "dynamo_config": {"dynamo_backend": "INDUCTOR"}},
            "dynamo_backend: INDUCTOR (with hardware.strategy: fsdp, layers are not compiled)",
        ),
        ({"mixed_precision": "fp8"}, "mixed_precision: fp8 (hardware.precision is auto)"),
        ({"num_machines": 2, "num_processes": 8}, "num_machines: 2 (PyTorch trains on one computer; its part is 4 processes)"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_listed_with_the_reason(changes: dict, line: str):
    assert import_config(TWO_GPUS | changes).unmatched == [line]


def test_ids_that_are_no_numbers_are_refused():
    with pytest.raises(InputError, match="gpu_ids: 'first' is not a list of numbers"):
        import_config(TWO_GPUS | {"gpu_ids": "first"})


@pytest.mark.parametrize("count", [2.5, 0, "nan", True])
def test_a_number_of_processes_that_is_none_is_refused(count: float | str):
    with pytest.raises(InputError, match=f"num_processes: {count} is not a number"):
        import_config(TWO_GPUS | {"num_processes": count, "gpu_ids": "0,1"})


RUN = "python run_qa.py --model_name_or_path m --dataset_name squad --per_device_train_batch_size 4 --gradient_accumulation_steps 3"


def test_a_batch_of_a_launched_script_counts_all_processes():
    spec = of(RUN).spec
    assert spec["training"]["batch_size"] == 24
    assert spec["hardware"] == {"device": "cuda", "processes": 2, "precision": "bfloat16", "micro_batch_size": 4}


def test_split_batches_are_not_multiplied():
    result = of(f"{RUN} --accelerator_config '{{\"split_batches\": true}}'")
    assert result.spec["training"]["batch_size"] == 12
    assert result.spec["hardware"]["micro_batch_size"] == 2
    assert result.unmatched == []


def test_it_is_said_that_no_row_is_repeated_to_fill_a_batch():
    assert any(note.startswith("even_batches: no row is repeated") for note in of(RUN).notes)
