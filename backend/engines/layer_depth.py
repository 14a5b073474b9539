"""The depth of a parameter in its model (embeddings, layers, head), for freezing and layer-wise learning rates."""

import re
from dataclasses import dataclass
from functools import cached_property

from backend.contract.errors import InputError
from backend.models.frozen_parameters import matches

_LAYER = re.compile(r"^(.*?)\.(\d+)\.")
_EMBEDDING_NAMES = ("wte", "wpe", "shared")
_FIELD = "model.frozen"
_EXAMPLES = 5


@dataclass(frozen=True)
class LayerDepths:
    """The parameters of one model by name, in its order."""

    names: tuple[str, ...]
    body: frozenset[str]
    """Those of what every head of the architecture shares."""
    tables: frozenset[str]
    """The modules that are embeddings."""
    fixed: frozenset[str] = frozenset()
    """Those that never train, such as sinusoidal positions."""

    def rates(self, decay: float | None) -> dict[str, float]:
        """Parameter → its learning rate multiplier: 1 above the layers, `decay` to the power of its distance below.

        The embeddings are below the lowest layer. In an encoder-decoder the decoder's layers follow the encoder's.
        """
        if decay is None:
            return dict.fromkeys(self.names, 1.0)
        depths, top = self._depths
        return {name: decay ** (top - depths[name]) for name in self.names}

    def frozen_names(self, patterns: list[str | int]) -> set[str]:
        """The names of the parameters to freeze.

        Each item is `embeddings`, `encoder` (all below the head; in an encoder-decoder its encoder), a number of lower
        layers (with the embeddings below them), or a pattern of parameter names. Raises InputError if one matches
        nothing, or if nothing would be left to train.
        """
        found = {name for pattern in patterns for name in self._names_to_freeze(pattern)}
        if self.fixed.union(found).issuperset(self.names):
            raise InputError(
                "{field}: this freezes every weight and leaves nothing to train; freeze less", _FIELD, field=_FIELD
            )
        return found

    @cached_property
    def _depths(self) -> tuple[dict[str, int], int]:
        """Parameter → 0 for embeddings, 1 for the lowest layer …; and the depth of everything above the layers."""
        places = {name: _layer_of(name) for name in self.body - self._embeddings}
        counts: dict[str, int] = {}
        for stack, number in filter(None, places.values()):
            counts[stack] = max(counts.get(stack, 0), number + 1)
        below = max((count for stack, count in counts.items() if "decoder" not in stack), default=0)
        starts = {stack: below if "decoder" in stack else 0 for stack in counts}
        top = 1 + max((starts[stack] + count for stack, count in counts.items()), default=0)
        depths = dict.fromkeys(self.names, top) | dict.fromkeys(self._embeddings, 0)
        for name, place in places.items():
            if place is not None:
                depths[name] = 1 + starts[place[0]] + place[1]
        return depths, top

    @cached_property
    def _embeddings(self) -> frozenset[str]:
        """Embeddings and their norms and projections, which are in no layer."""
        return frozenset(name for name in self.body if _layer_of(name) is None and self._is_embedding(name))

    def _is_embedding(self, name: str) -> bool:
        parts = name.split(".")[:-1]
        return ".".join(parts) in self.tables or any("emb" in part or part in _EMBEDDING_NAMES for part in parts)

    def _names_to_freeze(self, pattern: str | int) -> frozenset[str]:
        if pattern == "embeddings":
            return self._embeddings
        if pattern == "encoder":
            return self._encoder()
        if isinstance(pattern, int):
            return self._parameters_below(pattern)
        found = frozenset(name for name in self.names if matches(name, pattern))
        if not found:
            some = self.names[:: max(1, len(self.names) // _EXAMPLES)][:_EXAMPLES]
            raise InputError(
                "{field}: {pattern} does not match any parameter; the parameters include {some}",
                _FIELD,
                field=_FIELD,
                pattern=repr(pattern),
                some=", ".join(some),
            )
        return found

    def _encoder(self) -> frozenset[str]:
        of_encoder = frozenset(name for name in self.body if "encoder" in name.split("."))
        has_decoder = any("decoder" in name.split(".") for name in self.body)
        return of_encoder if has_decoder else self.body

    def _parameters_below(self, count: int) -> frozenset[str]:
        depths, top = self._depths
        if count > top - 1:
            raise InputError(
                "{field}: {count} lower layers are more than the {top} layers of this model",
                _FIELD,
                field=_FIELD,
                count=count,
                top=top - 1,
            )
        return frozenset(name for name, depth in depths.items() if depth <= count)


def _layer_of(name: str) -> tuple[str, int] | None:
    found = _LAYER.match(name)
    return (found.group(1), int(found.group(2))) if found else None
