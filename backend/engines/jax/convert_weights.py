"""The short-lived process that converts Flax weights to safetensors: `-m … SOURCE_FOLDER TARGET_FOLDER`.

msgpack holds names and numbers, never code; anything but a table of arrays is rejected in one line on stderr.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from backend.contract.messages import message
from backend.models.model_files import copy_small_files
from backend.models.weights import SAFETENSORS, SAFETENSORS_INDEX, read_weights, rename_flax_parameters

_REFUSED = 3


def main(source: Path, target: Path) -> int:
    """Write the folder; returns the exit code."""
    try:
        _convert(read_weights(source).files, target)
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"\n{error.name} is not installed, which reads it; install it with: pip install 'burnish[jax]'\n"
        )
        return _REFUSED
    except (ValueError, TypeError) as error:
        sys.stderr.write(f"\n{str(error).splitlines()[0]}\n")
        return _REFUSED
    copy_small_files(source, target)
    return 0


def _convert(files: tuple[Path, ...], target: Path) -> None:
    if len(files) == 1:
        save_file(_read(files[0]), target / SAFETENSORS, {"format": "pt"})
        return
    places: dict[str, str] = {}
    for number, path in enumerate(files, 1):
        name = f"model-{number:05d}-of-{len(files):05d}.safetensors"
        tensors = _read(path)
        save_file(tensors, target / name, {"format": "pt"})
        places |= dict.fromkeys(tensors, name)
    text = json.dumps({"metadata": {}, "weight_map": places}, indent=2)
    (target / SAFETENSORS_INDEX).write_text(text, encoding="utf-8")


def _read(path: Path) -> dict[str, np.ndarray]:
    from flax.serialization import msgpack_restore  # not where torch alone is installed: `main` says so

    tree = msgpack_restore(path.read_bytes())
    tensors = rename_flax_parameters(tree) if isinstance(tree, dict) else {}
    if not tensors:
        raise ValueError(message("{name} does not contain a table of arrays", name=path.name))
    return tensors


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
