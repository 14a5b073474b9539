"""Owns the way out where texts are to be longer than the model reads: a click sets its own limit."""

from app.core.draft.draft import Draft
from app.core.i18n import tr
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import Mistake
from backend.contract.run.cost import Remedy

LENGTHS = ("task.max_length", "task.max_target_length")


def shorter(draft: Draft, model: ModelDescription | None, mistake: Mistake) -> list[Remedy]:
    """The model's limit (tokens) for every length of the draft above it; nothing where the mistake is another."""
    limit = model.max_length if model is not None else None
    if mistake.field != LENGTHS[0] or not limit:
        return []
    above = {key: limit for key in LENGTHS if isinstance(draft.get(key), int) and draft.get(key) > limit}
    if not above:
        return []
    title = tr("At most {limit:,} tokens", limit=limit)
    return [Remedy(title=title, changes=above, memory_mb=0.0, fits=True, note=tr("Longer texts are cut."))]
