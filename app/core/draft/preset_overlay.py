"""Owns a preset that lies over a draft and can be taken off again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.core.draft.data_source import change_source
from app.core.draft.draft import Draft, Values, flat
from backend.contract.catalog import Preset, SourceEntry

OF_THE_TASK = ("task.", "data.columns")
"""Beginnings of the keys that mean nothing to another task."""
OF_THE_MODEL = ("model.revision", "model.trust_remote_code", "model.tokenizer")
"""Keys that mean nothing to another model."""


@dataclass(frozen=True)
class Laid:
    """The draft's values before and after a fragment was laid over it."""

    before: Values
    after: Values


class Overlay:
    """At most one fragment of a spec lies over the draft; what a person changed since stays changed."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.laid: Laid | None = None
        """What lies over the draft; never changed, so that it can be put back with the draft's own state."""
        self.preset: Preset | None = None
        """Where the fragment is from, if anybody has said so."""

    def lay(
        self,
        fragment: Mapping[str, Any],
        defaults: Values | None = None,
        sources: Mapping[str, SourceEntry] | None = None,
    ) -> None:
        """Lay a fragment over the draft, in the place of the one before.

        `defaults` are those of the fragment's task; they and an empty task come first where the draft has another one.
        Of another source in `sources` or another model nothing stays that the fragment's would not understand.
        """
        self.take_off()
        before, task = self._draft.values(), fragment.get("task", {}).get("type")
        if defaults is not None and task != self._draft.get("task.type"):
            self._draft.use_task(task, defaults)
        self._draft.merge(self._fitting(dict(fragment), sources or {}))
        self.laid = Laid(before, self._draft.values())

    def _fitting(self, fragment: Values, sources: Mapping[str, SourceEntry]) -> Values:
        data = fragment.get("data", {})
        present, wanted = self._draft.get("data.source", "files"), data.get("source")
        if set(data) == {"source"} and self._draft.get("data.train"):
            # The usual source alone says nothing against data that a person has chosen.
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
        """Give back what was there before, but for what a person changed since."""
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
                # Settings of one source mean nothing to another: what a person has chosen stays whole.
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
        """What lies there belongs to the draft from now on."""
        self.laid = None
        self.preset = None


def _changes(before: Values, after: Values) -> tuple[set[str], dict[str, Any]]:
    """The keys that went, and key → value of what is new or another."""
    old, new = dict(flat(before)), dict(flat(after))
    return old.keys() - new.keys(), {key: value for key, value in new.items() if key not in old or old[key] != value}


def _source(values: Values) -> str:
    return values.get("data", {}).get("source", "files")


def _task(values: Values) -> str | None:
    return values.get("task", {}).get("type")
