"""Compiles the layers of a model with torch.compile, for the steps of training alone.

It compiles the `forward` of the layers, not the model. They share one program, which takes a minute rather than many; hooks
and gradient checkpointing stay around it, and no parameter gets another name. Evaluations and generated text are computed
without it, as by a model that is loaded later.

Sizes of a batch are variables of the program from its first compilation on. On a CPU, a resumed run therefore repeats an
uninterrupted one to the bit. On a GPU, the compiler chooses how to split sums over tokens by the sizes of the first batch
(Reduction.num_splits in torch/_inductor/ir.py) and by timing: there, rounding depends on them until programs come from the cache.
"""

import importlib
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any
from warnings import filterwarnings

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.contract.places import private_folder
from backend.engines.engine import Batch, Compiling
from backend.engines.torch import COMPILATION_FAILED, memory
from backend.engines.torch.layers.dropout import FastDropout

BACKEND = "inductor"
_CACHE = "TORCHINDUCTOR_CACHE_DIR"
_LEFT_OUT = "_torchdynamo_disable"
"""The attribute of a function that torch's compiler leaves as it is."""
_SWITCH = "_compiled_layers"
"""Where a layer has the CompiledLayers that it belongs to."""
_PER_CODE = 64
"""Programs for one piece of code: layers of several kinds share it, each for few kinds of batches."""


class CompiledLayers:
    """The layers of one model; between `running` and its end they are compiled, when they are first called."""

    def __init__(self, model: Any, compiling: Compiling) -> None:
        """Raises InputError if the model has no layers."""
        os.environ.setdefault(_CACHE, str(private_folder("compiled")))  # torch's own is in a folder open to everyone
        from torch._dynamo import disable  # loads torch's compiler (seconds)

        from backend.engines.torch.distributed.sharded_model import (
            find_blocks,
        )  # imports torch's distributed tensors (a second)

        # It looks whether intermediate results have gradients, which they never do.
        filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf", UserWarning)
        self._compiling, self.is_running = compiling, False
        self._kinds: set[Hashable] = set()  # of batches whose programs there are
        layers = find_blocks(model)
        if not layers:
            raise InputError(
                "hardware.compile: a {model_type} model has no layers that repeat; set it to never",
                "hardware.compile",
                model_type=model.config.model_type,
            )
        for layer in layers:
            for part in layer.modules():
                if type(part) is FastDropout:
                    part.__class__ = _uncompiled_dropout()  # it draws with numpy
            vars(layer)[_SWITCH] = self
            layer.__class__ = _compiled_class(type(layer), BACKEND)
        attend = ALL_ATTENTION_FUNCTIONS["sdpa"]
        if not hasattr(attend, _LEFT_OUT):  # which operations it takes is not a matter of sizes alone
            ALL_ATTENTION_FUNCTIONS["sdpa"] = disable(attend)

    def prepare(self, batch: Batch, try_it: Callable[[], Any]) -> bool:
        """Compile what such a batch needs, if that is not there yet, by trying it; says whether it was tried.

        Raises RunFailed if anything fails that is not known to have another cause.
        """

        def compile_and_run() -> None:
            try:
                with memory.translate_out_of_memory():
                    try_it()
            except (InputError, RunFailed):
                raise
            except Exception as error:
                raise _failure(error) from error

        kind = _kind(batch)
        if kind in self._kinds:
            return False
        self._compiling(compile_and_run)
        self._kinds.add(kind)
        return True

    @contextmanager
    def running(self) -> Iterator[None]:
        """Compute with compiled layers. Raises RunFailed if they cannot be compiled."""
        from torch._dynamo import config, exc

        shapes: Any = importlib.import_module("torch.fx.experimental._config")

        self.is_running = True
        try:
            # Two sizes that are equal by chance in the first batch are still two variables.
            with config.patch(recompile_limit=_PER_CODE), shapes.patch(use_duck_shape=False):
                yield
        except exc.TorchDynamoException as error:
            raise _failure(error) from error
        finally:
            self.is_running = False


def _failure(error: Exception) -> RunFailed:
    return RunFailed(
        "PyTorch could not compile the model ({error})",
        COMPILATION_FAILED,
        hint=message("Set hardware.compile to never."),
        error=" ".join(" ".join(str(error).splitlines()[:2]).split()) or type(error).__name__,
    )


@cache
def _compiled_class(kind: type[Any], backend: Any) -> type[Any]:
    """The class of layers that choose between the `forward` of `kind` and that compiled.

    It is a class of its own because transformers checkpoints what the class of a layer has as its `forward`: so gradient
    checkpointing, which cannot be compiled, is around it.
    """
    forward = kind.forward
    compiled = torch.compile(forward, dynamic=True, backend=backend)

    @wraps(forward)
    def choose(layer: Any, *args: Any, **kwargs: Any) -> Any:
        return (compiled if getattr(layer, _SWITCH).is_running else forward)(layer, *args, **kwargs)

    return type(kind.__name__, (kind,), {"forward": choose, "__module__": kind.__module__})


@cache
def _uncompiled_dropout() -> type[FastDropout]:
    from torch._dynamo import disable

    return type("UncompiledDropout", (FastDropout,), {"forward": disable(FastDropout.forward)})


def _kind(batch: Batch) -> Hashable:
    """What programs differ by: a size of 1, of which others are never variables, and whether there is padding."""
    ones = tuple(
        size == 1 for name in ("input_ids", "labels", "has_label") if name in batch for size in batch[name].shape
    )
    return ones, bool(batch["attention_mask"].all())
