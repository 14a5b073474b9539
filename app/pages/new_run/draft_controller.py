"""Edits the draft of a run: every edit can be undone, and specs are opened and saved."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core import formatting, json_schema, setting_titles
from app.core.backend_messages import translate_message
from app.core.draft import data_source
from app.core.draft.data_source import change_source, data_name, forget_reading
from app.core.draft.draft import Draft, DraftState, Values, flat
from app.core.draft.draft_file import PATTERNS, open_draft, save_draft
from app.core.draft.draft_history import History, Step
from app.core.draft.draft_settings import (
    Difference,
    Setting,
    change_words,
    changed_settings,
    differences,
    every_setting,
    is_same,
    settings_of,
    title_of,
)
from app.core.draft.kept_draft import keep_draft, read_kept
from app.core.draft.presets import AppliedPreset, PresetOverlay
from app.core.draft.run_copies import copy_of
from app.core.i18n import tr
from app.core.runs.run_library import RunSummary
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.catalog import Catalog, Preset, SourceEntry, TaskEntry
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.rpc.plan import AutoSetting

NEW = {"version": 1, "name": "run", "data": {"source": "files", "validation": 0.1}}
CALM_MS = 400
"""Time without a change before the draft is saved: someone who is typing is not done."""
OTHER_ROWS = ("data.columns", "data.validation", "data.test", "data.max_rows")
"""Beginnings of the keys whose change leaves the training data's columns as they are."""

Moment = tuple[DraftState, AppliedPreset | None, Preset | None]
"""What a step of the history brings back: the draft, and the preset that lies over it."""


class DraftController(QObject):
    """`draft` is the only source of truth: cards show it and report the user's changes, which are made on `page`."""

    changed = Signal(str)
    """The key of a single value that is another now."""
    changed_from = Signal(object)
    """Several values are others now, as after undo; all values before."""
    replaced = Signal()
    """The draft is another as a whole."""
    loaded = Signal()
    """It is another spec, after `replaced`."""
    started_over = Signal()
    """It is empty, after `loaded`."""
    history_changed = Signal()
    """Other steps can be undone or redone."""
    message = Signal(str, str)

    def __init__(self, page: QWidget, kept: Path) -> None:
        """`kept` is the file that keeps the draft."""
        super().__init__(page)
        self._page = page
        self.catalog: Catalog | None = None
        """What there is to choose from, once the backend has said."""
        self.draft = Draft(NEW)
        self.fitted: list[AutoSetting] = []
        """Lengths that were fitted to the model."""
        self.overlay = PresetOverlay(self.draft)
        self.history = History(self.moment())
        self._depth = 0
        self._index: tuple[tuple[Any, ...], dict[str, Setting]] = ((), {})
        self._folder = ""
        self._kept, self._kept_state = kept, self.draft.state()
        self._calm = QTimer(self, singleShot=True, interval=CALM_MS)
        self._calm.timeout.connect(self.keep)

    # What there is to choose from, and what was chosen

    def set_catalog(self, catalog: Catalog) -> None:
        """Set the catalog of choices."""
        self.catalog = catalog
        spec = catalog.spec
        setting_titles.learn_titles(every_setting(catalog))
        self.draft.defaults = {
            name: json_schema.defaults(json_schema.section(spec, name)) for name in spec.get("properties", {})
        }
        if self.task() is None and catalog.tasks:
            self._use_first_task(self.draft)
            self._bring_back()
            self.forget_history()

    def _use_first_task(self, draft: Draft) -> None:
        tasks = self.catalog.tasks if self.catalog else []
        labels = (task for task in tasks if task.head == Head.SEQUENCE_CLASSIFICATION)
        first = next(labels, next(iter(tasks), None))  # most people start with labels
        if first is not None:
            draft.use_task(first.name, first.defaults)

    def _bring_back(self) -> None:
        """Continue with the draft that was kept, if its task is still there."""
        kept = read_kept(self._kept)
        if kept is not None and self.task_named(kept.get("task.type")) is not None:
            self.draft.replace(kept.values(), kept.file)
            self.draft.named, self.draft.task_chosen = kept.named, kept.task_chosen
        self._kept_state = self.draft.state()

    def keep(self) -> None:
        """Write the draft if it has changed, for the next window."""
        self._calm.stop()
        if self.catalog is None or self.draft.state() == self._kept_state:
            return
        try:
            keep_draft(self.draft, self._kept)
        except OSError as error:
            self.message.emit("warning", tr("Couldn't keep the draft: {strerror}.", strerror=error.strerror or error))
        self._kept_state = self.draft.state()

    def start_over(self) -> None:
        """Replace the draft by an empty one, as one step that can be undone."""
        draft = Draft(NEW)
        self._use_first_task(draft)
        self.load(draft, tr("New draft"), task_chosen=False)
        self.started_over.emit()

    def source(self) -> SourceEntry | None:
        """The catalog entry of the draft's source."""
        name = self.draft.get("data.source", "files")
        return next((source for source in self.catalog.sources if source.name == name), None) if self.catalog else None

    def task(self) -> TaskEntry | None:
        """The catalog entry of the draft's task."""
        return self.task_named(self.draft.get("task.type"))

    def task_named(self, name: str | None) -> TaskEntry | None:
        """A task of the catalog."""
        return next((task for task in self.catalog.tasks if task.name == name), None) if self.catalog else None

    def settings(self) -> dict[str, Setting]:
        """All settings that the draft has, by key."""
        if self.catalog is None:
            return {}
        deciding = ("task.type", "data.source", "hardware.engine", "training.optimizer", "adapter.type")
        wanted = (id(self.catalog), *(self.draft.get(key) for key in deciding))
        if self._index[0] != wanted:
            self._index = wanted, settings_of(self.catalog, self.draft)
            setting_titles.learn_titles(self._index[1].values())
        return self._index[1]

    def differences(self) -> list[Difference]:
        """The settings with non-default values, without lengths that were fitted to the model."""
        fitted = {one.key: one.value for one in self.fitted}
        return changed_settings(self.settings(), self.draft, {**self.task_defaults(), **fitted})

    def task_defaults(self) -> dict[str, Any]:
        """The draft's task defaults, by key; they override those of the spec."""
        entry = self.task()
        return dict(flat(entry.defaults)) if entry else {}

    # Edits of single values

    def change(self, key: str, value: Any) -> None:
        """Apply the user's change to one field."""
        if key == "task.type":  # a fix that was offered beside the data
            self.choose_task(str(value))
            return
        before, source, data = self.draft.get(key), self.source(), self._data_name()
        words = change_words(title_of(self.settings(), key), before, value)
        typed = key if isinstance(value, int | float | str | None) and not isinstance(value, bool) else ""
        with self.step(words, typed):
            if not self.draft.set(key, value):
                return
            self._choose_task_of(key)
            self._update_dependents(key, before, source)
            self._name_for_data(data)
        self.changed.emit(key)

    def _choose_task_of(self, key: str) -> None:
        """Someone who sets up a task has chosen it: the data must not take it away with its settings."""
        self.draft.task_chosen = self.draft.task_chosen or key.startswith("task.")

    def _update_dependents(self, key: str, before: Any, source: SourceEntry | None) -> None:
        """Reset settings that applied to the previous value."""
        if key == "data.train" and before:
            forget_reading(self.draft, source)
        if key == "data.source" and (after := self.source()):
            change_source(self.draft, source, after)
        if key == "training.optimizer":
            self.draft.unset("training.optimizer_options")
        if key == "model.name_or_path":
            # Consent and the commit that was agreed to belong to the model before.
            self.draft.unset("model.revision")
            self.draft.unset("model.trust_remote_code")
        if key == "hardware.engine":
            self._forget_engines()
        if key == "hardware.device":
            self.draft.unset("hardware.devices")
        if key.startswith("data.") and not key.startswith(OTHER_ROWS):
            self.draft.set("data.columns", {})
        if (entry := self.task()) and data_source.decides_parts(entry, key):
            data_source.forget_unused_columns(entry, self.draft)

    def _forget_engines(self) -> None:
        """Reset hardware settings of other engines, which the chosen engine would reject."""
        engines = {
            one.name: one.settings.get("properties", {}) for one in (self.catalog.engines if self.catalog else ())
        }
        known = engines.get(str(self.draft.get("hardware.engine", "torch")), {})
        for name in {name for settings in engines.values() for name in settings} - known.keys():
            self.draft.unset(f"hardware.{name}")
        self.draft.unset("hardware.bridge")  # of an older spec, and only PyTorch would start it
        self.draft.unset("hardware.devices")

    def _data_name(self) -> str:
        return data_name(self.draft, self.source())

    def _name_for_data(self, before: str) -> None:
        """Name the run after its data if that differs from `before`, unless the user has named it."""
        name = self._data_name()
        if not self.draft.named and name and (name != before or self.draft.get("name") == NEW["name"]):
            self.draft.set("name", name)

    def rename(self, name: str) -> None:
        """Rename the run; an empty name returns to naming it after its data."""
        with self.step(tr("Name: {name}", name=name or "run"), "name"):
            self.draft.named = bool(name)
            self.draft.set("name", name or "run")

    def reset(self, keys: Iterable[str]) -> None:
        """Reset these settings to their defaults."""
        settings = self.settings()
        known = [settings[key] for key in keys if key in settings]
        if not known:
            return
        before, defaults = self.draft.values(), self.task_defaults()
        words = (
            tr("Reset {title}", title=known[0].title)
            if len(known) == 1
            else tr("Reset {number} settings", number=len(known))
        )
        with self.step(words):
            for setting in known:
                if setting.key in defaults:
                    self.draft.set(setting.key, defaults[setting.key])
                else:
                    self.draft.reset(setting.key, setting.default)
                if setting.key == "training.optimizer":
                    self.draft.unset("training.optimizer_options")
        self.changed_from.emit(before)

    def apply(self, values: Mapping[str, Any], words: str) -> None:
        """Set several values as one step."""
        before, data = self.draft.values(), self._data_name()
        with self.step(words):
            for key, value in values.items():
                held, source = self.draft.get(key), self.source()
                if self.draft.set(key, value):
                    self._choose_task_of(key)
                    self._update_dependents(key, held, source)
            self._name_for_data(data)
        self.changed_from.emit(before)

    # Edits of the whole

    def choose_task(self, name: str, *, by_data: bool = False) -> None:
        """Switch to another task; the preset of the old one is removed.

        The data may decide it until a person has: that is part of the step that chose the data, and keeps a preset.
        """
        entry = self.task_named(name)
        if entry is None:
            return
        if name == self.draft.get("task.type"):
            self.draft.task_chosen = self.draft.task_chosen or not by_data
            self.amend()
            return
        if by_data:
            preset = self.overlay.preset
            self._switch_task(entry)
            self._lay(self.overlay, preset)
            self.amend()
            self.history_changed.emit()
        else:
            with self.step(tr("Task: {title}", title=entry.title)):
                self.draft.task_chosen = True
                self._switch_task(entry)
        self.replaced.emit()

    def _switch_task(self, entry: TaskEntry) -> None:
        self.overlay.take_off()
        if entry.name != self.draft.get("task.type"):
            self._forget_task_defaults()
            self.draft.use_task(entry.name, entry.defaults)
        data_source.forget_unused_columns(entry, self.draft)

    def put_data_back(self, moment: Moment) -> None:
        """Return to the data of an earlier moment, and to its task if the data has decided another; keep the rest."""
        state, laid, preset = moment
        present, values = self.draft.values(), state.values
        with self.step(tr("Choose data")):
            if not self.draft.task_chosen and self.draft.get("task.type") != values.get("task", {}).get("type"):
                self._put_task_back(values)
                if self.overlay.preset == preset:
                    self.overlay.laid = laid
            self.draft.set("data", deepcopy(values.get("data", {})))
            if not self.draft.named:
                self.draft.set("name", values.get("name", NEW["name"]))
        self.changed_from.emit(present)

    def _put_task_back(self, values: Values) -> None:
        """Return to the task of earlier values, with what it and the present one fill in elsewhere."""
        former = self.task_named(values.get("task", {}).get("type"))
        keys = {*self.task_defaults(), *(dict(flat(former.defaults)) if former else ())}
        earlier = dict(flat(values))
        for key in keys:
            if key in earlier:
                self.draft.set(key, deepcopy(earlier[key]))
            else:
                self.draft.unset(key)
        self.draft.set("task", deepcopy(values.get("task", {})))

    def _forget_task_defaults(self) -> None:
        """Remove values that the task filled in, unless the user changed them."""
        for key, value in self.task_defaults().items():
            if self.draft.says(key) and is_same(self.draft.get(key), value):
                self.draft.unset(key)

    def apply_preset(self, preset: Preset | None) -> None:
        """Apply a preset to the draft, replacing the previous one, or remove that one."""
        data = self._data_name()
        with self.step(tr("Preset: {title}", title=preset.title if preset else "none")):
            self._lay(self.overlay, preset)
            self._name_for_data(data)
            self.draft.task_chosen = self.draft.task_chosen or bool(preset and "type" in preset.spec.get("task", {}))
        self.replaced.emit()

    def _lay(self, overlay: PresetOverlay, preset: Preset | None) -> None:
        overlay.take_off()
        if preset is None:
            return
        entry = self.task_named(preset.spec.get("task", {}).get("type"))
        sources = {source.name: source for source in self.catalog.sources} if self.catalog else {}
        overlay.lay(preset.spec, entry.defaults if entry else None, sources)
        overlay.preset = preset

    def differences_with(self, preset: Preset) -> list[Difference]:
        """What a preset would change, setting by setting."""
        tried = self.draft.copy()
        overlay = PresetOverlay(tried)
        overlay.laid = self.overlay.laid
        self._lay(overlay, preset)
        settings = settings_of(self.catalog, tried) if self.catalog else {}
        return differences({**self.settings(), **settings}, self.draft, tried)

    def load(self, draft: Draft, words: str, *, named: bool = False, task_chosen: bool = True) -> None:
        """Replace the spec; it keeps its file. Unless the user `named` the run, new data renames it."""
        with self.step(words):
            self.draft.replace(draft.values(), draft.file)
            self.draft.named, self.draft.task_chosen = named, task_chosen
            self.overlay.forget()
        self.replaced.emit()
        self.loaded.emit()

    # Undo and redo

    def moment(self) -> Moment:
        """What the history has of the draft as it is."""
        return self.draft.state(), self.overlay.laid, self.overlay.preset

    @contextmanager
    def step(self, words: str, key: str = "") -> Iterator[None]:
        """Group all changes inside into one step; `key` names the field being typed in."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if not self._depth:
            self.history.record(self.moment(), Step(words, key))
            self._calm.start()
            self.history_changed.emit()

    def amend(self) -> None:
        """Complete the draft with something detected, which is not a step of the user's."""
        if not self._depth:
            self.history.amend(self.moment())
            self._calm.start()

    def forget_history(self) -> None:
        """Clear the undo history."""
        self.history = History(self.moment())
        self.history_changed.emit()

    def forget_unused_columns(self) -> None:
        """Remove the columns of roles that the draft's settings do not use."""
        if (entry := self.task()) is not None:
            data_source.forget_unused_columns(entry, self.draft)
            self.amend()

    def undo(self) -> None:
        """Undo the last step, or first any invalid text that was only typed."""
        forms = self._page.findChildren(SchemaForm)
        for form in forms:
            form.flush()
        wrong = [form for form in forms if form.forget_typed()]
        if not wrong and self.history.undo_words:
            self._go(self.history.undo())

    def redo(self) -> None:
        """Redo the last undone step."""
        if self.history.redo_words:
            self._go(self.history.redo())

    def _go(self, moment: Moment) -> None:
        before = self.draft.values()
        state, self.overlay.laid, self.overlay.preset = moment
        self.draft.restore(state)
        self._calm.start()
        self.history_changed.emit()
        self.changed_from.emit(before)

    # Open and save

    def ask_open(self) -> None:
        """Let the user choose a spec to continue with."""
        if self.catalog is None:
            return
        path, _ = QFileDialog.getOpenFileName(self._page, tr("Open spec"), self._folder, PATTERNS)
        if path:
            self.open(Path(path))

    def open(self, path: Path) -> None:
        """Read a spec, reporting what could not be used."""
        if self.catalog is None:
            return
        self._folder = str(path.parent)
        try:
            found = open_draft(path, self.catalog)
        except InputError as error:
            self.message.emit(
                "error",
                tr(
                    "{error}. Nothing was changed. Fix the file or open another one.",
                    error=formatting.sentence(translate_message(str(error))),
                ),
            )
            return
        name = found.draft.get("name") or tr("a spec")
        self.load(found.draft, tr("Open {get}", get=name), named=True)
        if found.notes:
            self.message.emit("warning", " ".join(found.notes))
        else:
            self.message.emit("success", tr("Opened {name}.", name=path.name))

    def copy_run(self, path: str, runs: Iterable[RunSummary], change: Callable[[Values], Values] = dict) -> None:
        """Continue with the spec of a run, under a name that none of `runs` has, after a `change`."""
        try:
            copied = copy_of(Path(path), runs)
            self.load(Draft(change(copied)), tr("Copy {path}", path=formatting.name_of_path(path)))
        except InputError as error:
            self.message.emit("error", tr("{error}. Choose another run.", error=translate_message(str(error))))

    def ask_save(self) -> None:
        """Let the user choose where to save; the draft's original file is suggested first."""
        name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in str(self.draft.get("name")))
        offered = self.draft.file or Path(self._folder or Path.home()) / f"{name.strip('-.') or 'run'}.yaml"
        path, _ = QFileDialog.getSaveFileName(self._page, tr("Save spec"), str(offered), PATTERNS)
        if path:
            self.save(Path(path if Path(path).suffix else f"{path}.yaml"))

    def save(self, path: Path) -> None:
        """Save the draft; the copied command names the file from now on."""
        self._folder = str(path.parent)
        try:
            save_draft(self.draft, path)
        except OSError as error:
            self.message.emit(
                "error",
                tr(
                    "Couldn't save {name}: {strerror}. Choose another folder.",
                    name=path.name,
                    strerror=error.strerror,
                ),
            )
            return
        self.message.emit(
            "success", tr("Saved {name}. To start it in a terminal: burnish train {name}", name=path.name)
        )
