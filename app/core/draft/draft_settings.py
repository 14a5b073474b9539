"""All settings of a draft with their titles, keys, help and defaults, for search and comparison."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from msgspec import structs

from app.core import json_schema
from app.core.backend_messages import translate_message
from app.core.backend_words import capitalize, translate_word
from app.core.draft.draft import Draft, flat
from app.core.i18n import figure, inside, tr
from app.core.setting_titles import title_of_key
from backend.contract.catalog import Catalog
from backend.contract.lengths import LENGTHS, fit_lengths
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.plan import AutoSetting
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.cost import MemoryFix
from backend.contract.run.fixes import RunFix

SECTIONS = ("task", "model", "data", "training", "evaluation", "adapter", "hardware")
NO_SETTINGS = (
    "version", "name", "task.type", "adapter.type", "model.name_or_path", "model.trust_remote_code", "data.source",
    "data.train", "data.validation", "data.test", "data.columns", "training.optimizer_options",
)  # fmt: skip
"""Keys that say what a run is about: they have no default to go back to, or are settings of their own below."""
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Setting:
    """One field of a spec, named by its dotted key."""

    key: str
    title: str
    description: str
    default: Any = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Its JSON Schema."""

    @property
    def section(self) -> str:
        """The spec section of the setting."""
        return self.key.partition(".")[0]

    def matches(self, words: list[str]) -> bool:
        """Whether each word occurs in the title or key, or starts a word of the description or the name of a choice."""
        name, more = self._name(), _searchable(f" {self.description} {' '.join(self._choices())}")
        return all(word in name or re.search(rf"\W{re.escape(word)}", more) for word in words)

    def is_named(self, words: list[str]) -> bool:
        """Whether title and key alone contain all the words."""
        return all(word in self._name() for word in words)

    def has_choice(self, words: list[str]) -> bool:
        """Whether one of its choices is called so."""
        return " ".join(words) in map(_searchable, self._choices())

    def _name(self) -> str:
        return _searchable(f"{self.title} {self.key}")

    def _choices(self) -> list[str]:
        parts = (self.extras, *self.extras.get("anyOf", ()))
        return [
            str(choice)
            for part in parts
            for choice in (*part.get("enum", ()), *([part["const"]] if "const" in part else []))
        ]


@dataclass(frozen=True)
class Difference:
    """A setting with two values."""

    setting: Setting
    before: Any
    after: Any

    @property
    def words(self) -> str:
        """`Epochs: 3 → 5`."""
        return change_words(self.setting.title, self.before, self.after)


CHOICES = (
    Setting("name", tr("Name"), tr("The name of the run. It becomes part of the folder name.")),
    Setting("task.type", tr("Task"), tr("What the model learns to do.")),
    Setting(
        "adapter.type",
        tr("Adapter"),
        tr("Trains a small set of added weights, such as LoRA, instead of the whole model."),
    ),
)
"""Settings on the page that have no section schema."""


def settings_of(catalog: Catalog, draft: Draft) -> dict[str, Setting]:
    """Key → setting, for everything that can be set with the draft's task, source, engine, optimizer and adapter."""
    parts: list[tuple[str, Mapping[str, Any]]] = [
        (name, json_schema.section(catalog.spec, name)) for name in SECTIONS if name not in ("task", "adapter")
    ]
    chosen = (
        ("task", catalog.tasks, draft.get("task.type")),
        ("data", catalog.sources, draft.get("data.source", "files")),
        ("hardware", catalog.engines, draft.get("hardware.engine", "torch")),
        ("training.optimizer_options", catalog.optimizers, draft.get("training.optimizer", "adamw")),
        ("adapter", catalog.adapters, draft.get("adapter.type")),
    )
    for prefix, entries, name in chosen:
        parts += [(prefix, json_schema.resolve(entry.settings)) for entry in entries if entry.name == name]
    found = (setting for prefix, section in parts for setting in _settings(prefix, section))
    return {setting.key: setting for setting in (*CHOICES, *found)}


def every_setting(catalog: Catalog) -> list[Setting]:
    """The settings of every task, source, engine, optimizer and adapter; a key may occur more than once."""
    parts = [(name, json_schema.section(catalog.spec, name)) for name in SECTIONS]
    for prefix, entries in (
        ("task", catalog.tasks), ("data", catalog.sources), ("hardware", catalog.engines),
        ("training.optimizer_options", catalog.optimizers), ("adapter", catalog.adapters),
    ):  # fmt: skip
        parts += [(prefix, json_schema.resolve(entry.settings)) for entry in entries]
    return [*CHOICES, *(setting for prefix, section in parts for setting in _settings(prefix, section))]


def _settings(prefix: str, section: Mapping[str, Any]) -> Iterator[Setting]:
    for name, one in section.get("properties", {}).items():
        if one.get("hidden"):
            continue
        title = str(one.get("title") or translate_word(capitalize(name.replace("_", " "))))
        description = " ".join(str(one.get("description") or "").split())
        yield Setting(f"{prefix}.{name}", title, description, one.get("default"), one)


def find_settings(settings: Mapping[str, Setting], text: str) -> list[str]:
    """The keys of the settings that contain every word of `text`, matches in the name first; none for an empty text."""
    words = _searchable(text).split()
    keys = [key for key, setting in settings.items() if words and setting.matches(words)]
    return sorted(keys, key=lambda key: (not settings[key].is_named(words), not settings[key].has_choice(words)))


def _searchable(text: str) -> str:
    """`4-bit` and `4 Bit` are the same."""
    return text.casefold().replace("-", " ")


def changed_settings(
    settings: Mapping[str, Setting], draft: Draft, usual: Mapping[str, Any] = _NONE
) -> list[Difference]:
    """The settings whose draft value differs from their default, in order.

    `usual` are the task's defaults, by key: values that the task filled in do not count as changes.
    """
    return [
        Difference(setting, default, draft.get(key))
        for key, setting in settings.items()
        if key not in NO_SETTINGS
        and "default" in setting.extras
        and draft.says(key)
        and not is_same(draft.get(key), default := usual.get(key, setting.default))
    ]


def differences(settings: Mapping[str, Setting], before: Draft, after: Draft) -> list[Difference]:
    """What differs between `before` and `after`, per setting; a mapping that is not a setting is split up."""
    keys = dict.fromkeys([*dict(flat(before.values())), *dict(flat(after.values()))])
    known = {setting.key: setting for setting in (_find_setting(settings, key) for key in keys)}
    pairs = [
        (setting, before.get(key, setting.default), after.get(key, setting.default)) for key, setting in known.items()
    ]
    return [Difference(setting, one, other) for setting, one, other in pairs if not is_same(one, other)]


def _find_setting(settings: Mapping[str, Setting], key: str) -> Setting:
    names = key.split(".")
    for length in range(len(names), 1, -1):
        part = ".".join(names[:length])
        if part in settings and part != "training.optimizer_options":
            return settings[part]
    return Setting(key, translate_word(capitalize(names[-1].replace("_", " "))), "")


def title_of(settings: Mapping[str, Setting], key: str) -> str:
    """A key's title on screen."""
    return _find_setting(settings, key).title


def change_words(title: str, before: Any, after: Any) -> str:
    """`Epochs: 3 → 5`, with long values truncated."""
    return f"{title}: {value_words(before)} → {value_words(after)}"


def value_words(value: Any, most: int = 40) -> str:
    """A value for people: `not set`, `on`, `2e-5`, `a, b`."""
    if value is None or value == "" or value == [] or value == {}:
        return tr("not set")
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        words = figure(int(value) if whole else value).replace("e-0", "e-")
    elif isinstance(value, list):
        words = ", ".join(map(str, value))
    else:
        words = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return words if len(words) <= most else f"…{words[1 - most :]}" if "/" in words else f"{words[: most - 1]}…"


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal in a spec; `true` is not `1`, but 3.0 is 3."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def fix_words(fix: RunFix) -> str:
    """The text of a button for a fix: `Start again with Learning rate 5e-5`."""
    if fix.convert_weights:
        return tr("Convert the weights and restart")
    if not fix.changes:
        return tr("Retry")
    named = {key: value for key, value in fix.changes.items() if value is not None or fix.is_retry}
    settings = ", ".join(_changed_words(key, value) for key, value in named.items())
    if fix.is_retry:
        return tr("Try again with {settings}", settings=settings)
    return (
        tr("Resume with {settings}", settings=settings)
        if fix.resume
        else tr("Restart with {settings}", settings=settings)
    )


def _changed_words(key: str, value: Any) -> str:
    if value is None:
        return tr("no {title}", title=inside(title_of_key(key)))
    if (key, value) == ("training.checkpoint_every", "never"):
        return tr("no more checkpoints")
    return f"{title_of_key(key)} {value_words(value)}"


def shorten_texts(draft: Draft, model: ModelDescription | None, mistake: ErrorReply) -> list[MemoryFix]:
    """The model's limit (tokens) for every length in the draft above it; empty if that is not the problem."""
    limit = model.max_length if model is not None else None
    keys = [f"task.{name}" for name in LENGTHS]
    if mistake.field != keys[0] or not limit:
        return []
    above = {key: limit for key in keys if isinstance(draft.get(key), int) and draft.get(key) > limit}
    if not above:
        return []
    title = tr("At most {limit:,} tokens", limit=limit)
    return [MemoryFix(title=title, changes=above, memory_mb=0.0, fits=True, note=tr("Longer texts are truncated."))]


def fit_to_model(draft: Draft, settings: Mapping[str, Setting], model: ModelDescription) -> list[AutoSetting]:
    """Set what the backend would choose for lengths that nobody has set; returns it, with the reasons."""
    defaults = {key.removeprefix("task."): one.default for key, one in settings.items() if key.startswith("task.")}
    chosen = fit_lengths(draft.get("task") or {}, defaults, model.max_length, PurePath(model.name).name)
    for one in chosen:
        draft.set(one.key, one.value)
    return [structs.replace(one, reason=translate_message(one.reason)) for one in chosen]
