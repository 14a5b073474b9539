"""Keeps torch and transformers from loading modules that this engine does not use, which took half of every start.

The engine divides no tensor among devices and compiles nothing, but every model of transformers imports torch's compiler,
distributed tensors, and scipy for vision models. A module that is left out is loaded when it is used, or reported as
unavailable, as in builds of torch without it.
"""

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from backend.models.lean_transformers import list_models_once


class _LazyModule(ModuleType):
    """A module of torch of which only a few names have been used; any other name, or any of its parts, loads it in place."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None
        if name.startswith("__") and (name != "__path__" or spec.submodule_search_locations is None):
            raise AttributeError(name)
        # Python's own lock of this module, as an import of it takes: other threads wait until all of it is there.
        with _MODULE_LOCK(self.__name__):
            if type(self) is _LazyModule and not spec.loader_state:
                self._load(spec)
        if type(self) is _LazyModule and name not in vars(self):  # this thread is loading it
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
        return getattr(self, name)

    def _load(self, spec: ModuleSpec) -> None:
        assert spec.loader is not None
        spec.loader_state = "loading"
        parts = _LoadedParts(self.__name__)
        sys.meta_path.insert(0, parts)
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        for name in _SUBMODULES:
            vars(self).pop(name, None)  # the other names stay for other threads until the real ones replace them
        try:
            spec.loader.exec_module(self)
            self.__class__ = ModuleType  # type: ignore[assignment]
        except BaseException:
            sys.meta_path.remove(parts)
            vars(self).update(_NAMES[self.__name__])
            vars(self).pop("__path__", None)
            raise
        finally:
            spec.loader_state = None


class _LoadedParts(MetaPathFinder, Loader):
    """Finds a part of a package that was imported while Python asked the package for its path; it would run it again."""

    def __init__(self, package: str) -> None:
        self._prefix, self._specs = f"{package}.", dict[str, ModuleSpec | None]()

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if target is not None or name not in sys.modules or not name.startswith(self._prefix):
            return None
        self._specs[name] = sys.modules[name].__spec__
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__spec__"] = self._specs.pop(module.__name__)  # settings of torch refuse other ways of setting it


def _unchanged(function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Callable[..., Any]:
    return function or (lambda decorated: decorated)


def _without_symbols(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """The check `name` of sizes and truth values: `answer` if all are integers, otherwise torch's own."""

    def check(*values: Any, **named: Any) -> Any:
        flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
        if not named and all(isinstance(each, int) for each in flat):
            return answer(*values)
        shapes: Any = sys.modules[_SHAPES]
        assert shapes.ShapeEnv  # loads the module, which replaces this function
        return getattr(shapes, name)(*values, **named)

    return check


_MODULE_LOCK: Any = vars(importlib.import_module("importlib._bootstrap"))["_ModuleLockManager"]
_SUBMODULES = ("eval_frame", "trace_rules")
"""Those names below that are parts of their module, which the real module imports."""
_CHECKS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("expect_true", "guard_or_false", "guard_or_true", "guard_size_oblivious"), lambda value, *_: value
    ),
    "sym_eq": lambda one, other: one == other,
    "is_nested_int": lambda _: False,
}
_COMPILER, _SHAPES = "torch._dynamo", "torch.fx.experimental.symbolic_shapes"
_NAMES: dict[str, dict[str, Any]] = {
    _COMPILER: {
        "disable": _unchanged,
        "allow_in_graph": _unchanged,
        "disallow_in_graph": _unchanged,
        "assume_constant_result": _unchanged,
        "graph_break": lambda *_: None,  # every step of torch's optimizers calls it twice
        # accelerate asks whether a model is compiled
        "eval_frame": SimpleNamespace(OptimizedModule=type("OptimizedModule", (), {})),
        "trace_rules": SimpleNamespace(clear_lru_cache=lambda: None),  # a new process group forgets compiled rules
    },
    _SHAPES: {name: _without_symbols(name, answer) for name, answer in _CHECKS.items()},
}
"""Module → the names that are used without it, as long as nothing is compiled and no shape is a symbol."""


def install() -> None:
    """Replace these modules, unless they are already loaded."""
    for name in _NAMES.keys() - sys.modules.keys():
        _stand_in(name)
    _skip_normal_on_meta()
    _recognise_plain_tensors()
    # As in Apple's builds. Process groups are in torch itself and work all the same (`distributed/process_group.py`).
    torch.distributed.is_available = lambda: False
    list_models_once()
    if "transformers.loss" not in sys.modules:
        _import_losses_without_scipy()


def _stand_in(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _LazyModule
    vars(module).update(_NAMES[name])
    parent, _, own = name.rpartition(".")
    sys.modules[name] = module
    setattr(importlib.import_module(parent), own, module)
    if name == _COMPILER:
        importlib.import_module(f"{name}._trace_wrapped_higher_order_op")  # all that transformers' models take of it
        del module.__path__


def _skip_normal_on_meta() -> None:
    """transformers builds a model before it has memory; to draw its embeddings then, torch would load sympy (0.5 s)."""
    draw = torch.nn.init.normal_

    def normal_(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        return tensor if tensor.is_meta else draw(tensor, *arguments, **named)

    if draw.__module__ != __name__:
        torch.nn.init.normal_ = normal_


def _recognise_plain_tensors() -> None:
    """To save weights, huggingface_hub imports torch's distributed tensors (0.9 s) and asks for each weight if it is one."""
    serialization: Any = importlib.import_module("huggingface_hub.serialization._torch")
    find_id, find_size = serialization.get_torch_storage_id, serialization.get_torch_storage_size

    def is_plain(tensor: torch.Tensor) -> bool:
        return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type not in ("meta", "xla")

    def get_torch_storage_size(tensor: torch.Tensor) -> int:
        return tensor.untyped_storage().nbytes() if is_plain(tensor) else find_size(tensor)

    def get_torch_storage_id(tensor: torch.Tensor) -> tuple[torch.device, Any, int] | None:
        if not is_plain(tensor):
            return find_id(tensor)
        storage = tensor.untyped_storage()
        return tensor.device, storage.data_ptr(), storage.nbytes()

    if find_id.__module__ != __name__:
        serialization.get_torch_storage_size = get_torch_storage_size
        serialization.get_torch_storage_id = get_torch_storage_id


def import_bitsandbytes() -> None:
    """Import bitsandbytes, if it is installed, with its own kernels only.

    It would have torch's compiler imported (2.5 s) for what nothing here calls, and download kernels from the hub.
    """
    if "bitsandbytes" in sys.modules or importlib.util.find_spec("bitsandbytes") is None:
        return
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # each step would say that its inputs are rounded
    compiler, kernels = torch.compile, sys.modules.get("kernels")
    torch.compile = _unchanged  # type: ignore[assignment]
    sys.modules["kernels"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("bitsandbytes")
    finally:
        torch.compile = compiler
        sys.modules.pop("kernels")
        if kernels is not None:
            sys.modules["kernels"] = kernels


def _import_losses_without_scipy() -> None:
    """Only those of object detection need it (0.5 s)."""
    utils: Any = importlib.import_module("transformers.utils")
    is_there = utils.is_scipy_available
    utils.is_scipy_available = lambda: False
    try:
        importlib.import_module("transformers.loss.loss_utils")
    finally:
        utils.is_scipy_available = is_there
