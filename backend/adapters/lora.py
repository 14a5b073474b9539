"""The settings of LoRA, and what can be checked before a framework is loaded."""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Annotated, Any, Literal

from pydantic import Field

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED

Initialization = Literal["default", "pissa", "pissa_niter_16", "loftq"]
_EXAMPLES = 8


class Settings(Section):
    """Low-rank adaptation: each chosen matrix learns a low-rank update; the model's own weights stay frozen."""

    type: Annotated[Literal["lora"], Field(title="Type")] = "lora"
    """The kind of adapter."""
    rank: Annotated[int, Field(title="Rank", ge=1, le=4096)] = 8
    """Rank of the two small matrices. A higher rank can learn more and needs more memory. Usually 4 to 64."""
    alpha: Annotated[float, Field(title="Alpha", gt=0)] = 16.0
    """The update is scaled by alpha divided by rank. Usually once or twice the rank."""
    dropout: Annotated[float, Field(title="Dropout", ge=0, lt=1)] = 0.0
    """Dropout before the small matrices. Usually 0 to 0.1."""
    targets: Annotated[Literal["auto", "all-linear"] | list[str], Field(title="Target modules")] = "auto"
    """`auto` uses the standard modules for the architecture, mostly queries and values; `all-linear` every linear
    layer except the head; or a list of names, for example `[query, value]`, which may include an embedding."""
    dora: Annotated[bool, Field(title="DoRA", json_schema_extra=ADVANCED)] = False
    """Learn the direction and magnitude of the update separately (Liu et al. 2024)."""
    rslora: Annotated[bool, Field(title="Rank-stabilized", json_schema_extra=ADVANCED)] = False
    """Divide alpha by the square root of the rank instead of the rank (rsLoRA, Kalajdzievski 2023)."""
    loraplus_ratio: Annotated[float, Field(title="LoRA+ ratio", ge=1, le=1000, json_schema_extra=ADVANCED)] = 1.0
    """The learning rate of the second small matrices, and of biases and magnitudes if they train, as a multiple of the
    learning rate (LoRA+, Hayou et al. 2024, who use 16). Above 1, choose a learning rate about half as high."""
    initialization: Annotated[Initialization, Field(title="Initialization", json_schema_extra=ADVANCED)] = "default"
    """How the small matrices start: `default` changes nothing at first; `pissa` takes the main directions of each matrix
    over from the model (Meng et al. 2024), and `pissa_niter_16` finds them faster in large matrices; `loftq` those of
    what 4 or 8 bits lose (Li et al. 2023), with `model.weights: nf4` or `int8`."""
    bias: Annotated[Literal["none", "all", "lora_only"], Field(title="Train biases", json_schema_extra=ADVANCED)] = (
        "none"
    )
    """Which biases of the model are trained as well."""
    saved: Annotated[Literal["merged", "adapter"], Field(title="Save as")] = "merged"
    """`merged` saves a complete model that loads anywhere; `adapter` saves only the small matrices and new heads,
    which need the base model."""


class Lora:
    """LoRA (Hu et al. 2021), saved in PEFT's file layout."""

    title = "LoRA"
    description = "Trains small matrices added to the model, which needs far less memory."
    Settings = Settings

    @staticmethod
    def check(settings: Settings, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> None:
        """Raises InputError if a target is not a matrix in the file."""
        for target in settings.targets if isinstance(settings.targets, list) else ():
            if not any(is_meant(name, target) for name in _matrices(shapes, with_tables=True)):
                raise no_such_matrix(target, _matrices(shapes))

    @staticmethod
    def count_trainable(settings: Settings, shapes: Mapping[str, tuple[int, ...]], model_type: str) -> int:
        """Rank times the sum of both sides of every target matrix; heads that do not exist yet are not counted."""
        known = _matrices(shapes, with_tables=isinstance(settings.targets, list))
        chosen = {name: shape for name, shape in known.items() if _is_chosen(settings, name)}
        if settings.targets == "auto" and not chosen:
            chosen = known
        sides = sum(settings.rank * (shape[0] + prod(shape[1:])) for shape in chosen.values())
        sizes = sum(shape[1] if is_embedding(name) else shape[0] for name, shape in chosen.items())
        return sides + (sizes if settings.dora else 0)


def rate_ratio(settings: Settings, name: str, dimensions: int) -> float:
    """What a trained parameter's learning rate is multiplied by: `loraplus_ratio`, as PEFT's LoRA+ applies it.

    An embedding's matrices learn at the plain rate, where PEFT has another setting, which is 1e-6 if nobody sets it.
    """
    return settings.loraplus_ratio if ".lora_B." in name or dimensions == 1 else 1.0


def is_meant(module: str, target: str) -> bool:
    """Whether a target in the settings matches the module with this full name."""
    return module == target or module.endswith(f".{target}")


def no_such_matrix(target: str, modules: Iterable[str]) -> InputError:
    """The error for a target that matches no module of the model."""
    names = sorted({name.rpartition(".")[2] for name in modules})
    return InputError(
        "adapter.targets: this model has no module named {target}; its modules include {names}",
        "adapter.targets",
        target=repr(target),
        names=", ".join(names[:_EXAMPLES]),
    )


def cannot_leave_alone(reason: str) -> InputError:
    """The error for `saved: adapter` when it is not possible."""
    return InputError("adapter.saved: {reason}; set adapter.saved to merged", "adapter.saved", reason=reason)


def check_leaves_alone(*, resized: bool, adapted: bool) -> None:
    """Raises InputError if the adapter cannot be saved alone: enlarged embeddings, or an adapter as its model."""
    if resized:
        raise cannot_leave_alone(message("added tokens enlarge the model itself"))
    if adapted:
        raise cannot_leave_alone(message("the model is itself an adapter of another model"))


_TABLES = {"wte", "wpe", "shared", "relative_attention_bias"}
"""What architectures call embeddings without saying so."""
USUAL = (
    "query", "value", "q", "v", "c_attn", "q_proj", "v_proj", "query_key_value", "query_proj", "value_proj", "q_lin",
    "v_lin", "in_proj", "qkv_proj", "Wqkv",
)  # fmt: skip
"""What `auto` means: the matrices of attention that make queries and values, as architectures call them."""


def _matrices(shapes: Mapping[str, tuple[int, ...]], *, with_tables: bool = False) -> dict[str, tuple[int, ...]]:
    """Module name → shape, without embeddings unless `with_tables`; only a list of targets can name embeddings."""
    return {
        name.removesuffix(".weight"): shape
        for name, shape in shapes.items()
        if len(shape) >= 2 and name.endswith(".weight") and (with_tables or not is_embedding(name))
    }


def is_embedding(name: str) -> bool:
    """Whether a parameter with this name is a table of embeddings."""
    return any("emb" in part or part in _TABLES for part in name.split("."))


def _is_chosen(settings: Settings, name: str) -> bool:
    if isinstance(settings.targets, list):
        return any(is_meant(name, target) for target in settings.targets)
    return settings.targets == "all-linear" or name.rsplit(".", 1)[-1] in USUAL


ADAPTER: Any = Lora
