"""Owns how each card of the New run page stands: done, something still to be chosen, or something wrong."""

from app.core.draft import missing
from app.pages.new_run.cards import Cards
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.header import DONE, OPEN, WRONG


def card_states(editing: DraftController, findings: DraftChecks, cards: Cards) -> dict[str, str]:
    """Card → state."""
    task, draft = editing.task(), editing.draft
    lacks = missing.in_data(draft, editing.source())
    if task is not None and not lacks:
        lacks = missing.in_columns(draft, task, findings.preview)
    wrong = {
        "data": "data" in findings.problems or bool(cards.data.mistakes()),
        "model": "model" in findings.problems,
        "hardware": bool(cards.hardware.mistakes()),
        "settings": bool(cards.settings.mistakes()),
    }
    lacking = {"task": task is None, "data": bool(lacks), "model": not draft.get("model.name_or_path")}
    return {
        name: WRONG if wrong.get(name) else OPEN if lacking.get(name) else DONE
        for name in ("task", "data", "model", "hardware", "settings")
    }
