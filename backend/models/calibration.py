"""Reads, writes and applies `model/burnish_calibration.json`, by which a classifier's outputs become calibrated probabilities.

The file holds one pair of numbers for all labels, or one for each label: an output becomes `scale * output + offset` before
probabilities are computed. A temperature T is the scale 1/T for all labels.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.run.folder import write_json
from backend.models.adapter_files import PREFIX
from backend.models.model_files import read_small

NAME = "burnish_calibration.json"
HEADS = (Head.SEQUENCE_CLASSIFICATION, Head.MULTIPLE_CHOICE)
"""Whose probabilities are those of one softmax over a row's outputs."""
_LIMIT = 50_000_000
_LAST_LAYERS = (
    "classifier", "classifier.out_proj", "classifier.linear_out", "classification_head.out_proj", "logits_proj", "score",
)  # fmt: skip
"""What transformers calls the linear layer from which a classifier's outputs come; nothing follows it."""


class Scaling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of one output, or of all."""

    scale: Annotated[float, msgspec.Meta(ge=1e-3, le=1e3)]
    offset: Annotated[float, msgspec.Meta(ge=-1e3, le=1e3)] = 0.0


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of the file."""

    version: Literal[1] = 1
    method: Literal["temperature", "platt"]
    parameters: Annotated[tuple[Scaling, ...], msgspec.Meta(min_length=1, max_length=1_000_000)]
    """One for all labels, or one for each label in the order of their IDs."""
    rows: Annotated[int, msgspec.Meta(ge=0)] = 0
    """On how many it was fitted."""

    @property
    def temperature(self) -> float | None:
        """What the outputs are divided by; None if it is not the same for all labels."""
        return 1 / self.parameters[0].scale if len(self.parameters) == 1 else None

    def apply(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of each row, (labels,), scaled."""
        scale, offset = self._arrays()
        return [one.astype(np.float64) * scale + offset for one in outputs]

    def fold(self, weight: np.ndarray, bias: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """The last layer that gives scaled outputs, as its weight (outputs, width) and bias (outputs,) say."""
        scale, offset = self._arrays()
        folded = (weight.astype(np.float64) * np.atleast_1d(scale)[:, None]).astype(weight.dtype)
        return folded, None if bias is None else (bias.astype(np.float64) * scale + offset).astype(bias.dtype)

    @property
    def has_offsets(self) -> bool:
        """Whether a layer without bias cannot hold it."""
        return any(one.offset for one in self.parameters)

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([one.scale for one in self.parameters]), np.array([one.offset for one in self.parameters])


def of_temperature(temperature: float, rows: int) -> Calibration:
    """The calibration that divides every output by `temperature`."""
    return Calibration(method="temperature", parameters=(Scaling(1 / temperature),), rows=rows)


def read(folder: Path) -> Calibration | None:
    """The calibration of the model in a folder; None if it has none. Raises InputError if it is damaged."""
    content = read_small(folder / NAME, _LIMIT)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=Calibration)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _damaged(folder, str(error)) from None


def read_for(folder: Path, head: Head, labels: int | None) -> Calibration | None:
    """The same for a model with this head; `labels` is how many it has, None if it has as many outputs as a row has choices.

    Raises InputError also if the calibration is of another model.
    """
    found = read(folder)
    if found is not None and (head not in HEADS or len(found.parameters) not in (1, labels)):
        raise _damaged(folder, message("it is that of another model"))
    return found


def _damaged(folder: Path, reason: str) -> InputError:
    return InputError(
        "{path}: this calibration cannot be used ({reason}); delete the file, then calibrate the model again",
        path=folder / NAME,
        reason=reason,
    )


def write(folder: Path, calibration: Calibration) -> Path:
    """Save it beside the weights, in place of an older one. Raises OSError."""
    write_json(folder / NAME, msgspec.to_builtins(calibration))
    return folder / NAME


def remove(folder: Path) -> bool:
    """Let the model be as it was trained; whether it had a calibration. Raises OSError."""
    with suppress(FileNotFoundError):
        (folder / NAME).unlink()
        return True
    return False


def fold_into_weights(folder: Path, calibration: Calibration) -> bool:
    """Scale the last layer in a folder's own weights, and remove its file, so that every program computes the same probabilities.

    The outputs are equal up to the rounding of the weights. False, with nothing changed, if the layer is not found, or not in one
    file as a whole.
    """
    paths = sorted(folder.glob("*.safetensors"))
    biases = {name: path for path in paths for name in _shapes(path) if name.endswith(".bias")}
    for path in paths:
        layer = _last_layer(_shapes(path), calibration)
        if layer is None or biases.get(f"{layer}.bias", path) != path:
            continue
        with safe_open(path, framework="np") as file:
            metadata = file.metadata()
        tensors = load_file(path)
        bias = tensors.get(f"{layer}.bias")
        tensors[f"{layer}.weight"], folded = calibration.fold(tensors[f"{layer}.weight"], bias)
        if folded is not None:
            tensors[f"{layer}.bias"] = folded
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            save_file(tensors, beside, metadata)
            beside.chmod(path.stat().st_mode & 0o777)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        remove(folder)
        return True
    return False


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    with safe_open(path, framework="np") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118  no mapping


def _last_layer(shapes: Mapping[str, tuple[int, ...]], calibration: Calibration) -> str | None:
    """The name of the layer, without `.weight`; None unless exactly one can be it."""
    found = [
        name.removesuffix(".weight")
        for name, shape in shapes.items()
        if name.removeprefix(PREFIX).removesuffix(".weight") in _LAST_LAYERS
        and name.endswith(".weight")
        and len(shape) == 2
        and len(calibration.parameters) in (1, shape[0])
    ]
    if len(found) != 1 or (calibration.has_offsets and f"{found[0]}.bias" not in shapes):
        return None
    return found[0]
