"""Opens and saves spec files; unusable settings are left out and reported with their line."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from app.core.draft.draft import PATHS, SEARCH, SECTIONS, Draft, make_absolute
from app.core.draft.draft_settings import NO_SETTINGS, Setting, settings_of, value_words
from app.core.i18n import tr
from backend.contract import spec_file
from backend.contract.catalog import Catalog, SourceEntry
from backend.contract.errors import InputError
from backend.contract.safe_files import write_whole

ENDINGS = (".yaml", ".yml")
PATTERNS = tr("Specs (*.yaml *.yml *.json);;All files (*)")
"""What a dialog offers that looks for a spec."""
SPLITS = ("data.train", "data.validation", "data.test")


@dataclass(frozen=True)
class OpenedDraft:
    """A draft that starts from a file, and a sentence for each problem in the file."""

    draft: Draft
    notes: tuple[str, ...] = ()


def is_spec(path: str) -> bool:
    """Whether a dropped file is a spec rather than data."""
    return path.lower().endswith(ENDINGS)


def open_draft(path: Path, catalog: Catalog) -> OpenedDraft:
    """The draft that starts from a spec file, with relative paths resolved from the file's folder.

    Unknown settings are left out. Raises InputError if the file is not a spec.
    """
    path = path.absolute()
    draft = Draft(spec_file.read(path))
    place = _YamlLines(path)
    _check_task(draft, catalog, place)
    notes = list(_leave_out(draft, catalog, place))
    left_out = len(notes)
    settings = settings_of(catalog, draft)
    notes += [
        tr(
            "{of}: {title} can't be {value_words}.",
            of=place.of(key),
            title=setting.title,
            value_words=value_words(value),
        )
        for key, setting in settings.items()
        if (value := draft.get(key)) is not None and not Draft202012Validator(setting.extras).is_valid(value)
    ]
    make_absolute(draft, path_keys(_source(draft, catalog)), path.parent)
    return OpenedDraft(Draft(draft.values(), file=None if left_out else path), tuple(notes))


def save_draft(draft: Draft, path: Path) -> None:
    """Save the draft as a spec for `burnish train`; the draft then starts from this file. Raises OSError."""
    path = path.absolute()
    heading = tr("# A Burnish training run: start it with `burnish train` and the name of this file.\n")
    write_whole(path, (heading + spec_file.dump(draft.values())).encode())
    draft.mark_saved(path)


def path_keys(source: SourceEntry | None) -> list[str]:
    """The keys that hold paths with this source; a hub data set's splits are names."""
    if source is None:
        return list(PATHS)
    of_data = [f"data.{name}" for name in source.path_fields]
    return [*(key for key in PATHS if key not in SPLITS), *of_data]


class _YamlLines:
    """Where a key is in a file, in words."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._lines = spec_file.lines(spec_file.read_text(path))

    def of(self, key: str) -> str:
        line = self._lines.get(key)
        return tr("{name}, line {line}", name=self._name, line=line) if line else self._name


def _check_task(draft: Draft, catalog: Catalog, place: _YamlLines) -> None:
    known = [task.name for task in catalog.tasks]
    kind = draft.get("task.type")
    if kind in known:
        return
    choices = ", ".join(known)
    if kind is None:
        raise InputError(
            tr(
                "{of}: a spec needs task.type, one of {choices}",
                of=place.of("task"),
                choices=choices,
            )
        )
    raise InputError(
        tr("{of}: unknown task {kind!r}; choose one of {choices}", of=place.of("task.type"), kind=kind, choices=choices)
    )


def _leave_out(draft: Draft, catalog: Catalog, place: _YamlLines) -> Iterator[str]:
    """Remove what cannot be shown from the draft; returns a sentence for each."""
    for name, section in draft.values().items():
        if name not in SECTIONS:
            draft.unset(name)
            yield tr(
                "{of}: ignored the unknown section {name}{closest}",
                of=place.of(name),
                name=name,
                closest=_closest(name, SECTIONS),
            )
        elif name not in ("version", "name") and section is not None and not isinstance(section, Mapping):
            draft.unset(name)
            yield tr(
                "{of}: ignored {name}, which must be a section of settings, not a single value.",
                of=place.of(name),
                name=name,
            )
    for prefix, entries in (("data.source", catalog.sources), ("hardware.engine", catalog.engines)):
        names = [entry.name for entry in entries]
        if (value := draft.get(prefix)) is not None and value not in names:
            draft.unset(prefix)
            yield tr(
                "{of}: ignored {prefix}, because {value!r} is unknown; choose one of {names}.",
                of=place.of(prefix),
                prefix=prefix,
                value=value,
                names=", ".join(names),
            )
    yield from _leave_out_settings(draft, settings_of(catalog, draft), place)


def _leave_out_settings(draft: Draft, settings: Mapping[str, Setting], place: _YamlLines) -> Iterator[str]:
    for name, section in draft.values().items():
        if name == SEARCH:
            continue  # the backend says what is wrong with it
        if not isinstance(section, Mapping) or (name == "adapter" and not _has(settings, "adapter.")):
            continue
        for field in section:
            key = f"{name}.{field}"
            if key not in settings and key not in NO_SETTINGS:
                draft.unset(key)
                own = [one.partition(".")[2] for one in settings if one.startswith(f"{name}.")]
                yield tr(
                    "{of}: ignored the unknown setting {key}{closest}",
                    of=place.of(key),
                    key=key,
                    closest=_closest(field, own),
                )


def _has(settings: Mapping[str, Setting], prefix: str) -> bool:
    return any(key.startswith(prefix) for key in settings)


def _closest(name: Any, known: Any) -> str:
    close = difflib.get_close_matches(str(name), list(known), 1)
    return tr("; did you mean {close}?", close=close[0]) if close else "."


def _source(draft: Draft, catalog: Catalog) -> SourceEntry | None:
    return next((one for one in catalog.sources if one.name == draft.get("data.source", "files")), None)
