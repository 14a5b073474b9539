"""Owns the refusal of what no family of ours computes: an architecture, a head of it, or a variant."""

from backend.contract.errors import InputError

FIELD = "hardware.engine"


class Unknown(InputError):
    """`what` follows "the JAX engine", as in "does not know the architecture 'electra'"."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{FIELD}: the JAX engine {what}; choose PyTorch", FIELD)
