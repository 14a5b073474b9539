"""A spec from a stranger sets variables that tune computation, and nothing that loads code, touches a file or calls a host."""

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import HardwareSection, validate
from backend.contract.spec.environment import VARIABLES


def environment(**values: str) -> dict[str, str]:
    return validate(HardwareSection, {"environment": values}, "hardware").environment


def refused(values: dict[str, str]) -> str:
    with pytest.raises(InputError) as refusal:
        validate(HardwareSection, {"environment": values}, "hardware")
    assert refusal.value.field is not None
    assert refusal.value.field.startswith("hardware.environment")
    sentence = str(refusal.value)
    assert sentence.isprintable()
    assert len(sentence) < 400
    return sentence


@pytest.mark.parametrize(
    "name",
    [
        "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "OMP_TOOL_LIBRARIES",
        "CUDA_INJECTION64_PATH", "CUDA_CACHE_PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_DEBUG_FILE",
        "NCCL_TOPO_FILE", "NCCL_CONF_FILE", "NCCL_SOCKET_IFNAME", "TORCHINDUCTOR_CACHE_DIR", "TORCH_COMPILE_DEBUG",
        "TORCH_EXTENSIONS_DIR", "JAX_COMPILATION_CACHE_DIR", "JAX_DUMP_IR_TO", "PJRT_NAMES_AND_LIBRARY_PATHS",
        "TPU_LIBRARY_PATH", "MALLOC_CONF", "GCONV_PATH", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "HF_ENDPOINT",
        "HF_HUB_OFFLINE", "HF_TOKEN", "HF_HOME", "BURNISH_CONFIG", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "CC", "CXX",
        "omp_num_threads",
    ],
)  # fmt: skip
def test_any_other_variable_is_refused_by_its_name(name: str):
    assert f"{name} cannot be set in a spec: only variables that tune computation can" in refused({name: "x"})


@pytest.mark.parametrize("name", ["", "A=B", "A\0B", "=", "\udcff", "OMP NUM", "ä", "\x1b[2J", "A" * 100_000])
def test_name_that_is_none_is_one_plain_sentence(name: str):
    assert "is not a variable that a spec may set" in refused({name: "1"})


@pytest.mark.parametrize("value", ["4\0", "4\nLD_PRELOAD=x", "\udcff", "\x1b[2J", "४", "4\t"])
def test_value_beyond_plain_text_is_refused_by_the_sign_that_does_not_do(value: str):
    assert f"OMP_NUM_THREADS contains {value.strip('4')[0]!a}, but only" in refused({"OMP_NUM_THREADS": value})


def test_endless_value_is_refused_by_its_length():
    assert "OMP_NUM_THREADS has a value of more than 2,000 characters" in refused({"OMP_NUM_THREADS": "1" * 100_000})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "4"),
        ("OMP_PLACES", "{0:4}:8"),
        ("KMP_AFFINITY", "granularity=fine,compact,1,0"),
        ("CUDA_VISIBLE_DEVICES", "MIG-GPU-8f/1/0,1"),
        ("CUDA_VISIBLE_DEVICES", ""),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:512"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", ".8"),
        ("JAX_PLATFORMS", "cuda,cpu"),
        ("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=4"),
        ("LIBTPU_INIT_ARGS", "--xla_tpu_enable_latency_hiding_scheduler=true"),
    ],
)
def test_variable_that_tunes_computation_is_set(name: str, value: str):
    assert environment(**{name: value}) == {name: value}


def test_plain_number_is_a_value():
    section = HardwareSection.model_validate(
        {"environment": {"OMP_NUM_THREADS": 1, "XLA_PYTHON_CLIENT_MEM_FRACTION": 0.8}}
    )
    assert section.environment == {"OMP_NUM_THREADS": "1", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.8"}


@pytest.mark.parametrize(
    "flags",
    [
        "--xla_dump_to=/etc", "/home/somebody/flags", "--xla_cpu_enable_fast_math --xla_dump_hlo_as_text",
        "-xla_dump_to=x", "'--xla_dump_to=x'", "--xla_gpu_autotune_level=4;--xla_dump_to=x", "--xla_gpu_cuda_data_dir=x",
        "--xla_cpu_max_isa=../x", "--xla_force_host_platform_device_count=1000000000",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["XLA_FLAGS", "LIBTPU_INIT_ARGS"])
def test_flag_that_writes_files_is_refused(name: str, flags: str):
    assert "is not a flag that a spec may set" in refused({name: flags})


def test_platform_on_another_machine_is_refused():
    assert "JAX_PLATFORMS accepts cpu" in refused({"JAX_PLATFORMS": "proxy"})


@pytest.mark.parametrize(
    "part", ["PATH", "FILE", "DIR", "PLUGIN", "LIBRAR", "_TOKEN", "HOST_", "URL", "ENDPOINT", "PROXY"]
)
def test_no_variable_on_the_list_names_a_place(part: str):
    assert not [name for name in VARIABLES if part in name]
