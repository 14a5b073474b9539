"""Presets: applying one to a draft and removing it again, and the user's own presets, one file each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.backend_messages import translate_message
from app.core.draft.data_source import change_source
from app.core.draft.draft import Draft, Values, flat
from app.core.draft.draft_settings import NO_SETTINGS, Setting, is_same
from app.core.i18n import tr
from backend.contract import places, spec_file
from backend.contract.catalog import Preset, SourceEntry
from backend.contract.errors import InputError
from backend.contract.safe_files import write_whole

OF_THE_TASK = ("task.", "data.columns")
"""Beginnings of the keys that mean nothing to another task."""
OF_THE_MODEL = ("model.revision", "model.trust_remote_code", "model.tokenizer")
"""Keys that mean nothing to another model."""


@dataclass(frozen=True)
class AppliedPreset:
    """The draft's values before and after a preset was applied."""

    before: Values
    after: Values


class PresetOverlay:
    """At most one preset is applied to the draft; the user's later changes are kept."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.laid: AppliedPreset | None = None
        """What lies over the draft; never changed, so that it can be put back with the draft's own state."""
        self.preset: Preset | None = None
        """Where the fragment comes from, if known."""

    def lay(
        self,
        fragment: Mapping[str, Any],
        defaults: Values | None = None,
        sources: Mapping[str, SourceEntry] | None = None,
    ) -> None:
        """Apply a preset to the draft, replacing the previous one.

        `defaults` are those of the preset's task; they and an empty task come first if the draft has another task.
        If the preset has another source (of `sources`) or model, settings that it does not understand are removed.
        """
        self.take_off()
        before, task = self._draft.values(), fragment.get("task", {}).get("type")
        if defaults is not None and task != self._draft.get("task.type"):
            self._draft.use_task(task, defaults)
        self._draft.merge(self._fitting(dict(fragment), sources or {}))
        self.laid = AppliedPreset(before, self._draft.values())

    def _fitting(self, fragment: Values, sources: Mapping[str, SourceEntry]) -> Values:
        data = fragment.get("data", {})
        present, wanted = self._draft.get("data.source", "files"), data.get("source")
        if set(data) == {"source"} and self._draft.get("data.train"):
            # The default source alone does not override data that the user has chosen.
            fragment = {name: section for name, section in fragment.items() if name != "data"}
        elif wanted in sources and wanted != present:
            change_source(self._draft, sources.get(present), sources[wanted])
        model = fragment.get("model", {}).get("name_or_path")
        if model and model != self._draft.get("model.name_or_path"):
            for key in OF_THE_MODEL:
                self._draft.unset(key)
        optimizer = fragment.get("training", {}).get("optimizer")
        if optimizer and optimizer != self._draft.get("training.optimizer"):
            self._draft.unset("training.optimizer_options")
        return fragment

    def take_off(self) -> None:
        """Restore what was there before, except for the user's later changes."""
        if self.laid is None:
            return
        laid, present = self.laid, self._draft.values()
        gone, changed = _changes(laid.after, present)
        if _task(laid.before) != _task(laid.after):
            other_data = "data.train" in changed or "data.source" in changed
            changed = {key: value for key, value in changed.items() if not key.startswith(OF_THE_TASK)}
            gone = {key for key in gone if not key.startswith(OF_THE_TASK)}
            if other_data:
                changed["data.columns"] = {}
        if _source(laid.before) != _source(laid.after):
            touched = any(key.startswith("data.") and not key.startswith("data.columns") for key in {*gone, *changed})
            changed = {key: value for key, value in changed.items() if not key.startswith("data.")}
            gone = {key for key in gone if not key.startswith("data.")}
            if touched:
                # Settings of one source do not apply to another: the user's choice is kept whole.
                changed["data"] = present.get("data", {})
                if _task(laid.before) != _task(laid.after):
                    changed["data"] = {**changed["data"], "columns": {}}
        self._draft.put_back(laid.before)
        for key in gone:
            self._draft.unset(key)
        for key, value in changed.items():
            self._draft.set(key, value)
        self.forget()

    def forget(self) -> None:
        """The preset's values belong to the draft from now on."""
        self.laid = None
        self.preset = None


def _changes(before: Values, after: Values) -> tuple[set[str], dict[str, Any]]:
    """The removed keys, and key → value of what is new or different."""
    old, new = dict(flat(before)), dict(flat(after))
    return old.keys() - new.keys(), {key: value for key, value in new.items() if key not in old or old[key] != value}


def _source(values: Values) -> str:
    return values.get("data", {}).get("source", "files")


def _task(values: Values) -> str | None:
    return values.get("task", {}).get("type")


# The user's presets, in the format of the shipped ones

NEVER = {"task": ("labels",), "hardware": ("environment",)}
"""Settings that belong to one set of data or to one computer."""
ALWAYS = ("task.max_length", "training.epochs", "training.batch_size", "training.learning_rate")
"""Settings that a preset names even where they are their defaults."""
PRESET_SECTIONS = {
    "task": tr("Task and its settings"),
    "training": tr("Training"),
    "evaluation": tr("Evaluation"),
    "adapter": tr("Adapter"),
    "hardware": tr("Hardware"),
    "model": tr("Model"),
}
"""Sections that a preset may hold, with their titles; data belongs to none."""


def presets_folder() -> Path:
    """The folder of the user's presets; `include: preset:NAME` in a spec finds them there too."""
    return places.own_presets_folder()


def read_presets(within: Path | None = None) -> tuple[list[Preset], list[str]]:
    """The user's presets by title, and a sentence for each invalid file."""
    found: list[Preset] = []
    problems: list[str] = []
    for path in sorted((within or presets_folder()).glob("*.yaml")):
        try:
            values = spec_file.read(path)
            if not isinstance(values.get("spec"), dict):
                raise InputError(tr("{path}: a preset needs a title, a description and a spec", path=path))
        except InputError as error:
            problems.append(tr("One of your presets can't be read. {error}.", error=translate_message(str(error))))
        else:
            title, words = str(values.get("title") or path.stem), str(values.get("description") or "")
            found.append(Preset(path.stem, title, words, values["spec"]))
    return sorted(found, key=lambda preset: preset.title.casefold()), problems


def fragment(draft: Draft, sections: Sequence[str], settings: Mapping[str, Setting]) -> dict[str, Any]:
    """The part of the draft to save as a preset of these sections: non-default values, and what always matters."""
    kept = {name: value for name in sections if isinstance(value := draft.values().get(name), Mapping) and value}
    cleaned = {name: _worth_keeping(name, value, settings) for name, value in kept.items()}
    return {name: value for name, value in cleaned.items() if value}


def _worth_keeping(section: str, values: Mapping[str, Any], settings: Mapping[str, Setting]) -> dict[str, Any]:
    def is_default(name: str) -> bool:
        setting = settings.get(f"{section}.{name}")
        if setting is None or setting.key in (*ALWAYS, *NO_SETTINGS):
            return False
        return "default" in setting.extras and is_same(values[name], setting.default)

    return {
        name: value for name, value in values.items() if name not in NEVER.get(section, ()) and not is_default(name)
    }


def file_name(title: str) -> str:
    """The name by which `include` finds a preset with this title."""
    return re.sub(r"[^\w-]+", "-", title.strip().casefold()).strip("-")[:60] or "preset"


def name_problem(title: str, shipped: Sequence[Preset]) -> str:
    """Why a preset cannot have this name; empty if it can."""
    if not title.strip():
        return tr("Enter a name for the preset.")
    if file_name(title) in {preset.name for preset in shipped}:
        return tr("{file_name} is the name of a built-in preset; choose another name.", file_name=file_name(title))
    return ""


def save_preset(title: str, description: str, spec: Mapping[str, Any], within: Path | None = None) -> Preset:
    """Save a preset, replacing one of the same name. Raises OSError."""
    path = (within or presets_folder()) / f"{file_name(title)}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"title": title.strip(), "description": description.strip(), "spec": dict(spec)}
    write_whole(path, spec_file.dump(values).encode())
    return Preset(path.stem, values["title"], values["description"], values["spec"])


def delete_preset(preset: Preset, within: Path | None = None) -> None:
    """Delete a preset; a missing one is not an error. Raises OSError."""
    ((within or presets_folder()) / f"{preset.name}.yaml").unlink(missing_ok=True)
