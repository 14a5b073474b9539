"""Owns what a run tells its engine about tokens that the model was not trained with."""

from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.places import is_offline
from backend.contract.spec import RunSpec
from backend.engines.initial_weights import NewTokens
from backend.tokenizers.added_tokens import extends, first_new, replaced_pieces
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.options import ADDED, ADDED_SPECIAL


def new_tokens(spec: RunSpec, tokenizer: Any, folder: Path) -> NewTokens:
    """Which tokens the run's `tokenizer` has beyond the one of the model in `folder`, and how their rows begin."""
    if spec.model.initialise == "from_config":
        return NewTokens()  # every row is new
    own = _own(spec, folder) if _adds(spec) else None
    if own is not None and not extends(tokenizer, own):
        return NewTokens()  # another vocabulary altogether: no row is known to belong to anything
    pieces = replaced_pieces(tokenizer, own)
    if spec.model.new_embeddings == "usual":
        pieces = dict.fromkeys(pieces, ())
    return NewTokens(pieces, None if own is None else first_new(own))


def _adds(spec: RunSpec) -> bool:
    options = spec.model.tokenizer_options
    return spec.model.tokenizer is not None or bool(options.get(ADDED) or options.get(ADDED_SPECIAL))


def _own(spec: RunSpec, folder: Path) -> Any:
    """The tokenizer that the model was trained with; None where its folder has none that opens."""
    given = spec.model.tokenizer_options if spec.model.tokenizer is None else {}
    options = {name: value for name, value in given.items() if name not in (ADDED, ADDED_SPECIAL)}
    try:
        return open_tokenizer(str(folder), options=options, offline=is_offline())
    except InputError:
        return None
