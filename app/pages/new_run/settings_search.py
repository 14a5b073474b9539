"""Searches for a setting in all sections: matches are revealed and highlighted, and Enter goes to the next."""

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QLabel

from app.core.draft.draft_settings import Setting, find_settings
from app.core.i18n import tr
from app.pages.new_run.header import SearchBar
from app.pages.new_run.sections import Sections
from app.widgets.forms.field_row import FieldRow
from app.widgets.forms.schema_form import SchemaForm

Settings = Callable[[], Mapping[str, Setting]]
PATIENCE_MS = 120
"""The search waits until the user stops typing."""


class SettingsSearch(QObject):
    """`bar` is the search bar, `settings` are all settings of the current draft."""

    def __init__(self, bar: SearchBar, sections: Sections, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._bar, self._sections, self._settings = bar, sections, settings
        self.places: list[tuple[str, QLabel]] = []
        """Key and title of each match, from the top of the page down."""
        self._at = 0
        self._unused = ""
        """What was looked for and has no effect now; empty where something was found, or nothing is called so."""
        self._soon = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._soon.timeout.connect(self.seek)
        bar.sought.connect(self._on_typed)
        bar.stepped.connect(self.step)
        bar.left.connect(self._on_left)

    def _on_typed(self, text: str) -> None:
        if text.strip():
            self._soon.start()
        else:
            self.seek()

    def seek(self) -> None:
        """Search for the typed text, at once."""
        self._soon.stop()
        self._mark_all("")
        keys = find_settings(self._settings(), self._bar.search.text())
        self._sections.show_matches(keys or None)
        self.places = self._found_places(keys)
        if keys and not self.places:
            self._sections.show_matches(None)
        self._unused = keys[0] if keys and not self.places else ""
        self._at = self._place_of(keys)
        self._mark_all("match")
        self._show()

    def _place_of(self, keys: list[str]) -> int:
        """The position of the best match: that of the first key with one."""
        places = {key: number for number, (key, _) in enumerate(self.places)}
        return next((places[key] for key in keys if key in places), 0)

    def step(self, by: int) -> None:
        """Go to the next or previous match."""
        if self._soon.isActive():
            self.seek()
        elif self.places:
            _mark(self.places[self._at][1], "match")
            self._at = (self._at + by) % len(self.places)
            self._show()

    def present(self) -> str:
        """The key of the current match; empty if there is none."""
        return self.places[self._at][0] if self.places else ""

    def show(self, key: str) -> None:
        """Bring one setting into view for editing, even in a closed group."""
        self._sections.open_group(key)
        row = self._row(key)
        title = self._title(key)
        if title is not None:
            self._bring_into_view(title)
        if row is not None:
            row.editor.target.setFocus()

    def _bring_into_view(self, title: QLabel) -> None:
        self._sections.open(self._sections.holder_of(title))
        # What was just opened has its place only after it was laid out.
        QTimer.singleShot(0, title, lambda: self._sections.scroll_to(title))

    def _show(self) -> None:
        self._bar.show_count(self._at + 1 if self.places else 0, len(self.places), self._unused_words())
        if self.places:
            title = self.places[self._at][1]
            _mark(title, "found")
            self._bring_into_view(title)

    def _unused_words(self) -> str:
        settings = self._settings()
        if self._unused not in settings:
            return ""
        setting = settings[self._unused]
        deciding = next(iter(setting.extras.get("when") or ()), "")
        other = settings.get(f"{setting.section}.{deciding}")
        return (
            tr("“{title}” has no effect with the current “{other}”.", title=setting.title, other=other.title)
            if other is not None
            else ""
        )

    def _on_left(self) -> None:
        if key := self.present():
            QTimer.singleShot(0, self, lambda: self.show(key))

    def _mark_all(self, mark: str) -> None:
        for _, title in self.places:
            _mark(title, mark)

    # Where a setting is

    def _row(self, key: str) -> FieldRow | None:
        rows = (form.row_of(key) for form in self._sections.findChildren(SchemaForm))
        return next((row for row in rows if row is not None and row.is_used), None)

    def _title(self, key: str) -> QLabel | None:
        row = self._row(key)
        return row.title if row is not None else self._sections.caption_of(key)

    def _found_places(self, keys: list[str]) -> list[tuple[str, QLabel]]:
        titles: dict[QLabel, str] = {}
        for key in keys:
            title = self._title(key)
            if title is not None:
                titles.setdefault(title, key)
        self._sections.lay_out()
        return sorted(((key, title) for title, key in titles.items()), key=lambda one: self._sections.place_of(one[1]))


def _mark(title: QLabel, mark: str) -> None:
    if title.property("sought") != mark:
        title.setProperty("sought", mark)
        title.style().unpolish(title)
        title.style().polish(title)
