"""Owns the refusal of what no family of ours computes: an architecture, a head of it, or a variant."""

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.engines.jax.bridge import way_out

FIELD = "hardware.engine"


class Unknown(InputError):
    """The bridge may know it: `what` follows "the JAX engine", as in "does not know the architecture 'electra'"."""

    def __init__(self, what: str, head: Head | None = None) -> None:
        super().__init__(f"{FIELD}: the JAX engine {what}; {way_out(head)}", FIELD)
