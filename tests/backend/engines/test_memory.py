"""What the torch engine keeps of the memory that tensors give back."""

import json
import subprocess
import sys

import pytest

COUNT = """
import json, resource, sys, torch
from backend.engines.torch import memory

if sys.argv[1] == "kept":
    memory.keep_freed()
for _ in range(3):
    torch.ones(16_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(16_000_000)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has this switch")
def test_memory_that_a_tensor_gave_back_is_taken_again_without_the_kernel():
    given_back = page_faults("given back")
    # In some processes the kernel lays a library where the heap would have to grow.
    assert any(100 * page_faults("kept") < given_back for _ in range(8))


def page_faults(how: str) -> int:
    """Pages that the kernel had to clear for five tensors of 64 MB, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
