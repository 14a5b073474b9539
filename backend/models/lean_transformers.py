"""Lets transformers open tokenizers and configurations without torch, which takes two seconds to import, and list its models once."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_USUAL_TYPES = (None, "float32", "float16", "bfloat16")


class _Torch:
    """torch, imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torch"), name)


@contextmanager
def leave_torch_out(config: Mapping[str, Any]) -> Iterator[None]:
    """Within this context transformers does not import torch, and `config` keeps its `dtype` by name. One thread at a time.

    transformers imports torch with the first configuration, for rotary positions, and to look up the dtype; an unusual
    dtype is looked up all the same, as it may not exist. Do not run a model's own code in it: that may need torch.
    """
    if "torch" in sys.modules or not _has_usual_types(config):
        yield
        return
    try:
        configuration_utils, is_installed = _prepare_without_torch()
    except (ImportError, AttributeError):  # another version of transformers: slower, but it works
        yield
        return
    configuration_utils.is_torch_available = lambda: False
    try:
        yield
    finally:
        configuration_utils.is_torch_available = is_installed


def _prepare_without_torch() -> tuple[Any, Any]:
    """The module that opens configurations, imported without torch, and its function that says whether torch is there."""
    list_models_once()
    utils: Any = importlib.import_module("transformers.utils")
    is_installed = utils.is_torch_available
    utils.is_torch_available = lambda: False
    try:
        from transformers import modeling_rope_utils
    finally:
        utils.is_torch_available = is_installed
    if not hasattr(modeling_rope_utils, "torch"):
        modeling_rope_utils.torch = _Torch()  # type: ignore[assignment]  # for models that are built later
    return importlib.import_module("transformers.configuration_utils"), is_installed


def _has_usual_types(config: Mapping[str, Any]) -> bool:
    parts = (part for part in config.values() if isinstance(part, dict))
    return all(config.get(key) in _USUAL_TYPES for key in ("dtype", "torch_dtype")) and all(
        map(_has_usual_types, parts)
    )


def list_models_once() -> None:
    """transformers reads the source of all models to list their classes (0.4 s), and again for `transformers.models`."""
    if "transformers.models" in sys.modules:
        return
    import transformers  # takes a second
    from transformers.utils import import_utils

    read = import_utils.define_import_structure
    known = read(Path(transformers.__file__).parent / "models", prefix="models")  # kept by transformers
    models = {
        needs: {name[7:]: classes for name, classes in modules.items() if name.startswith("models.")}
        for needs, modules in known.items()
    }
    import_utils.define_import_structure = lambda *_: models
    try:
        importlib.import_module("transformers.models")
    finally:
        import_utils.define_import_structure = read
