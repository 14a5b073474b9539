"""The spec being edited, as plain values: its changes, and the command that does the same."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEARCH = "search"
SECTIONS = ("version", "name", "task", "model", "data", "training", "evaluation", "adapter", "hardware", SEARCH)
"""The order in which a spec is written."""

Values = dict[str, Any]


_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class DraftState:
    """The complete state of a draft at one moment; immutable."""

    values: Values
    origin: Values
    file: Path | None
    named: bool
    task_chosen: bool


class Draft:
    """A spec being edited. Keys are dotted: `training.learning_rate`."""

    def __init__(self, values: Values | None = None, defaults: Values | None = None, file: Path | None = None) -> None:
        self.file = file
        """The spec file that this draft began with, if it began with one."""
        self.named = False
        """Whether a person has named the run; else it is called after its data."""
        self.task_chosen = False
        """Whether a person has chosen the task, or the spec that has it; else the data may decide."""
        self.defaults = defaults or {}
        self._values = deepcopy(values) if values else {}
        self._origin = deepcopy(self._values)

    def get(self, key: str, default: Any = None) -> Any:
        """The value at a dotted key; if it was not set, the catalog's default, else `default`."""
        found = _at(self._values, key)
        if found is _ABSENT:
            found = _at(self.defaults, key)
        return default if found is _ABSENT else found

    def says(self, key: str) -> bool:
        """Whether a value was set at a dotted key, even if it is the default."""
        return _at(self._values, key) is not _ABSENT

    def set(self, key: str, value: Any) -> bool:
        """Change one value; returns whether anything changed."""
        names = key.split(".")
        inner = self._values
        for name in names[:-1]:
            if not isinstance(inner.get(name), dict):
                inner[name] = {}
            inner = inner[name]
        if names[-1] in inner and inner[names[-1]] == value and type(inner[names[-1]]) is type(value):
            return False
        inner[names[-1]] = value
        return True

    def unset(self, key: str) -> None:
        """Remove one value, so that its default applies again."""
        names = key.split(".")
        inner: Any = self._values
        for name in names[:-1]:
            inner = inner.get(name)
            if not isinstance(inner, dict):
                return
        inner.pop(names[-1], None)

    def use_task(self, name: str, defaults: Values) -> None:
        """Switch to another task: its columns differ, and the old task's settings do not apply."""
        self.set("task", {"type": name})
        self.set("data.columns", {})
        self.merge(defaults)

    def merge(self, fragment: Mapping[str, Any]) -> None:
        """Merge a fragment of a spec (a preset, a task's defaults) into the draft."""
        for key, value in flat(fragment):
            self.set(key, value)

    def replace(self, values: Values, file: Path | None = None) -> None:
        """Start over with these values."""
        self.file = file
        self._values = deepcopy(values)
        self._origin = deepcopy(self._values)

    def mark_saved(self, file: Path) -> None:
        """The draft is now saved in this file."""
        self.file = file
        self._origin = deepcopy(self._values)

    def reset(self, key: str, default: Any) -> None:
        """Return to the default: set explicitly if the draft started with another value, else unset."""
        if _at(self._origin, key) is _ABSENT:
            self.unset(key)
        else:
            self.set(key, default)

    def state(self) -> DraftState:
        """A state that `restore` accepts."""
        return DraftState(deepcopy(self._values), self._origin, self.file, self.named, self.task_chosen)

    def restore(self, state: DraftState) -> None:
        """Return to this state."""
        self._values, self._origin = deepcopy(state.values), state.origin
        self.file, self.named, self.task_chosen = state.file, state.named, state.task_chosen

    def copy(self) -> "Draft":
        """An independent draft with the same values, for trying something."""
        return Draft(self._values, self.defaults)

    def put_back(self, values: Values) -> None:
        """Restore earlier values; the draft's starting point is unchanged."""
        self._values = deepcopy(values)

    def values(self) -> Values:
        """The whole spec as plain values, in the usual order. One without a search has no such section."""
        known = {name: self._values[name] for name in SECTIONS if name in self._values}
        if not known.get(SEARCH):
            known.pop(SEARCH, None)
        other = {name: value for name, value in self._values.items() if name not in SECTIONS}
        return deepcopy({"version": 1, **known, **other})

    def run_values(self) -> Values:
        """The spec of a single run: without the search."""
        return {name: value for name, value in self.values().items() if name != SEARCH}

    @property
    def is_search(self) -> bool:
        """Whether settings are searched."""
        return bool(self._values.get(SEARCH))

    def changes(self) -> dict[str, Any]:
        """Key → value of what differs from the spec that the draft started from."""
        return {key: value for key, value in flat(self._values) if not _same(_at(self._origin, key), value)}

    def command(self, options: Sequence[str] = (), environment: Mapping[str, str] = _NOTHING) -> str:
        """The shell command that starts the same run; `options` are the user's consents.

        A draft that started from a file names it and adds its changes. Any other, or one that removed part of it,
        includes its spec. `environment` is set only for the command.
        """
        command = "burnish search" if self.is_search else "burnish train"
        words = [*(f"{name}={shlex.quote(value)}" for name, value in environment.items()), command]
        if self.file is not None and self._is_the_file_changed():
            changes = [f"--set {shlex.quote(f'{key}={as_yaml(value)}')}" for key, value in self.changes().items()]
            return " ".join([*words, shlex.quote(str(self.file)), *changes, *options])
        text = json.dumps(self.values(), indent=1, ensure_ascii=False)
        name = shlex.quote(f"{_file_name(str(self.get('name', 'run')))}.yaml")
        return f"cat > {name} <<'SPEC'\n{text}\nSPEC\n{' '.join([*words, name, *options])}"

    def _is_the_file_changed(self) -> bool:
        """Whether the changes, merged into the starting spec, give the draft: `--set` cannot remove anything."""
        other = Draft(self._origin)
        other.merge(self.changes())
        return other.values() == self.values()


def read_draft(path: Path) -> Draft:
    """The draft that starts from a run's spec; its paths are made absolute. Raises InputError."""
    # YAML and pydantic are heavy and not wanted before the first paint.
    from backend.contract import spec_file

    draft = Draft(spec_file.read_run(path))
    make_absolute(draft, PATHS, path.absolute().parent)
    return Draft(draft.values(), file=path)


def make_absolute(draft: Draft, keys: Sequence[str], folder: Path) -> None:
    """Resolve the relative paths at these keys from `folder`."""
    for key in keys:
        if draft.get(key) is not None:
            draft.set(key, _absolute(draft.get(key), folder))
    space = draft.get(f"{SEARCH}.space")
    for key, values in space.items() if isinstance(space, dict) else ():
        if key in keys and isinstance(values, list):
            draft.set(
                f"{SEARCH}.space", {**draft.get(f"{SEARCH}.space"), key: [_absolute(one, folder) for one in values]}
            )


PATHS = ("model.name_or_path", "model.tokenizer", "data.train", "data.validation", "data.test")


def _absolute(value: Any, folder: Path) -> Any:
    """A path that exists beside the spec file, or is a pattern, is resolved from there; a hub id is unchanged."""
    if isinstance(value, list):
        return [_absolute(one, folder) for one in value]
    if isinstance(value, str) and ((folder / value).exists() or "*" in value):
        return str(folder / value)
    return value


def as_yaml(value: Any) -> str:
    """One value for `--set`: JSON, which is YAML, except that plain words stay plain."""
    if isinstance(value, str) and value.replace("_", "").replace("-", "").isalpha() and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


_WORDS = {"null", "true", "false"}


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip("-.") or "run"


class _Absent:
    pass


_ABSENT = _Absent()


def _at(values: Any, key: str) -> Any:
    for name in key.split("."):
        if not isinstance(values, dict) or name not in values:
            return _ABSENT
        values = values[name]
    return values


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys and values in a fragment of a spec; a mapping of dotted keys, as a search has it, is one value."""
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value and not any("." in str(own) for own in value):
            yield from flat(value, f"{key}.")
        else:
            yield key, value


def _same(one: Any, other: Any) -> bool:
    return one is not _ABSENT and one == other and isinstance(one, bool) == isinstance(other, bool)
