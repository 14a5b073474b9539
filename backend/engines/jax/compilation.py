"""Keeps the programs that XLA has compiled, one per input shape, and reports when memory runs out."""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax

from backend.engines.allocator import return_freed
from backend.engines.engine import Compiling
from backend.engines.out_of_memory import out_of_memory

Key = Hashable

_XLA_SAYS = "RESOURCE_EXHAUSTED"


class CompiledPrograms:
    """Compiled functions of one model. Compilation goes through `compiling`, which can show it and cancel it.

    A call raises RunFailed with code `out_of_memory` if it does not fit.
    """

    def __init__(self, compiling: Compiling) -> None:
        self._compiling = compiling
        self._known: dict[Key, Any] = {}

    def call(self, function: Any, key: Key, *arguments: Any, **static: Any) -> Any:
        """Call the jitted `function`; `key` names it and the shapes of any arguments that vary in shape."""
        with translate_out_of_memory():
            if key not in self._known:
                jax.block_until_ready(arguments)  # or what is still computed would pass for compiling
                return_freed()  # steps of another shape, and the compiler, need blocks of other sizes
                self._known[key] = self._compiling(lambda: function.lower(*arguments, **static).compile())
                return_freed()
            return self._known[key](*arguments)


def shapes(arrays: Mapping[str, Any]) -> Key:
    """Names and shapes, for program keys."""
    return tuple((name, values.shape) for name, values in sorted(arrays.items()))


@contextmanager
def translate_out_of_memory() -> Iterator[None]:
    """Turn out-of-memory errors into RunFailed with code `out_of_memory`; other errors pass."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(on_accelerator=False) from error
    except jax.errors.JaxRuntimeError as error:
        if _XLA_SAYS not in str(error):
            raise
        raise out_of_memory(on_accelerator=jax.default_backend() != "cpu") from error
