"""Owns a person's own presets: one file each in the configuration folder, shaped like the shipped ones."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core.backend_sentences import told
from app.core.draft.draft import Draft
from app.core.draft.draft_settings import NO_SETTINGS, Setting, same
from app.core.i18n import tr
from backend.contract import places, spec_file
from backend.contract.catalog import Preset
from backend.contract.errors import InputError
from backend.contract.safe_files import write_whole

NEVER = {"task": ("labels",), "hardware": ("environment",)}
"""Settings that belong to one set of data or to one computer."""
ALWAYS = ("task.max_length", "training.epochs", "training.batch_size", "training.learning_rate")
"""Settings that a preset names even where they are their defaults."""
CHOICES = {
    "task": tr("Task and its settings"),
    "training": tr("Training"),
    "evaluation": tr("Evaluation"),
    "adapter": tr("Adapter"),
    "hardware": tr("Hardware"),
    "model": tr("Model"),
}
"""Sections that a preset may hold, with their titles; data belongs to none."""


def folder() -> Path:
    """Where they lie; `include: preset:NAME` in a spec finds them there too."""
    return places.own_presets_folder()


def listed(within: Path | None = None) -> tuple[list[Preset], list[str]]:
    """The own presets by title, and a sentence for each file that is none."""
    found: list[Preset] = []
    problems: list[str] = []
    for path in sorted((within or folder()).glob("*.yaml")):
        try:
            values = spec_file.read(path)
            if not isinstance(values.get("spec"), dict):
                raise InputError(tr("{path}: a preset has a title, a description and a spec", path=path))
        except InputError as error:
            problems.append(tr("A preset of yours cannot be read. {error}.", error=told(str(error))))
        else:
            title, words = str(values.get("title") or path.stem), str(values.get("description") or "")
            found.append(Preset(path.stem, title, words, values["spec"]))
    return sorted(found, key=lambda preset: preset.title.casefold()), problems


def fragment(draft: Draft, sections: Sequence[str], settings: Mapping[str, Setting]) -> dict[str, Any]:
    """What of the draft a preset of these sections holds: what is not its default, and what always matters."""
    kept = {name: value for name in sections if isinstance(value := draft.values().get(name), Mapping) and value}
    cleaned = {name: _worth_keeping(name, value, settings) for name, value in kept.items()}
    return {name: value for name, value in cleaned.items() if value}


def _worth_keeping(section: str, values: Mapping[str, Any], settings: Mapping[str, Setting]) -> dict[str, Any]:
    def is_default(name: str) -> bool:
        setting = settings.get(f"{section}.{name}")
        if setting is None or setting.key in (*ALWAYS, *NO_SETTINGS):
            return False
        return "default" in setting.extras and same(values[name], setting.default)

    return {
        name: value for name, value in values.items() if name not in NEVER.get(section, ()) and not is_default(name)
    }


def file_name(title: str) -> str:
    """The name by which `include` finds a preset of this title."""
    return re.sub(r"[^\w-]+", "-", title.strip().casefold()).strip("-")[:60] or "preset"


def problem(title: str, shipped: Sequence[Preset]) -> str:
    """Why a preset cannot be called so; empty where it can."""
    if not title.strip():
        return tr("Give the preset a name.")
    if file_name(title) in {preset.name for preset in shipped}:
        return tr("Burnish comes with a preset called {file_name}; choose another name.", file_name=file_name(title))
    return ""


def save(title: str, description: str, spec: Mapping[str, Any], within: Path | None = None) -> Preset:
    """Write a preset, in the place of one of the same name. Raises OSError."""
    path = (within or folder()) / f"{file_name(title)}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"title": title.strip(), "description": description.strip(), "spec": dict(spec)}
    write_whole(path, spec_file.dump(values).encode())
    return Preset(path.stem, values["title"], values["description"], values["spec"])


def delete(preset: Preset, within: Path | None = None) -> None:
    """Take a preset away; one that is gone already is no mistake. Raises OSError."""
    ((within or folder()) / f"{preset.name}.yaml").unlink(missing_ok=True)
