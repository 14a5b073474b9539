"""Checks the environment variables of a spec, which may be untrusted: only those that tune computation may be set.

A variable is on the list if no value of it can load code, read or write a file, or reach another machine. So no
variable with a path is here, nor `OMP_TOOL_LIBRARIES`, `CUDA_INJECTION64_PATH`, `NCCL_NET_PLUGIN`, `NCCL_DEBUG_FILE`,
`MALLOC_CONF`, `TORCH_COMPILE_DEBUG` or `JAX_COMPILATION_CACHE_DIR`. Any others belong to the machine, and its
user sets them there. XLA's flags can write files too, so they have their own list.
"""

import re
from collections.abc import Mapping
from itertools import chain

from backend.contract.messages import message

_THREADS = (
    "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OMP_PROC_BIND", "OMP_PLACES", "OMP_SCHEDULE", "OMP_STACKSIZE",
    "OMP_WAIT_POLICY", "OMP_MAX_ACTIVE_LEVELS", "KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_HW_SUBSET", "KMP_DUPLICATE_LIB_OK",
    "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "MKL_NUM_THREADS", "MKL_DYNAMIC", "MKL_DOMAIN_NUM_THREADS", "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS",
    "RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM", "ARROW_IO_THREADS", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
)  # fmt: skip
_DEVICES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES",
    "TPU_PROCESS_BOUNDS", "TPU_CHIPS_PER_PROCESS_BOUNDS",
)  # fmt: skip
_TORCH = (
    "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_ENABLE_MPS_FALLBACK", "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_MPS_LOW_WATERMARK_RATIO",
    "PYTORCH_MPS_FAST_MATH", "PYTORCH_MPS_PREFER_METAL", "TORCH_COMPILE_DISABLE", "TORCH_SHOW_CPP_STACKTRACES",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
)  # fmt: skip
_JAX = (
    "JAX_PLATFORMS", "JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION", "JAX_DEFAULT_PRNG_IMPL",
    "JAX_THREEFRY_PARTITIONABLE", "JAX_DEBUG_NANS", "JAX_DEBUG_INFS", "JAX_DISABLE_JIT", "JAX_LOG_COMPILES",
    "JAX_TRACEBACK_FILTERING", "JAX_ENABLE_COMPILATION_CACHE", "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_CLIENT_MEM_FRACTION", "TF_GPU_ALLOCATOR",
    "TF_FORCE_UNIFIED_MEMORY", "TF_CPP_MIN_LOG_LEVEL",
)  # fmt: skip
_NCCL = (
    "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_IB_TIMEOUT",
    "NCCL_IB_RETRY_CNT", "NCCL_NET_GDR_LEVEL", "NCCL_CROSS_NIC", "NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE",
    "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD", "NCCL_LAUNCH_MODE",
)  # fmt: skip
XLA_FLAGS = tuple(
    sorted(
        {
            "xla_force_host_platform_device_count", "xla_backend_optimization_level", "xla_allow_excess_precision",
            "xla_cpu_multi_thread_eigen", "xla_cpu_enable_fast_math", "xla_cpu_enable_fast_min_max", "xla_cpu_max_isa",
            "xla_cpu_prefer_vector_width", "xla_cpu_use_thunk_runtime", "xla_gpu_autotune_level",
            "xla_gpu_deterministic_ops", "xla_gpu_exclude_nondeterministic_ops", "xla_gpu_enable_latency_hiding_scheduler",
            "xla_gpu_enable_triton_gemm", "xla_gpu_triton_gemm_any", "xla_gpu_enable_cublaslt",
            "xla_gpu_enable_command_buffer", "xla_gpu_enable_highest_priority_async_stream",
            "xla_gpu_enable_pipelined_all_gather", "xla_gpu_enable_pipelined_all_reduce",
            "xla_gpu_enable_pipelined_reduce_scatter", "xla_gpu_enable_while_loop_double_buffering",
            "xla_gpu_all_gather_combine_threshold_bytes", "xla_gpu_all_reduce_combine_threshold_bytes",
            "xla_gpu_reduce_scatter_combine_threshold_bytes", "xla_gpu_memory_limit_slop_factor",
            "xla_tpu_enable_latency_hiding_scheduler", "xla_tpu_enable_async_collective_fusion",
            "xla_tpu_enable_async_collective_fusion_fuse_all_gather", "xla_tpu_overlap_compute_collective_tc",
            "xla_tpu_scoped_vmem_limit_kib", "xla_tpu_spmd_threshold_for_allgather_cse",
        }
    )
)  # fmt: skip
"""Flags allowed in `XLA_FLAGS` and `LIBTPU_INIT_ARGS`: `--FLAG`, or `--FLAG=VALUE`."""
_OF_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
VARIABLES = tuple(sorted(chain(_THREADS, _DEVICES, _TORCH, _JAX, _NCCL, _OF_FLAGS)))
"""Environment variables that a spec may set."""

_LONGEST = 2000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNFIT = re.compile(r"[^ -~]")
_FLAG = re.compile(r"--(\w+)(?:=[\w.,+-]*)?")
_PROCESSORS = re.compile(r"--xla_force_host_platform_device_count=\d{1,3}")
"""A million of them would fill the memory with descriptions of devices."""
_PLATFORMS = re.compile(r"(cpu|gpu|cuda|rocm|tpu)?(,(cpu|gpu|cuda|rocm|tpu))*")
_SHOWN = 40


def find_problem(environment: Mapping[str, str]) -> str:
    """Why a spec may not set these variables to these values, as one sentence; empty if it may."""
    return next(filter(None, (_find_problem(name, value) for name, value in environment.items())), "")


def _find_problem(name: str, value: str) -> str:
    if name not in VARIABLES:
        return _not_allowed(name)
    if len(value) > _LONGEST:
        return message(
            "{name} has a value of more than {longest:,} characters; use a shorter one", name=name, longest=_LONGEST
        )
    if unfit := _UNFIT.search(value):
        return message(
            "{name} contains {unfit}, but only ASCII letters, digits, punctuation and spaces are allowed; correct it",
            name=name,
            unfit=ascii(unfit[0]),
        )
    if name == "JAX_PLATFORMS" and not _PLATFORMS.fullmatch(value):
        return message(
            "{name} accepts cpu, gpu, cuda, rocm and tpu in a spec; set another platform in your own environment",
            name=name,
        )
    if name in _OF_FLAGS and (unknown := next((word for word in value.split() if not _is_known_flag(word)), "")):
        return message(
            "{unknown} in {name} is not a flag that a spec may set, because flags can write files; if you need "
            "it, set it in your own environment",
            unknown=_shorten(unknown),
            name=name,
        )
    return ""


def _not_allowed(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > _SHOWN:
        return message(
            "{name} is not a variable that a spec may set; docs/settings.md lists those that are allowed",
            name=ascii(_shorten(name)),
        )
    return message(
        "{name} cannot be set in a spec: only variables that tune computation can be set there "
        "(docs/settings.md lists them); set it in your own environment",
        name=name,
    )


def _is_known_flag(word: str) -> bool:
    found = _FLAG.fullmatch(word)
    if found is None or found[1] not in XLA_FLAGS:
        return False
    return found[1] != "xla_force_host_platform_device_count" or _PROCESSORS.fullmatch(word) is not None


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
