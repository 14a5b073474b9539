"""What the torch engine leaves out of its process, and that it is there for whoever uses it."""

import json
import os
import subprocess

import pytest

from backend.contract.processes import python_command

LEFT_OUT = ["pandas", "scipy", "sklearn", "sympy", "torch._dynamo.symbolic_convert", "torch.distributed.tensor._api"]
START = """\
import json, os, sys
from pathlib import Path

from backend.engines.torch import ENGINE

ENGINE.create()

import huggingface_hub
import torch

for part in map(Path, sys.argv[1:]):  # each in a fork: an engine takes seconds to start
    if os.fork() == 0:
        exec(compile(part.read_text(), part, "exec"))
        part.with_suffix(".json").write_text(json.dumps(result))
        os._exit(0)
    assert os.wait()[1] == 0
"""
USES_THE_COMPILER = f"""\
with torch.device("meta"):  # as transformers builds a model
    words, positions = torch.nn.Embedding(3, 4), torch.arange(5).expand((1, -1))
torch.empty_like(words.weight, device="cpu")
tied = torch.nn.Parameter(torch.ones(2, 3))
huggingface_hub.split_torch_state_dict_into_shards({{"weight": tied, "part": tied[1]}})  # as transformers saves a model
loaded = [name for name in {LEFT_OUT} if name in sys.modules]

from torch.fx.experimental.symbolic_shapes import expect_true, sym_eq

from huggingface_hub.serialization import _torch
from torch.distributed.tensor import DTensor

# What is kept for each tensor is what the library itself finds, also without memory and for another class.
kept = [_torch.get_torch_storage_id(tensor) == huggingface_hub.get_torch_storage_id(tensor)
        for tensor in (tied, tied[1], words.weight, torch.nn.Buffer(torch.ones(1)))]
kept += [_torch.get_torch_storage_id is huggingface_hub.get_torch_storage_id, issubclass(DTensor, torch.Tensor)]
checks = [sym_eq(2, 2), sym_eq((1, 2), (1, 3)), sym_eq([1], [1]), expect_true(True, skip=1)]  # the last two ask torch

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

together = Barrier(2, timeout=60)


def use(name):
    together.wait()
    return callable(getattr(torch._dynamo, name))


threads = [type(torch._dynamo).__name__ == "_LazyModule"]
with ThreadPoolExecutor(2) as pool:
    threads += pool.map(use, ["explain", "optimize"])

from transformers import models
from transformers.utils.import_utils import define_import_structure

read_anew = type(models)("transformers.models", models.__file__, define_import_structure(models.__file__))
compiled = torch.compile(lambda x: 2 * x, backend="eager")
result = [loaded, dir(models) == dir(read_anew), compiled(torch.ones(2)).tolist(), checks, kept, threads]
"""
IS_A_PLUGIN = """\
import pandas  # as a plugin may
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler
scaled = StandardScaler().set_output(transform="pandas").fit_transform(pandas.DataFrame({"x": [1.0, 3.0]}))
result = [isinstance(scaled, pandas.DataFrame), rankdata([3, 1]).tolist() == [2.0, 1.0]]

result += [type(torch._dynamo).__name__ == "_LazyModule"]
import torch._dynamo.config as config
import torch._dynamo.convert_frame
import torch._dynamo.utils as utils
result += [torch._dynamo.convert_frame.config is config is sys.modules["torch._dynamo.config"] is torch._dynamo.config]
result += [config.__spec__.origin == config.__file__, utils.__spec__.origin == utils.__file__]
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    """The results of both programs, each in a process of its own in which an engine has started."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "lean_start.py").write_text(START)
    parts = [folder / "uses_the_compiler.py", folder / "is_a_plugin.py"]
    for part, program in zip(parts, (USES_THE_COMPILER, IS_A_PLUGIN), strict=True):
        part.write_text(program)
    command = python_command("lean_start", *map(str, parts))
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(part.with_suffix(".json").read_text()) for part in parts]


def test_an_engine_starts_without_what_it_never_uses_and_can_still_compile(found):
    assert found[0] == [[], True, [2.0, 2.0], [True, False, True, True], [True] * 4 + [False, True], [True] * 3]


def test_what_was_left_out_is_whole_when_a_part_of_it_or_a_plugin_uses_it(found):
    assert found[1] == [True] * 6
