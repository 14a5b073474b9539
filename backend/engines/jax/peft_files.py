"""An adapter's files in PEFT's layout: writes them for the JAX engine, and loads an adapter into its base model."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from backend.adapters.lora import Settings
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.engines.engine import LoadRequest
from backend.engines.jax.lora import scaling
from backend.models.adapter_files import CONFIG, PREFIX, WEIGHTS, read_adapter_config

Values = dict[str, np.ndarray]
_FIELD = "model.name_or_path"
FIRST, SECOND, MAGNITUDE = ".lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector"
WORDS_FIRST, WORDS_SECOND = ".lora_embedding_A", ".lora_embedding_B"
_BEYOND = ("lora_bias", "target_parameters", "trainable_token_indices")
"""Keys of PEFT's configuration that change what a layer computes beyond LoRA, DoRA and the rank's scale."""


@dataclass(frozen=True)
class AdapterDelta:
    """What an adapter learned: `first` (rank, inputs), `second` (outputs, rank), DoRA's magnitudes (outputs,)."""

    first: np.ndarray
    second: np.ndarray
    scale: float
    magnitude: np.ndarray | None = None

    def merge(self, weight: np.ndarray, *, inputs_first: bool) -> np.ndarray:
        """The weight with the update added, of the same shape; raises ValueError if they do not fit."""
        own, change = weight.T if inputs_first else weight, self.second @ self.first
        if change.shape != own.shape:
            raise ValueError(
                message("it changes a matrix of shape {shape}, not {shape_2}", shape=change.shape, shape_2=own.shape)
            )
        found = own + np.float32(self.scale) * change
        if self.magnitude is not None:
            found *= (self.magnitude / np.linalg.norm(found, axis=1))[:, None]
        return np.ascontiguousarray(found.T if inputs_first else found)


def write(
    folder: Path, tensors: Mapping[str, np.ndarray], loading: LoadRequest, targets: list[str], modules_to_save: list[str],
    *, inputs_first: bool,
) -> None:  # fmt: skip
    """Write both files; `tensors` have PEFT's names."""
    assert isinstance(loading.adapter, Settings)
    settings, name = loading.adapter, loading.model.name_or_path
    configuration = {
        "peft_type": "LORA",
        "task_type": loading.head.head.declared.peft or None,
        "base_model_name_or_path": name,
        "revision": None if Path(name).is_dir() else loading.model.revision,
        "inference_mode": True,
        "r": settings.rank,
        "lora_alpha": settings.alpha,
        "lora_dropout": settings.dropout,
        "use_rslora": settings.rslora,
        "use_dora": settings.dora,
        "bias": settings.bias,
        "fan_in_fan_out": inputs_first,
        "target_modules": sorted(targets),
        "modules_to_save": sorted(modules_to_save) or None,
    }
    (folder / CONFIG).write_text(json.dumps(configuration, indent=2) + "\n", encoding="utf-8")
    save_file(
        {name: np.ascontiguousarray(value) for name, value in tensors.items()}, folder / WEIGHTS, {"format": "pt"}
    )


class StoredAdapter:
    """An adapter alone in a folder, from any source. Raises InputError if it cannot be read or its type is unknown."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._configuration = folder, read_adapter_config(folder)
        try:
            self._tensors = _read(folder / WEIGHTS)
        except (OSError, ValueError, SafetensorError) as error:
            raise InputError(
                "{field}: the adapter in {folder} cannot be read ({error}); save it again as {weights}",
                _FIELD,
                field=_FIELD,
                folder=folder,
                error=error,
                weights=WEIGHTS,
            ) from error
        self._refuse_unknown()

    def merge(self, values: Values, own_name: Callable[[str], str | None], linear: Mapping[str, bool]) -> list[str]:
        """Merge it into a model's values, including the full tensors that it holds; returns the tensors left over.

        `language_name` maps a file's parameter name to the model's, `linear` names (inputs, outputs) layers. Raises
        RunFailed if nothing fits.
        """
        unused, merged = [], 0
        for name, value in self._tensors.items():
            stem, kind = _parted(name)
            own = own_name(f"{stem}.weight" if kind else name.replace(".base_layer.", "."))
            if own is None or (kind and own not in values):
                unused.append(f"{PREFIX}{name}")
            elif not kind:
                values[own] = value
            elif kind in (FIRST, WORDS_FIRST):
                values[own] = self._merge(stem, kind, values[own], linear.get(own.removesuffix(".weight"), False))
                merged += 1
        if not merged:
            raise self._mismatch_error(message("none of its matrices belongs to the model"))
        return unused

    def _merge(self, stem: str, kind: str, weight: np.ndarray, inputs_first: bool) -> np.ndarray:
        is_words = kind == WORDS_FIRST
        second, sizes = f"{stem}{WORDS_SECOND if is_words else SECOND}", f"{stem}{MAGNITUDE}"
        if second not in self._tensors:
            raise self._mismatch_error(message("{second} is missing", second=second))
        first = self._tensors[f"{stem}{kind}"]
        change = AdapterDelta(first, self._tensors[second], self._scale(stem, len(first)), self._tensors.get(sizes))
        try:
            return change.merge(weight, inputs_first=inputs_first or is_words)
        except ValueError as error:
            raise self._mismatch_error(message("{stem}: {error}", stem=stem, error=error)) from error

    def _scale(self, stem: str, rank: int) -> float:
        patterns: dict[str, float] = self._configuration.get("alpha_pattern") or {}
        own = (alpha for key, alpha in patterns.items() if re.fullmatch(rf"(.*\.)?({key})", stem))
        alpha = next(own, self._configuration.get("lora_alpha", 8))
        return scaling(alpha, rank, rslora=bool(self._configuration.get("use_rslora")))

    def _refuse_unknown(self) -> None:
        if self._configuration.get("init_lora_weights"):
            raise self._unknown(f"init_lora_weights: {self._configuration['init_lora_weights']}")
        if beyond := next((key for key in _BEYOND if self._configuration.get(key)), None):
            raise self._unknown(beyond)

    def _unknown(self, what: str) -> InputError:
        return InputError(
            "{field}: the JAX engine does not support {what} of the adapter in {folder}; choose PyTorch, "
            "or merge it with PEFT",
            _FIELD,
            field=_FIELD,
            what=what,
            folder=self._folder,
        )

    def _mismatch_error(self, reason: str) -> RunFailed:
        return RunFailed(
            "{folder}: its adapter does not match the model it is for ({reason})",
            "adapter_mismatch",
            folder=self._folder,
            reason=reason,
        )


def _read(path: Path) -> Values:
    """Float32 tensors, without PEFT's prefix; numpy alone does not support bfloat16."""
    with safe_open(path, framework="flax") as file:
        return {
            name.removeprefix(PREFIX): np.asarray(file.get_tensor(name)).astype(np.float32)
            for name in file.keys()  # noqa: SIM118 (no mapping)
        }


def _parted(name: str) -> tuple[str, str]:
    """The layer's name and which low-rank tensor this is; empty for a full tensor."""
    for kind in (FIRST, SECOND, MAGNITUDE, WORDS_FIRST, WORDS_SECOND):
        if name.endswith(kind):
            return name.removesuffix(kind), kind
    return name, ""
