"""Which options of the Tokenizer page a run takes over, and in sentences which it does not."""

from collections.abc import Mapping
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
    """The task of the run that is being set up; without a title none is known."""

    title: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Every setting that the task has, with its value."""

    def has(self, name: str) -> bool:
        """Whether the task has such a setting."""
        return name in self.settings


@dataclass(frozen=True)
class Handover:
    """Spec key → value of what a run has, and a sentence for each thing that it decides by itself."""

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


def handover(options: TextOptions, task: ChosenTask) -> Handover:
    """What of the options becomes the run's."""
    settings: dict[str, Any] = {}
    left: list[str] = []
    for part in (_limit, _windows, _sides, _template, _rest):
        found = part(options, task)
        settings |= found.settings
        left += found.left
    return Handover(settings, left)


def taken_over(settings: Mapping[str, Any]) -> str:
    """The settings in words: `max_length 128, add_prefix_space on`; a long text is not told."""
    return ", ".join(f"{key.rpartition('.')[2]} {_words(value)}" for key, value in settings.items())


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    words = figure(value) if isinstance(value, float) else str(value)
    return words if len(words) <= _LONG and "\n" not in words else tr("as written")


def _limit(options: TextOptions, task: ChosenTask) -> Handover:
    limit = {} if options.max_length is None else {"task.max_length": options.max_length}
    return Handover(limit | {f"model.tokenizer_options.{name}": on for name, on in options.construction.items()}, [])


def _windows(options: TextOptions, task: ChosenTask) -> Handover:
    if options.max_length is None:
        return Handover({}, [])
    key = next((name for name in STRIDES if task.has(name)), None)
    can_cut = task.has("window")
    if options.windows and key:
        shared = {f"task.{key}": options.stride}
        return Handover({"task.window": True, **shared} if can_cut else shared, [])
    if options.windows and task.title:
        return Handover({}, [tr("“{title}” does not use windows: text beyond the limit is cut off.", title=task.title)])
    if options.windows:
        return Handover({}, [tr("Windows are a setting of some tasks: choose the task of your run first.")])
    if can_cut:
        return Handover({"task.window": False}, [])
    return Handover({}, [tr("“{title}” continues in windows; nothing is cut off.", title=task.title)] if key else [])


def _sides(options: TextOptions, task: ChosenTask) -> Handover:
    sides = {"truncation_side": options.truncation_side, "padding_side": options.padding_side}
    left = []
    if options.truncation_side and any(map(task.has, CUTS_ITSELF)):
        left.append(
            tr("“{title}” truncates by its own rule; the side is only saved with the tokenizer.", title=task.title)
        )
    if options.padding_side == "left" and task.has("doc_stride"):
        left.append(
            tr("“{title}” puts the context before the question where padding is at the left.", title=task.title)
        )
    elif options.padding_side:
        left.append(tr("A run pads on the side that its model needs; the side is saved with the tokenizer."))
    if options.truncation != "longest_first":
        left.append(tr("The task decides which text of a pair is truncated."))
    return Handover({f"model.tokenizer_options.{name}": side for name, side in sides.items() if side}, left)


def _template(options: TextOptions, task: ChosenTask) -> Handover:
    if options.chat_template is None:
        return Handover({}, [])
    if not task.title:
        return Handover({}, [tr("A chat template is a setting of some tasks: choose the task of your run first.")])
    if not task.has("template"):
        return Handover({}, [tr("“{title}” reads no chats, so it takes no chat template.", title=task.title)])
    counts = task.settings.get("rows") in ANSWERS
    later = (
        []
        if counts
        else [tr("The template is used once a row of your data is a chat or an instruction (“Training example”).")]
    )
    return Handover({"task.template": options.chat_template}, later)


def _rest(options: TextOptions, task: ChosenTask) -> Handover:
    left = []
    if not options.special_tokens:
        left.append(tr("A run always adds the special tokens that its model expects."))
    if options.padding:
        left.append(tr("A run pads each batch to its longest row."))
    return Handover({}, left)
