"""Owns what is known of the bridge before torch is imported: it lets JAX compute transformers' own PyTorch code."""

from backend.catalogue_building import missing
from backend.contract.heads import Head
from backend.engines.engine import BridgeEntry

BRIDGE = BridgeEntry(
    setting="hardware.bridge",
    title="torchax",
    description="Architectures that JAX does not know itself: it computes transformers' own PyTorch code.",
    requires=("torch", "torchax"),
    extra="bridge",
    heads=tuple(head for head in Head if head is not Head.QUESTION_ANSWERING_BEAM),
)
SETTING = BRIDGE.setting


def way_out(head: Head | None = None) -> str:
    """What helps where no family of ours knows a model, or that head of it, as a part of a sentence."""
    if head is not None and head not in BRIDGE.heads:
        return "choose PyTorch"
    absent = missing(BRIDGE)
    return f"switch on {SETTING}{f' ({absent})' if absent else ''}, or choose PyTorch"
