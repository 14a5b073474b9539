"""Saves and restores checkpoints in the JAX engine through Orbax, while training continues."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.engines.engine import Finish
from backend.engines.jax.peft_files import MAGNITUDE

STATE = "state"
"""The folder within a checkpoint that Orbax fills."""
_OF_TORCH, _OPTIMIZER_OF_TORCH = "model.safetensors", "optimizer.safetensors"
_LISTENS = "ENABLE_ORBAX_PROMETHEUS_TELEMETRY"
_FULL = ("no space left", "disk quota exceeded", "file too large")


@dataclass(frozen=True)
class SavedState:
    """What a checkpoint holds: trained parameters by name, and the leaves of the optimizer's state in order."""

    parameters: Mapping[str, jax.Array]
    optimizer: Sequence[jax.Array]


def save(folder: Path, values: SavedState) -> Finish:
    """Copy the values and start writing them; the files are complete once the returned function was called.

    The copy is made before this returns, so that the next step may reuse the values' memory.
    """
    orbax = _orbax()
    writer = orbax.AsyncCheckpointer(orbax.PyTreeCheckpointHandler())
    with _raise_disk_full():
        writer.save(folder / STATE, args=orbax.args.PyTreeSave(_tree(values)))

    def finish() -> None:
        with _raise_disk_full(), closing(writer):
            writer.wait_until_finished()

    return finish


def restore(folder: Path, like: SavedState) -> SavedState:
    """Restore what was saved, bit-exact, with the shapes and device placement of `like`.

    Raises RunFailed for a checkpoint of another model, or one that cannot be read.
    """
    orbax = _orbax()
    wanted = _tree(like)
    with orbax.Checkpointer(orbax.PyTreeCheckpointHandler()) as reader:
        try:
            stored = reader.metadata(folder / STATE).item_metadata
            if stored is None:
                raise ValueError(message("its contents are unknown"))
            _check(stored.tree, wanted)
            places = jax.tree.map(lambda value: orbax.ArrayRestoreArgs(sharding=value.sharding), wanted)
            found = reader.restore(folder / STATE, args=orbax.args.PyTreeRestore(wanted, restore_args=places))
        except (OSError, ValueError, KeyError) as error:
            raise _unreadable(folder, error) from error
    return SavedState(found["parameters"], [found["optimizer"][name] for name in sorted(found["optimizer"])])


def restore_weights(folder: Path, like: Mapping[str, jax.Array]) -> dict[str, np.ndarray]:
    """The parameters from a torch engine checkpoint, under the names and with the shapes of `like`.

    Raises RunFailed for a checkpoint of another model, or one that cannot be read.
    """
    try:
        stored = {_to_peft_name(name): value for name, value in load_file(folder / _OF_TORCH).items()}
        _decay_words(stored, folder / _OPTIMIZER_OF_TORCH)
    except (OSError, SafetensorError) as error:
        raise _unreadable(folder, error) from error
    if wrong := [name for name in like if name not in stored or stored[name].shape != like[name].shape]:
        raise _of_another_model(wrong[0])
    return {name: stored[name] for name in like}


def _decay_words(stored: dict[str, np.ndarray], optimizer: Path) -> None:
    """Apply the weight decay of unseen words, which the torch engine stores as a single factor."""
    with safe_open(optimizer, framework="numpy") as file:
        name = (file.metadata() or {}).get("words")
        if name:
            waiting = np.ones(len(stored[name]), dtype=bool)
            waiting[file.get_tensor("words.rows")] = False
            stored[name][waiting] *= file.get_tensor("words.decay").item()


def _to_peft_name(name: str) -> str:
    """PEFT's name within a model → the name in PEFT's files and in the JAX engine."""
    return (
        name.replace(".base_layer.", ".")
        .replace(f"{MAGNITUDE}.default.weight", MAGNITUDE)
        .replace(".default.", ".")
        .removesuffix(".default")
    )


def _unreadable(folder: Path, error: Exception) -> RunFailed:
    return RunFailed(
        "{folder}: this checkpoint cannot be read ({error}); resume from an older one",
        "checkpoint_unreadable",
        folder=folder,
        error=_first_line(error),
    )


def _orbax() -> Any:
    # A spec's environment could ask Orbax to serve its counters to the network; nothing here listens.
    os.environ[_LISTENS] = "false"
    import orbax.checkpoint  # takes a second, which no evaluation or prediction should wait for

    return orbax.checkpoint


def _tree(values: SavedState) -> dict[str, dict[str, jax.Array]]:
    leaves = {f"{number:05}": leaf for number, leaf in enumerate(values.optimizer)}
    return {"parameters": dict(values.parameters), "optimizer": leaves}


def _check(stored: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, jax.Array]]) -> None:
    """Raises RunFailed if the names or shapes are not those of this model and optimizer."""
    for part, values in wanted.items():
        found = stored.get(part, {})
        wrong = [
            name
            for name in sorted({*values, *found})
            if name not in found or name not in values or tuple(found[name].shape) != values[name].shape
        ]
        if wrong:
            what = wrong[0] if part == "parameters" else message("its optimizer state")
            raise _of_another_model(what)


def _of_another_model(what: str) -> RunFailed:
    return RunFailed(
        "This checkpoint belongs to another model: {what} does not match; start a new run",
        "checkpoint_mismatch",
        what=what,
    )


@contextmanager
def _raise_disk_full() -> Iterator[None]:
    """Raise the system's own error for a full disk, which the library hides in another error's message."""
    try:
        yield
    except Exception as error:
        words = " ".join(str(one).lower() for one in _list_causes(error))
        if any(sign in words for sign in _FULL):
            raise OSError(errno.ENOSPC, "No space left on device") from error
        raise


def _list_causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
