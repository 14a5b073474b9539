"""Owns how the JAX engine says that memory ran out."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from backend.engines.out_of_memory import shortage

_XLA_SAYS = "RESOURCE_EXHAUSTED"


@contextmanager
def shortage_stated() -> Iterator[None]:
    """Turns running out of memory into RunFailed with code `out_of_memory`; other errors pass."""
    try:
        yield
    except MemoryError as error:
        raise shortage(on_accelerator=False) from error
    except jax.errors.JaxRuntimeError as error:
        if _XLA_SAYS not in str(error):
            raise
        raise shortage(on_accelerator=jax.default_backend() != "cpu") from error
