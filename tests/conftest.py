"""Sets the surroundings of every test and of each process a test starts, before anything heavy is imported."""

import atexit
import builtins
import gc
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Generator
from importlib.abc import MetaPathFinder
from pathlib import Path

import platformdirs
import pytest

# While modules are imported nothing becomes garbage; looking for it took a third of the time until the first test.
gc.disable()

if "PYTEST_XDIST_WORKER" in os.environ:
    atexit.register(os._exit, 0)  # after all others: to take apart what the frameworks hold takes seconds

_HOME = Path(tempfile.mkdtemp(prefix="burnish-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

# One thread each: several test processes share few cores, and sums in one order are equal to the bit.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[_variable] = "1"

# A script of a test's own finds the packages of this checkout, wherever it is started.
os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])

# No test sees or changes the runs, caches and preferences of the person who runs it, nor a network.
os.environ.update(
    BURNISH_RUNS=str(_HOME / "runs"),
    BURNISH_CACHE=str(_HOME / "cache"),
    BURNISH_CONFIG=str(_HOME / "config"),
    HF_HOME=str(_HOME / "huggingface"),
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    TOKENIZERS_PARALLELISM="false",
    QT_QPA_PLATFORM="offscreen",
    JAX_PLATFORMS="cpu",
    # Models this small are compiled for longer than they run: without these a step takes three times as long to compile.
    XLA_FLAGS=" ".join(
        (
            "--xla_backend_optimization_level=0",
            "--xla_cpu_use_fusion_emitters=false",
            "--xla_cpu_parallel_codegen_split_count=1",
        )
    ),
    # Keyed by the program, and kept from one run of the tests to the next; another machine may lack an instruction.
    JAX_COMPILATION_CACHE_DIR=str(platformdirs.user_cache_path("burnish-tests", False) / "jax" / platform.node()),
    JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
    JAX_TRACEBACK_IN_LOCATIONS_LIMIT="0",  # no test reads where an operation was traced; noting it takes a quarter of the time
)
for _variable in ("HF_TOKEN", "HF_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_ENDPOINT"):
    os.environ.pop(_variable, None)


class _LeanModels(MetaPathFinder):
    """The first model of transformers, and PEFT, are imported as the torch engine does: without torch's compiler and scipy."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in ("transformers.activations", "transformers.modeling_utils", "transformers.modeling_layers", "peft"):
            sys.meta_path.remove(self)
            from backend.engines.torch import lean_imports  # takes seconds

            lean_imports.install()
            lean_imports.import_bitsandbytes()  # which PEFT would do, and bring the compiler


def pytest_collection() -> None:
    """Imports cost half a minute of a run: nothing is imported that no test needs, and no import is looked at by Qt."""
    sys.meta_path.insert(0, _LeanModels())
    # PySide reads the source of every module that is imported after it, in search of its own name.
    builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What forks comes first, while the process is small; then what takes long, or one worker would end with it while others idle."""
    first = {"tests/hostile": -2, "tests/end_to_end": -1}
    items.sort(key=lambda item: first.get("/".join(item.nodeid.split("/")[:2]), 0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Without keywords, which nobody reads and a worker sends three times for each test."""
    report = yield
    report.keywords = {}
    return report


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, but not among what the frameworks and the tests themselves hold, and less often."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000)  # frameworks that tests load and runs that they train make many objects, and few cycles


def pytest_make_parametrize_id(val: object) -> str | None:
    """No raw bytes in a test's name: a packed file holds the hour, and two workers would collect different tests."""
    return "bytes" if isinstance(val, bytes) else None
