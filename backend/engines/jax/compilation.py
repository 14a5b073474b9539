"""Owns the programs that XLA has made of the engine's functions, one for every shape that came."""

from collections.abc import Hashable, Mapping
from typing import Any

import jax

from backend.engines.engine import Compiling
from backend.engines.jax.memory import shortage_stated

Key = Hashable


class Programs:
    """Compiled functions of one model. What compiles is handed to `compiling`, which can show it and give it up.

    A call raises RunFailed with code `out_of_memory` where it does not fit.
    """

    def __init__(self, compiling: Compiling) -> None:
        self._compiling = compiling
        self._known: dict[Key, Any] = {}

    def call(self, function: Any, key: Key, *arguments: Any, **static: Any) -> Any:
        """`function` is jitted; `key` names it and the shapes of those arguments that may have several."""
        with shortage_stated():
            if key not in self._known:
                jax.block_until_ready(arguments)  # or what is still computed would pass for compiling
                self._known[key] = self._compiling(lambda: function.lower(*arguments, **static).compile())
            return self._known[key](*arguments)


def shapes(arrays: Mapping[str, Any]) -> Key:
    """Names and shapes, for the keys of programs."""
    return tuple((name, values.shape) for name, values in sorted(arrays.items()))
