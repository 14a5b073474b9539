"""Times what no program can leave out: the matrix products of a training or a prediction, each by itself."""

import time
from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_PRODUCTS = {
    "mm", "addmm", "bmm", "baddbmm", "linear", "_linear_pointwise", "matmul", "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip
_ROUNDS = 3


class MatmulRecorder(TorchDispatchMode):
    """While it is entered, counts the matrix products that are computed, attention's among them, by shapes and strides.

    Those of training leave out the evaluation and the predictions at its end, which are computed in inference mode.
    """

    def __init__(self, *, training: bool) -> None:
        super().__init__()
        self._is_counted = (lambda: not torch.is_inference_mode_enabled()) if training else (lambda: True)
        self._counts: Counter[str] = Counter()
        self._calls: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func.overloadpacket.__name__ in _PRODUCTS and self._is_counted():
            layouts = tuple(map(_layout, args)), {name: _layout(each) for name, each in named.items()}
            key = repr((func, layouts))
            self._counts[key] += 1
            self._calls[key] = func, *layouts
        return func(*args, **named)

    @torch.inference_mode()
    def seconds(self) -> float:
        """How long all of them take one after another, on numbers that lie in the cache if they fit."""
        return sum(count * _time(*self._calls[key]) for key, count in self._counts.items())


class _Layout(tuple):
    """Shape, strides and dtype of a tensor."""


def _layout(value: Any) -> Any:
    return _Layout((tuple(value.shape), value.stride(), value.dtype)) if isinstance(value, torch.Tensor) else value


def _tensor(value: Any) -> Any:
    if not isinstance(value, _Layout):
        return value
    shape, strides, dtype = value
    made = torch.empty_strided(shape, strides, dtype=dtype)
    return made.normal_() if dtype.is_floating_point else made.fill_(1)


def _time(func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> float:
    given, named = [_tensor(each) for each in args], {name: _tensor(each) for name, each in named.items()}
    func(*given, **named)
    taken = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        func(*given, **named)
        taken.append(time.perf_counter() - started)
    return min(taken)
