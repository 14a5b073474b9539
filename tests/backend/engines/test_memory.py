"""What the engines keep of the memory that arrays on the CPU give back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from backend.engines.torch.memory import available_bytes

COUNT = """
import json, resource, sys, torch
from contextlib import nullcontext
from backend.engines import allocator

if sys.argv[1] != "given back":
    allocator.keep_freed()
if sys.argv[1] == "another model":
    allocator.return_blocks()
with allocator.return_large_blocks() if sys.argv[1] == "large" else nullcontext():
    for _ in range(40):  # at first, small blocks settle in the free space of a large one, which then needs a new place
        torch.ones(16_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(16_000_000)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_memory_that_a_tensor_gave_back_is_taken_again_without_the_kernel():
    assert 100 * page_faults("kept") < page_faults("given back")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_a_quantized_model_gives_back_what_the_model_before_it_would_have_kept():
    assert 2 * page_faults("another model") > page_faults("given back")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_large_blocks_are_given_back_where_that_is_wanted():
    assert 2 * page_faults("large") > page_faults("given back")


STEPS = """
import resource
import numpy as np
from backend.contract.heads import Head, HeadFacts
from backend.contract.resources import resource as bundled
from backend.contract.spec import ModelSection, TrainingSection
from backend.engines.engine import LoadRequest
from backend.engines.jax.engine import JaxEngine

folder, engine = bundled("demo", "bert-tiny"), JaxEngine()
request = LoadRequest(
    folder=folder, head=HeadFacts(Head.SEQUENCE_CLASSIFICATION, ("a", "b")), model=ModelSection(name_or_path=str(folder)),
    training=TrainingSection(), devices=("cpu",), precision="float32", vocabulary=30522, pad_token_id=0,
)
engine.load(request)
ids = np.arange(16 * 64).reshape(16, 64) + 1
batch = {
    "input_ids": ids, "attention_mask": np.ones_like(ids), "labels": np.arange(16) % 2, "row_valid": np.ones(16, bool)
}
for step in range(10):
    if step == 5:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    engine.read([engine.train_step([batch], step, 1e-5)])
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 5)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_step_of_jax_takes_again_what_the_one_before_freed():
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    assert float(done.stdout) * 4096 < 4 * 30522 * 128  # the gradient of the table of tokens alone


RETURN = """
import psutil, torch
from backend.engines import allocator

allocator.keep_freed()
blocks = [torch.ones(1_000_000) for _ in range(100)]
last = torch.ones(1_000_000)
del blocks
kept = psutil.Process().memory_info().rss
allocator.return_freed()
print(kept - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_what_was_kept_can_be_returned_although_later_blocks_are_in_use():
    done = subprocess.run([sys.executable, "-c", RETURN], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 300_000_000


RETURN_BLOCKS = """
import psutil, sys, torch
from backend.contract.heads import Head, HeadFacts
from backend.contract.resources import resource
from backend.contract.spec import ModelSection
from backend.engines.engine import LoadRequest
from backend.engines.torch import Settings
from backend.engines.torch.engine import TorchEngine

folder = resource("demo", "bert-tiny")
head = HeadFacts(Head.SEQUENCE_CLASSIFICATION, ("a", "b"))
model = ModelSection(name_or_path=str(folder), weights=sys.argv[1])
TorchEngine().load(
    LoadRequest(
        folder=folder, head=head, model=model, training=None, devices=("cpu",), precision="float32", vocabulary=30522,
        pad_token_id=0, hardware=Settings(threads=1),
    )
)
before = psutil.Process().memory_info().rss
for _ in range(2):  # once blocks of this size were freed, glibc takes them from its heap
    blocks = [torch.ones(1_000_000) for _ in range(100)]
    last = torch.ones(1_000_000)
    del blocks
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_float32_copies_of_other_weights_leave_no_memory_behind():
    done = subprocess.run([sys.executable, "-c", RETURN_BLOCKS, "bfloat16"], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100_000_000


def page_faults(how: str) -> int:
    """Pages that the kernel had to clear for five tensors of 64 MB, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def group(folder: Path, limit: str, used: int, cache: int, version: int = 2) -> None:
    """A control group's folder as the kernel shows it."""
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used), strict=True):
        (folder / name).write_text(f"{value}\n")
    inactive = f"inactive_file {cache}\n" if version == 2 else f"inactive_file 0\ntotal_inactive_file {cache}\n"
    (folder / "memory.stat").write_text(f"anon 5\n{inactive}")


def of_process(root: Path, lines: str) -> Path:
    """A root whose `/proc` says in which groups this process is."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(lines)
    return root


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
@pytest.mark.parametrize("nearest", ["own", "parent", "root"])
def test_smallest_limit_along_the_path_of_groups_counts(tmp_path: Path, nearest: str):
    root, base = of_process(tmp_path, "0::/user.slice/run.scope\n"), tmp_path / "sys/fs/cgroup"
    for name, folder in {"root": base, "parent": base / "user.slice", "own": base / "user.slice/run.scope"}.items():
        group(folder, "9000" if name == nearest else "max", 5000, 700)
    assert available_bytes(root) == 4700


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
@pytest.mark.parametrize("there", ["job/step", "job", ""])
def test_groups_of_version_1_count_too(tmp_path: Path, there: str):
    """In a container the group's own path may not be there, and its limit is at the root."""
    root = of_process(tmp_path, "5:cpu:/elsewhere\n4:hugetlb,memory:/job/step\n0::/\n")
    group(root / "sys/fs/cgroup/memory" / there, "9000", 5000, 700, version=1)
    assert available_bytes(root) == 4700


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
@pytest.mark.parametrize("lines", ["", "0::/../../beside\n", "4:memory:/job\n0::/\n"])
def test_without_a_limit_of_groups_the_system_counts(tmp_path: Path, lines: str):
    root = of_process(tmp_path / "root", lines)
    group(tmp_path / "beside", "9000", 5000, 700)
    assert available_bytes(root) > 1_000_000
