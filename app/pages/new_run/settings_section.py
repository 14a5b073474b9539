"""The Settings section: the most important settings first, all others in collapsible groups made from JSON Schemas."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from app import theme
from app.core import formatting, json_schema
from app.core.draft.draft import Draft
from app.core.draft.draft_settings import Difference
from app.core.i18n import tr
from app.pages.new_run.section import Panel, Section
from app.widgets.boxes import keep_room
from app.widgets.card import FormGrid, label, rule
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.catalog import AdapterEntry, Catalog, OptimizerEntry, TaskEntry
from backend.contract.rpc.plan import AutoSetting

MATTERS = {"training": ["epochs", "batch_size", "learning_rate", "seed", "seeds"], "task": ["max_length"]}
ELSEWHERE = {
    "task": {"type"},
    "evaluation": {"best_metric"},
    "model": {"name_or_path", "trust_remote_code"},
    "training": {"optimizer_options"},
    "data": {"source", "train", "validation", "test", "columns"},
}
"""Fields that belong to other sections, or to the form of a chosen value."""
GROUPS = {
    "task": tr("Task"),
    "data": tr("Data"),
    "training": tr("Training"),
    "evaluation": tr("Evaluation"),
    "model": tr("Model"),
}
NO_ADAPTER = tr("Full fine-tuning")


class SettingsSection(Section):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    reset_requested = Signal(list)
    """The settings to reset to their defaults, by key."""
    changes_requested = Signal()
    """Somebody wants to see all that is not its default."""
    form_made = Signal(object)

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Settings"), panel, parent)
        self._task: tuple[str, int] = ("", 0)
        self._schemas: dict[str, dict[str, Any]] = {}
        self._draft = Draft()
        self._matters: dict[str, list[str]] = {}
        self._optimizers: dict[str, OptimizerEntry] = {}
        self._adapters: dict[str, AdapterEntry] = {}
        self.forms: dict[str, SchemaForm] = {}
        self.groups: dict[str, SettingsGroup] = {}
        self.changes = QPushButton()
        theme.role(self.changes, "small")
        self.changes.setToolTip(tr("Show all settings that differ from their defaults"))
        self.changes.clicked.connect(self.changes_requested)
        panel.corner.addWidget(self.changes)
        self._few = QVBoxLayout()
        self._few.setSpacing(0)
        self.body.addLayout(self._few)
        self._build_choices()
        self._all = label(tr("ALL OTHER SETTINGS"), "heading")
        self._all.setContentsMargins(0, 10, 0, 0)
        self.body.addWidget(self._all)
        self._rest = QVBoxLayout()
        self._rest.setSpacing(4)
        self.body.addLayout(self._rest)
        self.show_changes([])

    def _build_choices(self) -> None:
        self.best, self.adapter = QuietComboBox(), QuietComboBox()
        self.best.activated.connect(
            lambda number: self.changed.emit("evaluation.best_metric", self.best.itemData(number))
        )
        self.adapter.activated.connect(self._on_adapter)
        self._choices = QWidget()
        rows = FormGrid()
        self._choices.setLayout(rows)
        rows.setColumnMinimumWidth(0, 150)
        rows.setContentsMargins(0, 0, 62, 0)
        self.captions: dict[str, QLabel] = {
            "evaluation.best_metric": rows.add(tr("Best checkpoint by"), self.best),
            "adapter.type": rows.add(tr("Adapter"), self.adapter),
        }
        self.best.setToolTip(
            tr(
                "Keep the checkpoint with the best value of this metric and use it for predictions\n"
                "In a spec: evaluation.best_metric"
            )
        )
        self.adapter.setToolTip(
            tr(
                "Train a small set of added weights instead of the whole model, which needs less memory\n"
                "In a spec: adapter"
            )
        )
        self.adapter_form = OptionsForm("adapter")
        self.optimizer_form = OptionsForm("training.optimizer_options", self)
        for form in (self.adapter_form, self.optimizer_form):
            form.changed.connect(self.changed)
            form.mistakes_changed.connect(self.mistakes_changed)
            form.form_made.connect(self.form_made)
        self.body.addWidget(self._choices)
        self.body.addWidget(self.adapter_form)

    # What can be set

    def set_task(self, task: TaskEntry, catalog: Catalog) -> None:
        """Show another task's settings and metrics; for the same task everything stays, including open groups."""
        if self._task == (task.name, id(catalog)):
            return
        is_new = self._task[1] != id(catalog)
        self._task = (task.name, id(catalog))
        self._schemas |= {name: json_schema.section(catalog.spec, name) for name in GROUPS if name != "task" and is_new}
        self._schemas["task"] = json_schema.resolve(task.settings)
        self._optimizers = {one.name: one for one in catalog.optimizers}
        self._adapters = {one.name: one for one in catalog.adapters}
        # Settings that decide which columns are needed must not be hidden.
        decides = dict.fromkeys(name for part in task.columns for name in part.when)
        self._matters = {**MATTERS, "task": [*decides, *(name for name in MATTERS["task"] if name not in decides)]}
        # All tasks have the other sections in common: they stay as they are, folds and all.
        for name in GROUPS if is_new else ("task",):
            self._build_few(name)
            self._build_group(name)
        for section, part in (*self.forms.items(), *self.groups.items()):
            part.set_usual(task.defaults.get(section) or {})
        self._offer_choices(task, catalog)

    def show_chosen(self, settings: Sequence[AutoSetting]) -> None:
        """Show the numbers chosen for fields that are set to `auto`; those of all others are unknown."""
        for part in (*self.forms.values(), *self.groups.values()):
            part.show_chosen(settings)

    def _build_few(self, name: str) -> None:
        before = self.forms.pop(name, None)
        if before is not None:
            _remove(self._few, before)
        if name not in self._matters:
            return
        form = self.forms[name] = SchemaForm(json_schema.only(self._schemas[name], self._matters[name]), prefix=name)
        form.changed.connect(self._on_changed)
        form.mistakes_changed.connect(self.mistakes_changed)
        self.form_made.emit(form)
        self._few.insertWidget(0 if name == "training" else self._few.count(), form)

    def _build_group(self, name: str) -> None:
        before = self.groups.pop(name, None)
        if before is not None:
            if name == "training":
                self.optimizer_form.setParent(self)
            _remove(self._rest, before)
        left = set(self._matters.get(name, [])) | ELSEWHERE.get(name, set())
        fields = [field for field in self._schemas[name].get("properties", {}) if field not in left]
        if not fields:
            return
        extra = self.optimizer_form if name == "training" else None
        group = SettingsGroup(name, GROUPS[name], json_schema.only(self._schemas[name], fields), extra)
        self.groups[name] = group
        group.changed.connect(self._on_changed)
        group.mistakes_changed.connect(self.mistakes_changed)
        group.reset_requested.connect(self.reset_requested)
        group.opened.connect(self._show_choices)
        group.form_made.connect(self.form_made)
        self._rest.insertWidget(0 if name == "task" else self._rest.count(), group)
        group.set_open(before is not None and before.is_open())

    def _offer_choices(self, task: TaskEntry, catalog: Catalog) -> None:
        self.best.clear()
        self.best.addItem(tr("None (last weights)"), None)
        undeclared = {one.name for one in catalog.metrics if one.greater_is_better is None and task.name in one.tasks}
        for metric in task.metrics:
            if metric not in undeclared:
                self.best.addItem(formatting.metric_title(metric), metric)
        self.adapter.clear()
        self.adapter.addItem(NO_ADAPTER, None)
        for entry in catalog.adapters:
            self.adapter.addItem(entry.title, entry.name)
            self.adapter.setItemData(self.adapter.count() - 1, entry.description, 3)

    def set_unfolded(self, unfolded: bool) -> None:
        """Open or close all groups; their forms are created on first use."""
        for group in self.groups.values():
            group.set_open(unfolded)

    @property
    def others(self) -> dict[str, SchemaForm]:
        """The forms of groups that have been opened."""
        return {name: group.form for name, group in self.groups.items() if group.form is not None}

    def _on_changed(self, key: str, value: Any) -> None:
        self.changed.emit(key, value)
        if key == "training.optimizer":
            self._show_choices()

    def _on_adapter(self, number: int) -> None:
        name = self.adapter.itemData(number)
        self.changed.emit("adapter", {"type": name} if name else None)
        self._show_choices()

    # What is set

    def _show_choices(self) -> None:
        """The settings of the chosen optimizer and adapter."""
        optimizer = self._draft.get("training.optimizer", "adamw")
        entry = self._optimizers.get(optimizer)
        options = self._draft.get("training.optimizer_options") or {}
        training = self.groups.get("training")
        is_open = training is not None and training.is_open()
        self.optimizer_form.show_choice(optimizer, entry.settings if entry and is_open else None, options)
        adapter = self._draft.get("adapter") or {}
        name = str(adapter.get("type") or "")
        if name and self.adapter.findData(name) < 0:
            self.adapter.addItem(tr("{name} (unknown)", name=name), name)
        self.adapter.setCurrentIndex(max(0, self.adapter.findData(name)) if name else 0)
        chosen = self._adapters.get(name)
        self.adapter_form.show_choice(name, chosen.settings if chosen else None, adapter)

    def show_draft(self, draft: Draft) -> None:
        """Show the draft's values."""
        self._draft = draft
        for name, form in self.forms.items():
            form.show_values(draft.get(name) or {})
        for name, group in self.groups.items():
            group.show_values(draft.get(name) or {})
        metric = draft.get("evaluation.best_metric")
        if metric is not None and self.best.findData(metric) < 0:
            self.best.addItem(str(metric), metric)
        self.best.setCurrentIndex(max(0, self.best.findData(metric)))
        self._show_choices()

    def show_changes(self, changes: Collection[Difference]) -> None:
        """Show how many settings have non-default values, here and in each group."""
        self.changes.setText(tr("{number} changed", number=len(changes)))
        self.changes.setVisible(bool(changes))
        keys = [change.setting.key for change in changes]
        for group in self.groups.values():
            group.show_changed(keys)

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Show only the settings with these keys, even in closed groups; None shows all again."""
        for form in self.forms.values():
            form.show_matches(keys or (), alone=keys is not None)
        for group in self.groups.values():
            group.show_matches(keys)
        for options in (self.adapter_form, self.optimizer_form):  # a group that was opened shows its options again
            options.show_matches(keys)
        self._all.setVisible(keys is None)
        self._choices.setVisible(keys is None or any(key in keys for key in self.captions))

    def adapter_name(self) -> str:
        """The chosen adapter; empty with full fine-tuning."""
        return self.adapter.currentText() if self.adapter.currentIndex() > 0 else ""

    def open_group(self, key: str) -> None:
        """Open the group that contains a setting."""
        for group in self.groups.values():
            if group.has(key):
                group.set_open(True)

    # Mistakes

    def mark(self, field: str, sentence: str) -> bool:
        """Show an error at its field; returns whether there is such a field."""
        section = field.split(".")[0]
        if section == "adapter":
            return any(form.mark(field, sentence, unfold=False) for form in self.adapter_form.forms())
        if section in self.forms and self.forms[section].mark(field, sentence, unfold=False):
            return True
        group = self.groups.get(section)
        if group is None:
            return False
        is_option = field.startswith("training.optimizer_options")
        if not is_option and ".".join(field.split(".")[:2]) not in group.keys:
            return False
        group.build()
        forms = self.optimizer_form.forms() if is_option else [group.form] if group.form else []
        return any(form.mark(field, sentence, unfold=False) for form in forms)

    def clear_marks(self) -> None:
        """Clear the errors reported from outside."""
        for form in self.forms_shown():
            form.clear_marks()

    def mistakes(self) -> dict[str, str]:
        """Title → error message of all marked fields."""
        return {title: said for form in self.forms_shown() for title, said in form.mistake_sentences().items()}

    def forms_shown(self) -> list[SchemaForm]:
        """All existing forms, top to bottom."""
        options = [*self.adapter_form.forms(), *self.optimizer_form.forms()]
        return [*self.forms.values(), *self.others.values(), *options]


def _remove(layout: QVBoxLayout, widget: QWidget) -> None:
    layout.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


class OptionsForm(QWidget):
    """`prefix` is the location of the settings in the spec, for example `adapter`."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    form_made = Signal(object)

    def __init__(self, prefix: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.prefix, self._chosen = prefix, ""
        self.form: SchemaForm | None = None
        self._title = label("", "faint", wrap=True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self._title)
        self.hide()

    def show_choice(self, name: str, settings: Mapping[str, Any] | None, values: Mapping[str, Any]) -> None:
        """Show the settings of the choice, with the draft's values."""
        wanted = name if settings else ""
        if wanted != self._chosen:
            self._chosen = wanted
            self._build(json_schema.without(json_schema.resolve(dict(settings or {})), {"type"}))
        if self.form is not None:
            self.form.show_values(values)
        self.setVisible(self.form is not None)

    def _build(self, settings: dict[str, Any]) -> None:
        before, self.form = self.form, None
        if before is not None:
            before.hide()
            self._column.removeWidget(before)
            before.deleteLater()
            if before.mistakes():
                self.mistakes_changed.emit()  # they are gone with it
        if not settings.get("properties"):
            return
        self._title.setText(str(settings.get("description") or ""))
        self.form = SchemaForm(settings, prefix=self.prefix)
        self.form.changed.connect(self.changed)
        self.form.mistakes_changed.connect(self.mistakes_changed)
        self.form_made.emit(self.form)
        self._column.addWidget(self.form)

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Show only the settings with these keys, nothing if there are none; None shows all again."""
        if self.form is None:
            return
        self.form.show_matches(keys or (), alone=keys is not None)
        self.setVisible(keys is None or not set(keys).isdisjoint(self.form.keys()))

    def forms(self) -> list[SchemaForm]:
        """The form, if there is one."""
        return [] if self.form is None else [self.form]


class SettingsGroup(QWidget):
    """The form is created when first opened; `extra` is below it."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    opened = Signal()
    form_made = Signal(object)
    reset_requested = Signal(list)
    """The settings to reset to their defaults, by key."""

    def __init__(
        self, name: str, title: str, schema: Mapping[str, Any], extra: OptionsForm | None = None,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        theme.follow(self)
        self.name, self._schema, self._extra = name, schema, extra
        self.keys = {f"{name}.{field}" for field in schema.get("properties", {})}
        self.form: SchemaForm | None = None
        self._values: Mapping[str, Any] = {}
        self._usual: Mapping[str, Any] = {}
        self._changed_keys: list[str] = []
        self._chosen: Sequence[AutoSetting] = ()
        self.fold = QToolButton()
        self.fold.setText(title)
        self.fold.setCheckable(True)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme.role(self.fold, "fold")
        self.fold.toggled.connect(self.set_open)
        self.count = label("", "faint")
        self.reset = QPushButton(tr("Reset"))
        theme.role(self.reset, "small")
        self.reset.setAccessibleName(tr("Reset {title} settings", title=title))
        self.reset.clicked.connect(lambda: self.reset_requested.emit(self._changed_keys))
        keep_room(self.reset)
        self._place()
        self.apply_theme()
        self.show_changed([])

    def _place(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.fold)
        head.addStretch(1)
        head.addWidget(self.count)
        head.addWidget(self.reset)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addWidget(rule())
        self._column.addLayout(head)
        if self._extra is not None:
            self._column.addWidget(self._extra)

    def has(self, key: str) -> bool:
        """Whether a setting is here, or in the part below."""
        return key in self.keys or (self._extra is not None and key.startswith(f"{self._extra.prefix}."))

    def is_open(self) -> bool:
        """Whether the fields are shown."""
        return self.fold.isChecked()

    def set_open(self, wanted: bool) -> None:
        """Show or hide the fields."""
        self.fold.setChecked(wanted)
        if wanted:
            self.build()
        if self.form is not None:
            self.form.setVisible(wanted)
        self.apply_theme()
        self.opened.emit()

    def show_chosen(self, settings: Sequence[AutoSetting]) -> None:
        """Show what `auto` means now, also once the form is made."""
        self._chosen = settings
        if self.form is not None:
            self.form.show_chosen(settings)

    def build(self) -> None:
        """Make the form, which stays hidden while the group is closed."""
        if self.form is not None:
            return
        self.form = SchemaForm(self._schema, prefix=self.name)
        self.form.setVisible(self.is_open())
        self.form.set_usual(self._usual)
        self.form.show_values(self._values)
        self.form.show_chosen(self._chosen)
        self.form.changed.connect(self.changed)
        self.form.mistakes_changed.connect(self.mistakes_changed)
        self.form_made.emit(self.form)
        self._column.insertWidget(2, self.form)

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show these values, now or when opened."""
        self._values = values
        if self.form is not None:
            self.form.show_values(values)

    def set_usual(self, values: Mapping[str, Any]) -> None:
        """Defaults that override those of the schema."""
        self._usual = values
        if self.form is not None:
            self.form.set_usual(values)

    def show_changed(self, keys: Collection[str]) -> None:
        """Mark these as changed; those of other groups are ignored."""
        self._changed_keys = [key for key in keys if key in self.keys]
        number = len(self._changed_keys)
        self.count.setText(tr("{number} changed", number=number) if number else "")
        self.reset.setVisible(bool(number))

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Open with only the fields of these keys; None shows the whole group again."""
        if keys is None:
            self.show()
            if self.form is not None:
                self.form.show_matches((), alone=False)
            return
        own = {key for key in keys if self.has(key)}
        if own:
            self.set_open(True)
        if self.form is not None:
            self.form.show_matches(own, alone=True)
        self.setVisible(bool(own))

    def apply_theme(self) -> None:
        """Redraw the arrow in the current colour."""
        name = "chevron-down" if self.is_open() else "chevron-right"
        self.fold.setIcon(theme.icon(name, "muted", 14))
