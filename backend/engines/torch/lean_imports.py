"""Keeps transformers from importing what this engine never uses: half of what it loads, and seconds of every start.

The engine computes on one device and compiles nothing, but every model of transformers imports torch's compiler,
distributed training, and scipy for models of pictures. What is left out is loaded when somebody uses it, or it is said to be
missing, as it is in builds of torch without it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

_COMPILER = "torch._dynamo"


class _UnusedCompiler(ModuleType):
    """`torch._dynamo` as long as nothing is compiled: what only tells the compiler something has nobody to tell it to.

    Any other name, and the import of any of its parts, makes it the real one (1.5 s).
    """

    eval_frame = SimpleNamespace(OptimizedModule=type("OptimizedModule", (), {}))
    """accelerate asks whether a model is compiled."""

    @staticmethod
    def disable(fn: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Callable[..., Any]:
        """The function as it is; without one, a decorator that leaves functions as they are."""
        return fn or (lambda decorated: decorated)

    @staticmethod
    def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function as it is."""
        return fn

    assume_constant_result = allow_in_graph

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """There is no graph."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        self.__path__ = spec.submodule_search_locations
        spec.loader.exec_module(self)
        return getattr(self, name)


def install() -> None:
    """Leave it out in this process, where that is not too late."""
    if _COMPILER not in sys.modules:
        _leave_compiler_out()
    torch.distributed.is_available = lambda: False  # as in Apple's builds
    if "transformers.models" not in sys.modules:
        _list_models_once()
    if "transformers.loss" not in sys.modules:
        _import_losses_without_scipy()


def _leave_compiler_out() -> None:
    spec = importlib.util.find_spec(_COMPILER)
    assert spec is not None
    compiler = importlib.util.module_from_spec(spec)
    compiler.__class__ = _UnusedCompiler
    sys.modules[_COMPILER] = torch._dynamo = compiler
    importlib.import_module(f"{_COMPILER}._trace_wrapped_higher_order_op")  # all that transformers' models take of it
    del compiler.__path__


def _list_models_once() -> None:
    """transformers reads the source of all models to list their classes (0.4 s), and again for `transformers.models`."""
    import transformers  # takes a second, and may have been imported before
    from transformers.utils import import_utils

    read = import_utils.define_import_structure
    known = read(Path(transformers.__file__).parent / "models", prefix="models")  # kept by transformers
    models = {
        needs: {name[7:]: classes for name, classes in modules.items() if name.startswith("models.")}
        for needs, modules in known.items()
    }
    import_utils.define_import_structure = lambda *_: models
    try:
        importlib.import_module("transformers.models")
    finally:
        import_utils.define_import_structure = read


def _import_losses_without_scipy() -> None:
    """Only those of object detection need it (0.5 s)."""
    from transformers import utils  # takes a second, and may have been imported before

    is_there = utils.is_scipy_available
    utils.is_scipy_available = lambda: False
    try:
        importlib.import_module("transformers.loss.loss_utils")
    finally:
        utils.is_scipy_available = is_there
