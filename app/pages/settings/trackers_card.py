"""Which trackers get the curves of every run, and where each of them is."""

from functools import partial
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QCheckBox

from app.core import formatting
from app.core.i18n import tr
from app.pages.settings.hub_card import INDENT, check_row
from app.services.backend_client import BackendClient
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.catalog import TrackerEntry
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.trackers import TrackerList

EXPLANATION = tr(
    "Send the curves of every run that you start to other tools, while it trains. "
    "A tracker that does not answer never holds up a run."
)
SETTINGS_WIDTH = 90
"""Pixels for the titles of a tracker's settings."""


class TrackersCard(Card):
    """A check box per tracker; one that is checked shows its settings. Every change is saved at once."""

    def __init__(self, client: BackendClient) -> None:
        super().__init__(tr("Trackers"))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._client = client
        self.checks: dict[str, QCheckBox] = {}
        self.forms: dict[str, SchemaForm] = {}
        self._saved: dict[str, dict[str, Any]] = {}
        self._unanswered = 0
        self.add(label(EXPLANATION, "faint", wrap=True))
        self.banner = Banner()
        self.add(self.banner)

    def show_catalog(self, entries: list[TrackerEntry]) -> None:
        """Show the trackers that there are, then ask which are set up."""
        for entry in entries:
            if entry.name in self.checks:
                continue
            check = check_row(
                self, entry.title.replace("&", "&&"), entry.description, False, partial(self._on_checked, entry.name)
            )
            form = SchemaForm(entry.settings, label_width=SETTINGS_WIDTH)
            form.leave_out(["every_run"])
            form.setContentsMargins(INDENT, 0, 0, 0)
            form.changed.connect(partial(self._on_changed, entry.name))
            form.hide()
            self.add(form)
            self.checks[entry.name], self.forms[entry.name] = check, form
        self.ask()

    def ask(self) -> None:
        """Look which trackers are set up."""
        if self.checks:
            self._client.ask("trackers", {}, self.show_trackers, self._on_mistake)

    def show_trackers(self, answer: TrackerList) -> None:
        """Show which get every run, and their settings."""
        self._saved = answer.trackers
        for name, check in self.checks.items():
            settings = answer.trackers.get(name, {})
            with QSignalBlocker(check):
                check.setChecked(bool(settings.get("every_run")))
            self.forms[name].show_values(settings)
            self.forms[name].setVisible(check.isChecked())

    def _on_checked(self, name: str, checked: bool) -> None:
        self._save(name, {**self._saved.get(name, {}), "every_run": checked})

    def _on_changed(self, name: str, key: str, value: object) -> None:
        self._save(name, {**self._saved.get(name, {}), key: value})

    def _save(self, name: str, settings: dict[str, Any]) -> None:
        before, self._saved = self._saved, {**self._saved, name: settings}  # the next change may precede the answer
        self._unanswered += 1
        self._client.ask(
            "save_tracker",
            {"name": name, "settings": settings},
            self._on_saved,
            partial(self._on_refused, name, before),
        )

    def _on_saved(self, answer: TrackerList) -> None:
        self._unanswered -= 1
        if not self._unanswered:
            self.banner.clear()
            self.show_trackers(answer)

    def _on_refused(self, name: str, before: dict[str, dict[str, Any]], mistake: ErrorReply) -> None:
        self._unanswered -= 1
        self._saved = {**self._saved, name: before.get(name, {})}
        if not (mistake.field and self.forms[name].mark(mistake.field, mistake.message)):
            self._on_mistake(mistake)
        with QSignalBlocker(self.checks[name]):
            self.checks[name].setChecked(bool(self._saved.get(name, {}).get("every_run")))

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.banner.show_message("error", formatting.sentence(mistake.message, mistake.field))
