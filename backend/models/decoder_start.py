"""Owns the token with which a decoder begins, where a configuration leaves it open."""

_BEGINS_WITH_PADDING = {"t5", "longt5", "switch_transformers"}


def decoder_start(model_type: str | None, own: int | None, padding: int | None) -> int | None:
    """The configuration's own `decoder_start_token_id`; without one T5 and its like begin with the padding token.

    None for every other architecture: transformers' class knows, or refuses.
    """
    return padding if own is None and model_type in _BEGINS_WITH_PADDING else own
