"""Owns torchax's environment, in which torch's functions compute with JAX's arrays; the process stays as it was."""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

_COUNTS_USE = "ENABLE_RUNTIME_UPTIME_TELEMETRY"
"""What torchax sets where it is unset: a TPU's runtime then tells how long it is used."""


@cache
def environment() -> Any:
    """torchax's. Importing it would switch torch's fast attention off for the whole process, and count its use."""
    fast, counts = torch.backends.mha.get_fastpath_enabled(), os.environ.get(_COUNTS_USE)
    import torchax  # where the bridge is chosen, and no earlier

    torch.backends.mha.set_fastpath_enabled(fast)
    if counts is None:
        os.environ.pop(_COUNTS_USE, None)
    return torchax.default_env()


def missing_function() -> type[Exception]:
    """What torchax raises where it has no translation of a function of torch."""
    environment()
    from torchax.tensor import OperatorNotFound  # not before `environment` has imported torchax in its own way

    return OperatorNotFound


class _Constants(TorchFunctionMode):
    """What is computed under `torch.no_grad()` is a constant to the gradients; JAX would know nothing of it.

    An `autograd.Function` computes so as well, for it has a derivative of its own: JAX takes that of what it computes,
    and the trial tells where they differ.
    """

    def __init__(self) -> None:
        super().__init__()
        self._within = 0
        self._apply: Any = torch.autograd.Function.__dict__["apply"]

    def __enter__(self) -> "_Constants":
        mode, apply = self, self._apply

        def counted(kind: type[Any], *args: Any, **kwargs: Any) -> Any:
            differentiates = torch.is_grad_enabled()
            mode._within += differentiates
            try:
                return apply.__get__(None, kind)(*args, **kwargs)
            finally:
                mode._within -= differentiates

        torch.autograd.Function.apply = classmethod(counted)  # type: ignore[assignment]
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        torch.autograd.Function.apply = self._apply
        super().__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        is_constant = not torch.is_grad_enabled() and not self._within
        return tree_map_only(torch.Tensor, _constant, found) if is_constant else found


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()


@contextmanager
def bridged(key: jax.Array | None) -> Iterator[Any]:
    """torch's functions that are called inside compute with JAX; gives the environment.

    Randomness comes from `key`: torchax's own is the same in every step. Without one nothing may ask for it.
    """
    env = environment()
    with warnings.catch_warnings():
        # torch counts in 64 bits, JAX in 32; no table here has more rows than these hold.
        warnings.filterwarnings("ignore", message="Explicitly requested dtype int64")
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # its kernels take torch's own tensors alone
        try:
            with env.override_property(prng=key), env, _Constants(), torch.enable_grad():
                yield env
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


def as_torch(values: Mapping[str, jax.Array]) -> dict[str, Any]:
    """JAX's arrays as tensors that torch's functions take, without a copy."""
    return environment().j2t_iso(dict(values))


def as_jax(tensor: Any) -> jax.Array:
    """The other way."""
    return tensor.jax()
