"""Keeps transformers from importing what this engine never uses: half of what it loads, and seconds of every start.

The engine computes on one device and compiles nothing, but every model of transformers imports torch's compiler,
distributed training, and scipy for models of pictures. What is left out is loaded when somebody uses it, or it is said to be
missing, as it is in builds of torch without it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from backend.models.lean_transformers import list_models_once


class _Unused(ModuleType):
    """A module of torch of which nobody has used more than a few names; any other, or any of its parts, loads it in place."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        if name.startswith("__") and (name != "__path__" or spec.submodule_search_locations is None):
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        for own in _NAMES[self.__name__]:
            delattr(self, own)
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        spec.loader.exec_module(self)
        return getattr(self, name)


def _as_it_is(function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Callable[..., Any]:
    return function or (lambda decorated: decorated)


def _plain(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """The question `name` about sizes and truth values, by `answer` where none of them is a symbol."""

    def ask(*values: Any) -> Any:
        flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
        known = answer if all(isinstance(each, int) for each in flat) else getattr(sys.modules[_SHAPES], name)
        return known(*values)

    return ask


_QUESTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("expect_true", "guard_or_false", "guard_or_true", "guard_size_oblivious"), lambda value, *_: value
    ),
    "sym_eq": lambda one, other: one == other,
    "is_nested_int": lambda _: False,
}
_COMPILER, _SHAPES = "torch._dynamo", "torch.fx.experimental.symbolic_shapes"
_NAMES: dict[str, dict[str, Any]] = {
    _COMPILER: {
        "disable": _as_it_is,
        "allow_in_graph": _as_it_is,
        "assume_constant_result": _as_it_is,
        "graph_break": lambda *_: None,
        # accelerate asks whether a model is compiled
        "eval_frame": SimpleNamespace(OptimizedModule=type("OptimizedModule", (), {})),
    },
    _SHAPES: {name: _plain(name, answer) for name, answer in _QUESTIONS.items()},
}
"""Module → the names that are used without it, as long as nothing is compiled and no shape is a symbol."""


def install() -> None:
    """Leave it out in this process, where that is not too late."""
    for name in _NAMES.keys() - sys.modules.keys():
        _stand_in(name)
    _draw_nothing_without_memory()
    torch.distributed.is_available = lambda: False  # as in Apple's builds
    list_models_once()
    if "transformers.loss" not in sys.modules:
        _import_losses_without_scipy()


def _stand_in(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Unused
    vars(module).update(_NAMES[name])
    parent, _, own = name.rpartition(".")
    sys.modules[name] = module
    setattr(importlib.import_module(parent), own, module)
    if name == _COMPILER:
        importlib.import_module(f"{name}._trace_wrapped_higher_order_op")  # all that transformers' models take of it
        del module.__path__


def _draw_nothing_without_memory() -> None:
    """transformers builds a model before it has memory; to draw its embeddings then, torch would load sympy (0.5 s)."""
    draw = torch.nn.init.normal_

    def normal_(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        return tensor if tensor.is_meta else draw(tensor, *arguments, **named)

    if draw.__module__ != __name__:
        torch.nn.init.normal_ = normal_


def _import_losses_without_scipy() -> None:
    """Only those of object detection need it (0.5 s)."""
    utils: Any = importlib.import_module("transformers.utils")
    is_there = utils.is_scipy_available
    utils.is_scipy_available = lambda: False
    try:
        importlib.import_module("transformers.loss.loss_utils")
    finally:
        utils.is_scipy_available = is_there
