"""Owns why a run cannot be started yet: what is wrong with the data, then what is still to be chosen, then the rest."""

from app.core.draft import missing
from app.core.i18n import tr
from app.pages.new_run.cards import Cards
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController


class Reasons:
    """Each is a sentence, empty where there is none."""

    def __init__(self, editing: DraftController, findings: DraftChecks, cards: Cards) -> None:
        self._editing, self._findings, self._cards = editing, findings, cards

    def missing(self) -> str:
        """What is still to be chosen."""
        entry, draft = self._editing.task(), self._editing.draft
        if entry is None:
            return tr("Choose a task.") if self._editing.catalog else tr("The backend has not answered yet.")
        if said := missing.in_data(draft, self._editing.source()):
            return said
        if not draft.get("model.name_or_path"):
            return tr("Choose a model.")
        return missing.in_columns(draft, entry, self._findings.preview)

    def in_data(self) -> str:
        """What is wrong with the data that was chosen."""
        return self._findings.problems.get("data", "") or next(iter(self._cards.data.mistakes()), "")

    def mistaken(self) -> str:
        """What is wrong, wherever it is."""
        return self._findings.blocking() or next(iter(self._cards.mistakes()), "")

    def first(self) -> str:
        """What a person has to see to first."""
        return self.in_data() or self.missing() or self.mistaken() or self._findings.waiting()

    def is_problem(self) -> bool:
        """Whether that is wrong, and not just still to do."""
        return bool(self.in_data()) or (not self.missing() and bool(self.mistaken()))
