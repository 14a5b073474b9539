"""Owns the trial that an architecture must pass: the same few rows through PyTorch and through the bridge, to the same numbers.

torchax translates torch's functions one by one. Where it lacks one, or where a model's own code decides by the values of
its inputs, the trial says so before anything trains; and what would compute something else is never trained at all.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from transformers import PreTrainedModel

from backend.contract.errors import InputError, RunFailed
from backend.contract.heads import Head
from backend.engines.configuration import LANGUAGE_HEADS
from backend.engines.jax.bridge import SETTING
from backend.engines.jax.bridge.environment import missing_function
from backend.engines.jax.bridge.module import OUTPUTS, BridgedModel
from backend.engines.jax.layers import Noise
from backend.engines.jax.memory import shortage_stated

Values = Mapping[str, np.ndarray]
Arrays = dict[str, jax.Array]
_LENGTHS = (9, 6)
_ANSWERS = 5
_ROUNDING = 1e-3
"""What outputs may differ by, as a part of the largest."""
_ROUNDING_OF_GRADIENTS = 1e-2
"""What all gradients together may differ by, as a part of their norm."""
_UNFIT = (
    NotImplementedError, RuntimeError, AssertionError, TypeError, ValueError, IndexError, KeyError, AttributeError
)  # fmt: skip
"""What a forward pass raises that cannot be traced; where one decides by a value JAX raises a TypeError."""


class Trial:
    """What PyTorch makes of some rows, asked while the module has its weights. Raises InputError where it cannot.

    `constant` are the parameters that no gradient reaches; of a model that does not train nobody asks.
    """

    def __init__(self, module: PreTrainedModel, head: Head, *, trains: bool) -> None:
        self._name, self._head, self._trains = module.config.model_type, head, trains
        self._rows = _rows(module, head)
        given = {name: torch.from_numpy(array) for name, array in self._rows.items()}
        if head is Head.MULTIPLE_CHOICE:
            given = {name: array[:, None] for name, array in given.items()}
        with self._unfit_stated(), torch.set_grad_enabled(trains):
            found = module.eval()(**given)
            outputs = {name: found[name] for name in OUTPUTS if name in found}
        self._outputs = {name: value.detach().numpy() for name, value in outputs.items()}
        self._weighing = {name: self._random(name) for name in outputs}
        self._gradients = self._of_torch(module, outputs) if trains else {}
        self.constant = frozenset(name for name, _ in module.named_parameters() if name not in self._gradients)

    def check(self, model: BridgedModel, parameters: Values) -> None:
        """Raises InputError where JAX cannot compute the model, or computes something else."""
        arrays: Arrays = {name: jnp.asarray(array, jnp.int32) for name, array in self._rows.items()}
        if self._head in LANGUAGE_HEADS:
            arrays["places"] = jnp.arange(self._shown.size, dtype=jnp.int32)
        with self._unfit_stated(), shortage_stated(), _on_processor(), jax.default_matmul_precision("highest"):
            placed = {name: jnp.asarray(values) for name, values in parameters.items()}
            trained = {name: values for name, values in placed.items() if name in self._gradients}

            def total(values: Arrays, others: Arrays, noise: Noise | None) -> tuple[jax.Array, Arrays]:
                found = self._shaped(model.answer({**others, **values}, arrays, noise))
                return jnp.sum(jnp.stack([(found[name] * each).sum() for name, each in self._weighing.items()])), found

            if self._trains:
                jax.eval_shape(lambda values: total(values, placed, Noise(jax.random.key(0))), trained)
            compute = jax.grad(total, has_aux=True) if self._trains else (lambda *given: ({}, total(*given)[1]))
            gradients, found = jax.jit(lambda values, others: compute(values, others, None))(trained, placed)
        self._compare(jax.device_get(found), jax.device_get(gradients))

    def _shaped(self, found: Arrays) -> Arrays:
        return {name: found[name].reshape(values.shape) for name, values in self._outputs.items()}

    def _compare(self, outputs: Values, gradients: Values) -> None:
        apart = [np.abs((outputs[name] - values) * self._seen(values)).max() for name, values in self._outputs.items()]
        largest = [np.abs(values * self._seen(values)).max() for values in self._outputs.values()]
        limit = _ROUNDING * max(np.max(largest), 1e-6)
        if not np.max(apart) <= limit:  # np.max is no number where one of them is none
            raise self._refusal(f"its outputs differ from PyTorch's by {np.max(apart):.1e}, with {limit:.1e} allowed")
        if self._gradients:
            off = _norm({name: gradients[name] - values for name, values in self._gradients.items()})
            if not off <= _ROUNDING_OF_GRADIENTS * _norm(self._gradients):
                raise self._refusal(f"its gradients differ from PyTorch's by {off / _norm(self._gradients):.1e}")

    def _of_torch(self, module: PreTrainedModel, outputs: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
        """The gradient of every parameter that has one."""
        total = sum((value * torch.from_numpy(self._weighing[name])).sum() for name, value in outputs.items())
        total.backward()  # type: ignore[union-attr]
        found = {name: each.grad.numpy() for name, each in module.named_parameters() if each.grad is not None}
        module.zero_grad(set_to_none=True)
        return found

    def _random(self, name: str) -> np.ndarray:
        """What an output is multiplied by before all is added up: of a plain sum some gradients would be zero."""
        values = self._outputs[name]
        drawn = np.random.default_rng(len(name)).standard_normal(values.shape).astype(np.float32)
        return drawn * self._seen(values)

    def _seen(self, values: np.ndarray) -> np.ndarray:
        """Ones, but zeros for what stands at padding, which means nothing."""
        if values.shape[:2] != self._shown.shape:
            return np.ones_like(values)
        shown = self._shown.reshape(*self._shown.shape, *[1] * (values.ndim - 2))
        return np.broadcast_to(shown, values.shape).astype(np.float32)

    @property
    def _shown(self) -> np.ndarray:
        return self._rows["labels" if "labels" in self._rows else "attention_mask"] > 0

    @contextmanager
    def _unfit_stated(self) -> Iterator[None]:
        try:
            yield
        except (InputError, RunFailed):
            raise
        except (*_UNFIT, missing_function()) as error:
            reason = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise self._refusal(reason) from error

    def _refusal(self, reason: str) -> InputError:
        return InputError(
            f"{SETTING}: torchax cannot compute this {self._name} model ({reason.strip().rstrip('.')}); choose PyTorch",
            SETTING,
        )


def _on_processor() -> AbstractContextManager[Any]:
    """JAX's own, beside PyTorch: a model that several devices must share may be too large for one of them."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # JAX_PLATFORMS leaves it out
        return nullcontext()


def _norm(values: Values) -> float:
    return float(np.sqrt(sum(np.square(each, dtype=np.float64).sum() for each in values.values())))


def _rows(module: PreTrainedModel, head: Head) -> dict[str, np.ndarray]:
    """Two rows of tokens that mean nothing, the second padded; and answers, where there are some."""
    config, rng = module.config, np.random.default_rng(0)
    names = ("pad", "bos", "eos", "sep", "cls", "decoder_start")
    special = {getattr(config, f"{name}_token_id", None) for name in names}
    rows = module.get_input_embeddings().weight.shape[0]  # type: ignore[union-attr]
    tokens = [number for number in range(1, min(rows, 1000)) if number not in special]
    # The bridge pads XLNet's rows in front where it reads a text by its last place; they mean the same only unpadded.
    lengths = (_LENGTHS[0],) * 2 if config.model_type == "xlnet" else _LENGTHS
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    padding = getattr(config, "pad_token_id", None) or 0
    found = {"input_ids": np.where(mask, rng.choice(tokens, mask.shape), padding), "attention_mask": mask}
    if head is Head.SEQ2SEQ_LM:
        found["labels"] = rng.choice(tokens, (len(lengths), _ANSWERS))
    return found
