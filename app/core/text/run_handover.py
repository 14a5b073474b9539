"""Which options of the Tokenizer page a run takes over, and sentences on those that it does not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core import json_schema
from app.core.i18n import figure, tr
from app.core.text.tokenizer_input import TextOptions
from backend.contract.catalog import TaskEntry

STRIDES = ("stride", "doc_stride")
"""What tasks that read long rows in windows call the tokens that two windows share."""
CUTS_ITSELF = (*STRIDES, "template")
"""A task with one of these settings cuts long rows by a rule of its own, whatever the tokenizer's side."""
ANSWERS = ("instructions", "chat")
"""Kinds of rows that are written out by a chat template."""
_LONG = 40


@dataclass(frozen=True)
class ChosenTask:
    """The task of the run being set up; no title means unknown."""

    title: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Every setting that the task has, with its value."""

    def has(self, name: str) -> bool:
        """Whether the task has this setting."""
        return name in self.settings


@dataclass(frozen=True)
class Handover:
    """Spec key → value of what a run takes over, and a sentence for each thing that it decides itself."""

    settings: dict[str, Any]
    left: list[str]


def chosen_task(entries: list[TaskEntry], spec: Mapping[str, Any]) -> ChosenTask:
    """The task of a draft, as the catalog describes it."""
    section = spec.get("task")
    section = section if isinstance(section, dict) else {}
    entry = next((one for one in entries if one.name == section.get("type")), None)
    if entry is None:
        return ChosenTask()
    fields = json_schema.resolve(entry.settings).get("properties", {})
    return ChosenTask(entry.title, {name: field.get("default") for name, field in fields.items()} | section)


Found = Iterator[tuple[str, Any] | str]
"""Spec keys with their values, and sentences about what a run decides by itself."""


def handover(options: TextOptions, task: ChosenTask) -> Handover:
    """The options that the run takes over."""
    found = [one for part in (_limit, _windows, _sides, _template, _rest) for one in part(options, task)]
    settings = dict(one for one in found if isinstance(one, tuple))
    return Handover(settings, [one for one in found if isinstance(one, str)])


def taken_over(settings: Mapping[str, Any]) -> str:
    """The settings in words: `max_length 128, add_prefix_space on`; long texts are left out."""
    return ", ".join(f"{key.rpartition('.')[2]} {_words(value)}" for key, value in settings.items())


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    words = figure(value) if isinstance(value, float) else str(value)
    return words if len(words) <= _LONG and "\n" not in words else tr("as written")


def _limit(options: TextOptions, task: ChosenTask) -> Found:
    if options.max_length is not None:
        yield "task.max_length", options.max_length
    for name, on in options.construction.items():
        yield f"model.tokenizer_options.{name}", on


def _windows(options: TextOptions, task: ChosenTask) -> Found:
    if options.max_length is None:
        return
    key = next((name for name in STRIDES if task.has(name)), None)
    can_cut = task.has("window")
    if options.windows and key:
        if can_cut:
            yield "task.window", True
        yield f"task.{key}", options.stride
    elif options.windows and task.title:
        yield tr("“{title}” does not use windows: text beyond the limit is truncated.", title=task.title)
    elif options.windows:
        yield tr("Windows are a setting of some tasks: choose the task of your run first.")
    elif can_cut:
        yield "task.window", False
    elif key:
        yield tr("“{title}” splits long texts into windows; nothing is truncated.", title=task.title)


def _sides(options: TextOptions, task: ChosenTask) -> Found:
    for name, side in (("truncation_side", options.truncation_side), ("padding_side", options.padding_side)):
        if side:
            yield f"model.tokenizer_options.{name}", side
    if options.truncation_side and any(map(task.has, CUTS_ITSELF)):
        yield tr("“{title}” has its own truncation rule; the side is only saved with the tokenizer.", title=task.title)
    if options.padding_side == "left" and task.has("doc_stride"):
        yield tr("“{title}” puts the context before the question when padding is on the left.", title=task.title)
    elif options.padding_side:
        yield tr("A run pads on the side that its model requires; the side is saved with the tokenizer.")
    if options.truncation != "longest_first":
        yield tr("The task determines which text of a pair is truncated.")


def _template(options: TextOptions, task: ChosenTask) -> Found:
    if options.chat_template is None:
        return
    if not task.title:
        yield tr("A chat template is a setting of some tasks: choose the task of your run first.")
    elif not task.has("template"):
        yield tr("“{title}” does not read chats, so it does not use a chat template.", title=task.title)
    else:
        yield "task.template", options.chat_template
        if task.settings.get("rows") not in ANSWERS:
            yield tr("The template is used when the rows of your data are chats or instructions (“Training example”).")


def _rest(options: TextOptions, task: ChosenTask) -> Found:
    if not options.special_tokens:
        yield tr("A run always adds the special tokens that its model expects.")
    if options.padding:
        yield tr("A run pads each batch to its longest row.")
