"""The Search section: which settings are tried over which values, by what trials are compared, and how many there are."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core import formatting, json_schema
from app.core.draft import search_space
from app.core.draft.draft import SEARCH, Draft, Values
from app.core.draft.draft_settings import Setting, title_of
from app.core.draft.search_space import can_be_searched, section_of, space_of, values_in_words
from app.core.i18n import tr
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.section import Panel, Section
from app.pages.new_run.settings_section import GROUPS
from app.pages.new_run.values_dialog import ValuesDialog
from app.widgets.card import label
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton, IconToolButton
from backend.contract.catalog import Catalog, TaskEntry

MAIN = ("metric", "trials", "sampler")
MORE = ("parallel", "seed", "keep")
"""Folded."""
PARTS = {
    "halving": (
        tr("Stop poor trials early"),
        tr("Successive halving: trials are compared at rungs, and only the best continue. The others stay paused with a checkpoint."),
    ),
    "confirm": (
        tr("Confirm the best with new seeds"),
        tr("The best of many numbers is partly luck. Training the best trials again with new seeds shows how much."),
    ),
}  # fmt: skip
"""Key → title and hint of a part that can be left out."""
INTRO = tr(
    "Try several values of some settings in one go. Each trial is a run of its own; the best one is found for you."
)


class SearchSection(Section):
    """Emits `changed` with the dotted key of the spec; what is searched is changed by the controller, as one step."""

    changed = Signal(str, object)
    mistakes_changed = Signal()

    def __init__(self, controller: DraftController, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Search"), panel, parent)
        self._controller, self._draft = controller, controller.draft
        self._task: tuple[str, int] = ("", 0)
        self._default_metric: str | None = None
        self.captions: dict[str, QLabel] = {}
        self.rows: dict[str, SearchedSetting] = {}
        self.forms: dict[str, SchemaForm] = {}
        self.dialog: ValuesDialog | None = None
        self.add(label(INTRO, "muted", wrap=True))
        self._list = QVBoxLayout()
        self._list.setSpacing(4)
        self.body.addLayout(self._list)
        self.add_button = IconButton(tr("Add a setting"), "plus")
        self.menu = QMenu(self.add_button)
        self.menu.aboutToShow.connect(self._fill_menu)
        self.add_button.setMenu(self.menu)
        self.body.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        self._options = QWidget()
        self._column = QVBoxLayout(self._options)
        self._column.setContentsMargins(0, 8, 0, 0)
        self._column.setSpacing(8)
        self.boxes = {name: QCheckBox(title) for name, (title, _) in PARTS.items()}
        for name, box in self.boxes.items():
            box.setToolTip(PARTS[name][1])
            box.toggled.connect(lambda wanted, name=name: self._on_part(name, wanted))
        self.add(self._options)
        self._options.hide()

    # What can be set

    def set_task(self, task: TaskEntry, catalog: Catalog) -> None:
        """Offer another task's metrics."""
        if self._task == (task.name, id(catalog)):
            return
        self._task = (task.name, id(catalog))
        undeclared = {one.name for one in catalog.metrics if one.greater_is_better is None}
        metrics = [name for name in task.metrics if name not in undeclared]
        self._default_metric = task.default_metric if task.default_metric in metrics else next(iter(metrics), None)
        schema = json_schema.resolve(catalog.search)
        fields = schema.get("properties", {})
        metric = {key: value for key, value in fields["metric"].items() if key != "anyOf"}
        metric |= {
            "enum": [None, *metrics],
            "choices": {name: {"title": formatting.metric_title(name)} for name in metrics},
        }
        sampler = {
            **fields["sampler"],
            "choices": {name: {"title": title} for name, title in search_space.SAMPLERS.items()},
        }
        fields = {**fields, "sampler": sampler}
        main = {"metric": metric, **{name: fields[name] for name in (*MAIN[1:], *MORE) if name in fields}}
        self._make_form(SEARCH, {**schema, "properties": main})
        for name in PARTS:
            self._make_form(f"{SEARCH}.{name}", next(one for one in fields[name]["anyOf"] if "properties" in one))
        self.show_draft(self._draft)

    def _make_form(self, prefix: str, schema: Mapping[str, Any]) -> None:
        before = self.forms.pop(prefix, None)
        if before is not None:
            self._column.removeWidget(before)
            before.hide()
            before.deleteLater()
        form = self.forms[prefix] = SchemaForm(schema, prefix=prefix)
        form.changed.connect(self.changed)
        form.mistakes_changed.connect(self.mistakes_changed)
        box = self.boxes.get(prefix.rpartition(".")[2])
        if box is not None and self._column.indexOf(box) < 0:
            self._column.addWidget(box)
        self._column.insertWidget(0 if box is None else self._column.indexOf(box) + 1, form)

    def _settings(self) -> dict[str, Setting]:
        """What can be searched and is not yet, by key."""
        searched = space_of(self._draft)
        found = self._controller.settings()
        return {key: one for key, one in found.items() if can_be_searched(one) and key not in searched}

    def _fill_menu(self) -> None:
        self.menu.clear()
        settings = self._settings()
        for key in search_space.FIRST:
            if key in settings:
                self.menu.addAction(settings[key].title, lambda key=key: self.search(key))
        self.menu.addSeparator()
        for name in search_space.SECTIONS:
            own = [one for one in settings.values() if one.section == name]
            if own:
                menu = self.menu.addMenu(GROUPS.get(name, tr("Adapter")))
                for one in own:
                    menu.addAction(one.title, lambda key=one.key: self.search(key))

    # What is searched

    def search(self, key: str) -> None:
        """Let the user say which values of a setting are tried."""
        setting = self._controller.settings().get(key) or Setting(key, title_of({}, key), "")
        values = space_of(self._draft).get(key)
        if values is None:
            values = search_space.suggest(self._draft.get(key), self._chosen.get(key, setting.default))
        if self.dialog is not None:
            self.dialog.reject()
        dialog = self.dialog = ValuesDialog(setting, values, self)
        dialog.chosen.connect(lambda found: self._set(key, found))
        dialog.finished.connect(self._on_dialog_finished)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_dialog_finished(self) -> None:
        self.dialog = None

    _chosen: Mapping[str, Any] = {}
    """What `auto` means now, by key."""

    def show_chosen(self, chosen: Mapping[str, Any]) -> None:
        """Suggest values around these where a setting is left to Burnish."""
        self._chosen = chosen

    def remove(self, key: str) -> None:
        """No longer search a setting; without any, the draft is a single run."""
        self._set(key, None)

    def _set(self, key: str, values: Any) -> None:
        title, space = title_of(self._controller.settings(), key), dict(space_of(self._draft))
        space.pop(key, None) if values is None else space.update({key: values})
        section = section_of(self._draft) or search_space.new_section({}, self._metric())
        words = tr("Search {title}: {values}", title=title, values=values_in_words(values)) if values is not None else tr("No longer search {title}", title=title)  # fmt: skip
        self._controller.apply({SEARCH: {**section, "space": space} if space else None}, words)

    def _metric(self) -> str | None:
        return None if self._draft.get("evaluation.best_metric") else self._default_metric

    def _on_part(self, name: str, wanted: bool) -> None:
        section = section_of(self._draft)
        if wanted == bool(section.get(name)) or not section:
            return
        usual = search_space.new_section({}, None).get(name) or self.forms[f"{SEARCH}.{name}"].values()
        words = tr("{title}: on", title=PARTS[name][0]) if wanted else tr("{title}: off", title=PARTS[name][0])
        self._controller.apply({SEARCH: {**section, name: usual if wanted else None}}, words)

    def show_draft(self, draft: Draft) -> None:
        """Show the draft's search."""
        self._draft = draft
        section, space = section_of(draft), space_of(draft)
        self._show_rows(space)
        self._options.setVisible(bool(space))
        for name, box in self.boxes.items():
            part = section.get(name)
            box.blockSignals(True)
            box.setChecked(bool(part))
            box.blockSignals(False)
            form = self.forms.get(f"{SEARCH}.{name}")
            if form is not None:
                form.show_values(part if isinstance(part, dict) else {})
                form.setVisible(bool(part))
        if SEARCH in self.forms:
            self.forms[SEARCH].show_values(section)

    def _show_rows(self, space: Values) -> None:
        for key in [key for key in self.rows if key not in space]:
            row = self.rows.pop(key)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        settings = self._controller.settings()
        for key, values in space.items():
            if key not in self.rows:
                row = self.rows[key] = SearchedSetting(title_of(settings, key))
                row.edit.clicked.connect(lambda _=False, key=key: self.search(key))
                row.remove.clicked.connect(lambda _=False, key=key: self.remove(key))
                self._list.addWidget(row)
            self.rows[key].show_values(values_in_words(values))

    # Mistakes

    def mark(self, field: str, sentence: str) -> bool:
        """Show an error at its field; returns whether there is such a field."""
        if not field.startswith(f"{SEARCH}."):
            return False
        key = field.removeprefix(f"{SEARCH}.space.")
        if key in self.rows:
            self.rows[key].mark(sentence)
            return True
        prefix = field.rpartition(".")[0]
        form = self.forms.get(prefix)
        return form is not None and form.mark(field, sentence, unfold=False)

    def clear_marks(self) -> None:
        """Clear the errors reported from outside."""
        for row in self.rows.values():
            row.mark("")
        for form in self.forms_shown():
            form.clear_marks()

    def mistakes(self) -> dict[str, str]:
        """Title → error message of all marked fields."""
        return {title: said for form in self.forms_shown() for title, said in form.mistake_sentences().items()}

    def forms_shown(self) -> list[SchemaForm]:
        """The forms that apply to the draft."""
        return [form for form in self.forms.values() if not form.isHidden()] if space_of(self._draft) else []


class SearchedSetting(QWidget):
    """One setting of the space: its title, the values that are tried, a way to change them, and what is wrong with them."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title, self._words = title, ""
        self._name = label(title, "strong", wrap=True)
        self._name.setFixedWidth(theme.pixels(132))
        self.edit = QPushButton()
        theme.role(self.edit, "link")
        self.remove = IconToolButton("close", tr("No longer search {title}", title=title), "faint", 14)
        self._mistake = label("", "mistake", wrap=True)
        self._mistake.hide()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._name, 0, 0)
        self.edit.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        grid.addWidget(self.edit, 0, 1)
        grid.addWidget(self.remove, 0, 2)
        grid.addWidget(self._mistake, 1, 0, 1, 3)

    def show_values(self, words: str) -> None:
        """Show which values are tried."""
        self._words = words
        self.edit.setAccessibleName(f"{self._title}: {words}")
        self._elide()

    def _elide(self) -> None:
        """Long values lose their end, and the tooltip has them whole."""
        room = self.width() - self._name.width() - self.remove.sizeHint().width() - 3 * theme.pixels(10)
        shown = self.edit.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, max(60, room))
        self.edit.setText(shown)
        self.edit.setToolTip(tr("Change the values that are tried") if shown == self._words else self._words)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room."""
        super().resizeEvent(event)
        self._elide()

    def mark(self, sentence: str) -> None:
        """Show what is wrong with them; empty clears it."""
        self._mistake.setText(sentence)
        self._mistake.setVisible(bool(sentence))
