"""Owns AdamW: which weights decay, clipping by the global norm, and the optimizer's state by parameter name."""

from collections.abc import Iterator

import torch
from torch import nn

from backend.contract.spec import TrainingSection
from backend.engines.torch.precision import Precision
from backend.engines.torch.word_rows import WordRows

_FUSED = {"cpu", "cuda", "xpu", "mps"}
_MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimizer:
    """AdamW over a model's trainable parameters (Loshchilov and Hutter 2019, as torch computes it)."""

    def __init__(self, model: nn.Module, words: WordRows | None, training: TrainingSection, precision: Precision):
        self._words, self._training, self._precision = words, training, precision
        undecayed = set(undecayed_parameters(model))
        self._named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
        self._parameters = [parameter for _, parameter in self._named]
        groups = [
            {"params": [each for name, each in self._named if name not in undecayed]},
            {"params": [each for name, each in self._named if name in undecayed], "weight_decay": 0.0},
        ]
        self._fused = self._parameters[0].device.type in _FUSED
        self._adamw = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=training.learning_rate,
            betas=(training.adam_beta1, training.adam_beta2),
            eps=training.adam_epsilon,
            weight_decay=training.weight_decay,
            fused=self._fused,
        )
        self._never = torch.zeros((), device=self._parameters[0].device)

    def step(self, learning_rate: float) -> torch.Tensor:
        """Change the weights by their gradients, drop the gradients, and give the gradients' norm before clipping."""
        for group in self._adamw.param_groups:
            group["lr"] = learning_rate
        norm = self._scaled_step() if self._precision.scaler else self._plain_step(learning_rate)
        self._adamw.zero_grad(set_to_none=True)
        return norm

    def _plain_step(self, learning_rate: float) -> torch.Tensor:
        norm = torch.nn.utils.get_total_norm(self._gradients())
        scale = self._clipping_divisor(norm)
        if self._fused and scale is not None:
            # The fused kernel divides by `grad_scale` as it reads a gradient, which saves a pass over all of them.
            self._adamw.grad_scale, self._adamw.found_inf = scale, self._never  # type: ignore[attr-defined]
        elif scale is not None:
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self._training.max_gradient_norm or 0.0, norm)
        self._adamw.step()
        if self._words is not None:
            self._words.finish(learning_rate, scale)
        return norm

    def _scaled_step(self) -> torch.Tensor:
        scaler = self._precision.scaler
        assert scaler is not None
        scaler.unscale_(self._adamw)
        norm = torch.nn.utils.get_total_norm(self._gradients())
        if self._training.max_gradient_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self._training.max_gradient_norm, norm)
        scaler.step(self._adamw)
        scaler.update()
        return norm

    def _clipping_divisor(self, norm: torch.Tensor) -> torch.Tensor | None:
        limit = self._training.max_gradient_norm
        return None if limit is None else ((norm + 1e-6) / limit).clamp(min=1.0)  # as torch's clip_grad_norm_ has it

    def _gradients(self) -> list[torch.Tensor]:
        found = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        return found if self._words is None else [*found, self._words.gradient]

    def state(self) -> dict[str, torch.Tensor]:
        """Moments and step counts by parameter name, float32."""
        tensors = {f"{key}.{name}": value for name, key, value in self._entries()}
        if self._words is not None:
            tensors |= {f"words.{key}": value for key, value in self._words.state().items()}
        return tensors

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take over what `state` gave; a parameter that had no gradient yet has no entries."""
        for name, parameter in self._named:
            if f"step.{name}" in tensors:
                state = {key: tensors[f"{key}.{name}"].to(parameter.device) for key in _MOMENTS}
                # torch keeps a fused optimizer's step count beside the weights and another's on the processor.
                step = tensors[f"step.{name}"]
                self._adamw.state[parameter] = state | {"step": step.to(parameter.device) if self._fused else step}
        if self._words is not None:
            words = {key.removeprefix("words."): value for key, value in tensors.items() if key.startswith("words.")}
            self._words.restore(words)

    def _entries(self) -> Iterator[tuple[str, str, torch.Tensor]]:
        for name, parameter in self._named:
            for key, value in self._adamw.state.get(parameter, {}).items():
                yield name, key, value


def undecayed_parameters(model: nn.Module) -> Iterator[str]:
    """Biases and the parameters of normalisation layers, found by the layer's type: names differ too much."""
    for prefix, module in model.named_modules():
        is_norm = "Norm" in type(module).__name__
        for name, _ in module.named_parameters(recurse=False):
            if is_norm or name.endswith("bias"):
                yield f"{prefix}.{name}" if prefix else name
