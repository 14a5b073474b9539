"""Owns where a parameter stands in a model: embeddings, layers from below, what is above; for freezing and for rates."""

import re

from torch import nn

from backend.contract.errors import InputError
from backend.models.parameter_names import meets

_LAYER = re.compile(r"^(.*?)\.(\d+)\.")
_EMBEDDING_NAMES = ("wte", "wpe", "shared")
_FIELD = "model.frozen"
_EXAMPLES = 5


def rates(model: nn.Module, decay: float | None) -> dict[str, float]:
    """Parameter → what the learning rate is multiplied by: 1 above the layers, `decay` to the distance below.

    The embeddings lie under the lowest layer. Of an encoder-decoder the decoder's layers follow the encoder's.
    """
    names = [name for name, _ in model.named_parameters()]
    if decay is None:
        return dict.fromkeys(names, 1.0)
    depths, top = _depths(model)
    return {name: decay ** (top - depths[name]) for name in names}


def _depths(model: nn.Module) -> tuple[dict[str, int], int]:
    """Parameter → 0 for embeddings, 1 for the lowest layer …; and the depth of what lies above all layers."""
    body, embeddings = _body(model), _embeddings(model)
    places = {name: _place(name) for name in body - embeddings}
    counts: dict[str, int] = {}
    for stack, number in filter(None, places.values()):
        counts[stack] = max(counts.get(stack, 0), number + 1)
    below = max((count for stack, count in counts.items() if "decoder" not in stack), default=0)
    starts = {stack: below if "decoder" in stack else 0 for stack in counts}
    top = 1 + max((starts[stack] + count for stack, count in counts.items()), default=0)
    depths = {name: top for name, _ in model.named_parameters()} | dict.fromkeys(embeddings, 0)
    for name, place in places.items():
        if place is not None:
            depths[name] = 1 + starts[place[0]] + place[1]
    return depths, top


def _place(name: str) -> tuple[str, int] | None:
    found = _LAYER.match(name)
    return (found.group(1), int(found.group(2))) if found else None


def _body(model: nn.Module) -> set[str]:
    inside = {id(each) for each in getattr(model, "base_model", model).parameters()}
    return {name for name, each in model.named_parameters() if id(each) in inside}


def _embeddings(model: nn.Module) -> set[str]:
    """Embeddings and their norms and projections, which lie in no layer."""
    tables = {prefix for prefix, module in model.named_modules() if isinstance(module, nn.Embedding)}
    return {name for name in _body(model) if _place(name) is None and _is_embedding(name, tables)}


def _is_embedding(name: str, tables: set[str]) -> bool:
    parts = name.split(".")[:-1]
    return ".".join(parts) in tables or any("emb" in part or part in _EMBEDDING_NAMES for part in parts)


def freeze(model: nn.Module, wishes: list[str | int]) -> None:
    """Take parameters out of training.

    A wish is `embeddings`, `encoder` (all below the head; of an encoder-decoder its encoder), a number of lower layers
    (with the embeddings under them), or a pattern of parameter names. Raises InputError where one matches nothing, or
    where nothing would be left to train.
    """
    parameters = dict(model.named_parameters())
    for wish in wishes:
        for name in _wished(model, wish):
            parameters[name].requires_grad_(False)
    if not any(each.requires_grad for each in parameters.values()):
        raise InputError(f"{_FIELD}: this freezes every weight and leaves nothing to train; freeze less", _FIELD)


def _wished(model: nn.Module, wish: str | int) -> set[str]:
    names = [name for name, _ in model.named_parameters()]
    if wish == "embeddings":
        return _embeddings(model)
    if wish == "encoder":
        return _encoder(model)
    if isinstance(wish, int):
        return _lower_layers(model, wish)
    found = {name for name in names if meets(name, wish)}
    if not found:
        some = names[:: max(1, len(names) // _EXAMPLES)][:_EXAMPLES]
        raise InputError(f"{_FIELD}: {wish!r} matches no parameter; there are for example {', '.join(some)}", _FIELD)
    return found


def _encoder(model: nn.Module) -> set[str]:
    body = _body(model)
    of_encoder = {name for name in body if "encoder" in name.split(".")}
    has_decoder = any("decoder" in name.split(".") for name in body)
    return of_encoder if has_decoder else body


def _lower_layers(model: nn.Module, count: int) -> set[str]:
    depths, top = _depths(model)
    if count > top - 1:
        raise InputError(f"{_FIELD}: {count} lower layers are more than the {top - 1} of this model", _FIELD)
    return {name for name, depth in depths.items() if depth <= count}
