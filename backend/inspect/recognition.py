"""Recognises dropped or typed files, folders and addresses: the source, its settings, the splits."""

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa

from backend import registry
from backend.contract.errors import Fix, InputError
from backend.contract.messages import join, message, plural
from backend.contract.rpc.data import IgnoredFile, RecognisedData
from backend.contract.safe_files import user_path
from backend.data import mojibake
from backend.data.data_files import (
    data_files,
    files_for,
    folder_files,
    group_by_split,
    pattern_files,
    saved_splits,
    split_of,
)
from backend.data.formats.compression import packer_of
from backend.data.formats.delimited import is_one_column_with_commas
from backend.data.formats.detect import content_format, format_of, open_reader
from backend.data.formats.reader import Options, RowChunk
from backend.data.formats.text_file import TextFile, describe_mixed
from backend.data.formats.workbook import describe_sheets
from backend.data.sources.source import RecognisedSource

_LOOKED_AT = 2000
"""Rows whose text is looked at for a wrong encoding."""
_LONGEST_JSON = 1 << 25
"""Characters of one JSON document that is looked at in this way."""
FORMATS = {
    "csv": message("a table (CSV)"), "tsv": message("a table (TSV)"), "jsonl": message("JSON Lines"), "json": "JSON", "parquet": "Parquet", "arrow": "Arrow",
    "text": message("plain text"), "workbook": "a workbook",
}  # fmt: skip
_SPLITS = {"train": "training", "validation": "validation", "test": "test"}
_NAMELESS = message("its name does not say whether it is training, validation or test data")
_HUB = re.compile(r"(?:https?://(?:www\.)?huggingface\.co/datasets/|hf://datasets/)([\w.-]+(?:/[\w.-]+)?)")


@dataclass
class _Found:
    """What has been recognised so far."""

    source: str
    what: str
    data: dict[str, Any] = field(default_factory=dict)
    task: str = ""
    left_out: list[IgnoredFile] = field(default_factory=list)
    folder: Path | None = None
    """What was dropped, if it is the only one and its files are for one split."""


def recognise(paths: Sequence[str], split: str | None = None) -> RecognisedData:
    """Recognise paths by content; `split` assigns all of them to it. Raises InputError if nothing can be used."""
    given = [one.strip() for one in paths if one.strip()]
    if not given:
        raise InputError("no file was specified; choose a file, several files or a folder")
    if name := _hub_name(given):
        return _to_answer(_Found("hub", message("a Hub dataset"), {"name": name, "train": "train", "validation": 0.1}))
    places = [place for one in given for place in _places_of(one)]
    if model := next(filter(_is_model, places), None):
        raise InputError("{name} is a model, not data; use its folder as model.name_or_path", name=model.name)
    found = _recognise_source(places) if split is None else None
    return _to_answer(found or _files(places, split))


def _hub_name(given: list[str]) -> str:
    matched = _HUB.match(given[0]) if len(given) == 1 else None
    return matched.group(1) if matched else ""


def _places_of(one: str) -> list[Path]:
    """A file, a folder, or the files that match a pattern."""
    address = urlparse(one)
    if address.scheme in ("http", "https", "ftp", "s3"):
        raise InputError("{one} is a URL; download the file first, or specify a Hub dataset", one=one)
    path = user_path(unquote(address.path) if address.scheme == "file" else one)
    if not path.exists() and glob.has_magic(one):
        return [found.absolute() for found in pattern_files(one)]
    if not path.exists():
        raise InputError("{path}: there is no such file or folder; check the path", path=path)
    return [path.absolute()]


def _is_model(path: Path) -> bool:
    """Whether it is a folder in Hugging Face format, or weights, which the JSON files beside them would hide."""
    return path.suffix == ".safetensors" or ((path / "config.json").is_file() and any(path.glob("*.safetensors")))


def _recognise_source(paths: Sequence[Path]) -> _Found | None:
    """The first source that recognises all paths together."""
    for name, kind in registry.all_of("source").items():
        recognise_all = getattr(kind, "recognise", None)
        known: RecognisedSource | None = recognise_all(paths) if recognise_all else None
        if known is not None and known.settings:
            return _Found(name, known.what, dict(known.settings), known.task)
    return None


def _files(paths: list[Path], split: str | None) -> _Found:
    """Files of rows, assigned to the splits that they are named for."""
    if len(paths) == 1 and paths[0].is_dir() and saved_splits(paths[0]) is not None:
        return _recognise_saved(paths[0], split)
    files, left_out = _list_files(paths)
    kinds, refused = _kinds(files)
    left_out += refused
    if not kinds:
        raise InputError(_describe_no_data(paths, left_out))
    source = _chosen_source(kinds)
    left_out += [
        IgnoredFile(path.name, message("is {what}, and the other files are not", what=what))
        for path, (name, what, _) in kinds.items()
        if name != source
    ]
    kept = {path: found for path, found in kinds.items() if found[0] == source}
    within = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    splits, unnamed = _splits(list(kept), within, split)
    left_out += [
        IgnoredFile(path.name, message("is named after another split") if split_of(path, within) else _NAMELESS)
        for path in unnamed
    ]
    if not splits:
        raise InputError(_describe_no_data(paths, left_out))
    _, what, task = next(iter(kept.values()))
    found = _Found(source, what, {name: _value(one) for name, one in splits.items()}, task, left_out)
    if source == "files":
        _set_format(found, [path for one in splits.values() for path in one])
        found.folder = within if within is not None and _is_whole(within, splits) else None
    return found


def _is_whole(folder: Path, splits: dict[str, list[Path]]) -> bool:
    """Whether naming the folder for the only split reads just these files, which are several."""
    (split, files), *others = splits.items()
    if others or len(files) == 1:
        return False
    try:
        return data_files(str(folder), split) == files
    except InputError:  # files of several types are named one by one
        return False


def _recognise_saved(folder: Path, split: str | None) -> _Found:
    splits = saved_splits(folder)
    if not splits or split:
        return _Found("files", message("a saved dataset"), {split or "train": str(folder)})
    data = {name: str(folder / one) for one in splits if (name := split_of(Path(one)))}
    left = [IgnoredFile(one, _NAMELESS) for one in splits if not split_of(Path(one))]
    if "train" not in data and len(splits) == 1:
        data, left = {"train": str(folder / splits[0])}, []
    return _Found("files", message("a saved dataset"), data, left_out=left)


def _list_files(paths: list[Path]) -> tuple[list[Path], list[IgnoredFile]]:
    """All files, including those in the folders, and the ones that by name hold no rows."""
    files: list[Path] = []
    left_out: list[IgnoredFile] = []
    for path in paths:
        own, others = folder_files(path) if path.is_dir() else ([path], {})
        files += own
        left_out += [IgnoredFile(other.name, reason) for other, reason in others.items()]
    return files, left_out


_Kind = tuple[str, str, str]
"""Source, what it is, task."""


def _kinds(files: list[Path]) -> tuple[dict[Path, _Kind], list[IgnoredFile]]:
    kinds: dict[Path, _Kind] = {}
    refused: list[IgnoredFile] = []
    for path in files:
        try:
            kinds[path] = _kind(path)
        except InputError as error:
            refused.append(IgnoredFile(path.name, str(error).removeprefix(f"{path.name} ").removeprefix(f"{path} ")))
    return kinds, refused


def _kind(path: Path) -> _Kind:
    format_of(path, "text")  # refuses what is empty, unreadable or no data at all
    for name, kind in registry.all_of("source").items():
        recognise_one = getattr(kind, "recognise", None)
        known: RecognisedSource | None = recognise_one([path]) if recognise_one else None
        if known is not None and not known.settings:
            return name, known.what, known.task
    return "files", FORMATS[detected_format(path)], ""


def detected_format(path: Path) -> str:
    """The file's format; for a plain-text extension the content decides."""
    by_name = format_of(path)
    return content_format(path) if by_name == "text" else by_name


def _chosen_source(kinds: dict[Path, _Kind]) -> str:
    """The source of the file named as training data, else of most files."""
    for path, (name, _, _) in kinds.items():
        if split_of(path) == "train":
            return name
    names = [name for name, _, _ in kinds.values()]
    return max(dict.fromkeys(names), key=names.count)


def _splits(files: list[Path], within: Path | None, split: str | None) -> tuple[dict[str, list[Path]], list[Path]]:
    """Split → files, and the files in no split because the others are named for theirs."""
    if split is not None and within is not None and len(files) > 1:
        chosen = files_for(split, files, within)
        return {split: chosen} if chosen else {}, [path for path in files if path not in chosen]
    if split is not None or len(files) == 1:
        return {split or "train": files}, []
    named = group_by_split(files, within)
    unnamed = named.pop(None, [])
    if "train" not in named and unnamed:
        named, unnamed = {"train": unnamed, **named}, []
    return {name: named[name] for name in _SPLITS if name in named}, unnamed


def _value(files: list[Path]) -> str | list[str]:
    return str(files[0]) if len(files) == 1 else [str(path) for path in files]


def _set_format(found: _Found, files: list[Path]) -> None:
    """Set the format if it differs from the extension; with several formats each file is read as its own."""
    kinds = {detected_format(path) for path in files}
    if len(kinds) == 1 and any(format_of(path) != kind for path in files for kind in kinds):
        found.data["format"] = next(iter(kinds))


def _describe_no_data(paths: list[Path], left_out: list[IgnoredFile]) -> str:
    if not left_out:
        return message("{paths} has no files; choose a folder with files that contain rows", paths=paths[0])
    if len(left_out) == 1 and paths[0].is_file():
        return message("{name} {reason}", name=left_out[0].name, reason=left_out[0].reason)
    first = left_out[0]
    if len(left_out) == 1:
        return message(
            "{name}, the only file here, does not contain rows ({reason}); use CSV, TSV, JSON, "
            "Parquet, Arrow, Excel, OpenDocument or plain text",
            name=first.name,
            reason=first.reason,
        )
    return message(
        "none of these {left_out} files contains rows, for example {name} ({reason}); use CSV, "
        "TSV, JSON, Parquet, Arrow, Excel, OpenDocument or plain text",
        left_out=len(left_out),
        name=first.name,
        reason=first.reason,
    )


def _to_answer(found: _Found) -> RecognisedData:
    kind = registry.find("source", found.source, "data.source")
    warnings, unreadable = _warnings(found)
    words, count = _describe(found), 0
    if found.folder is not None:
        (split, count), *_ = [(split, len(found.data[split])) for split in _SPLITS if split in found.data]
        found.data[split] = str(found.folder)
    return RecognisedData(
        data={"source": found.source, **found.data},
        source_title=kind.title,
        words=words,
        task=found.task,
        folder_files=count,
        left_out=found.left_out,
        warnings=warnings,
        unreadable=unreadable,
    )


def _warnings(found: _Found) -> tuple[list[str], list[str]]:
    """Problems with each split's first file (its sheets, the text of its first rows), and unreadable files.

    If all of them can be read in one other encoding, set it in the data.
    """
    found_problems, refused = list[str](), list[tuple[Path, InputError]]()
    looked_at = 0
    for split in _SPLITS if found.source == "files" else ():
        value = found.data.get(split)
        path = Path(value[0] if isinstance(value, list) else value) if isinstance(value, list | str) else None
        if path is None or not path.is_file():
            continue
        looked_at += 1
        kind = found.data.get("format") or detected_format(path)
        try:
            if kind == "json" and len(TextFile(path).head(_LONGEST_JSON)) == _LONGEST_JSON:
                continue  # it can only be read as a whole, which is too slow for recognition
            if kind == "workbook" and (sheets := describe_sheets(path, None)):
                found_problems.append(f"{sheets}.")
            if kind == "csv" and is_one_column_with_commas(path):
                found.data["delimiter"] = "\t"
                found_problems.append(_describe_commas(path))
            reader = open_reader(path, kind, Options(found.data.get("delimiter"), max_rows=_LOOKED_AT))
            piece = next(iter(reader.pieces(reader.schema())), None)
        except InputError as error:
            refused.append((path, error))
            continue
        if piece is not None:
            found_problems += _decoding_warnings(path, piece)
    if folders := _label_folders(found):
        found_problems.append(_describe_folders(folders))
    fixes = [(path, error.fix) for path, error in refused if error.fix and "data.encoding" in error.fix.changes]
    encodings = {fix.changes["data.encoding"] for _, fix in fixes}
    if fixes and (mixed := describe_mixed(_files_named(found.data))):
        return found_problems, [mixed]
    if len(fixes) == looked_at and len(encodings) == 1:
        found.data["encoding"] = encodings.pop()
        return [*found_problems, _describe_encoding([path for path, _ in fixes], fixes[0][1])], []
    return found_problems, [str(error) for _, error in refused]


def _label_folders(found: _Found) -> list[str]:
    """The names of sibling folders that divide a split's plain texts; none if they name splits."""
    values = [found.data.get(split) for split in _SPLITS if found.source == "files" and found.what == FORMATS["text"]]
    for value in values:
        folders = {Path(one).parent for one in value} if isinstance(value, list) else set()
        are_beside = len({folder.parent for folder in folders}) == 1 and len(folders) > 1
        if are_beside and not any(map(split_of, folders)):
            return sorted(folder.name for folder in folders)
    return []


def _describe_folders(names: list[str]) -> str:
    listed = ", ".join(names[:3])
    if len(names) > 3:
        listed = message("{names} and {count} more", names=listed, count=len(names) - 3)
    return message(
        "The text files are in the folders {names}. If these are labels, create one table with "
        "the columns text and label and a row for each file: in plain text, every line is a row, "
        "and rows have no labels.",
        names=listed,
    )


def _files_named(data: dict[str, Any]) -> list[Path]:
    values = [data.get(split) for split in _SPLITS]
    paths = [
        Path(one) for value in values for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)
    ]
    return [path for path in paths if path.is_file()]


def _describe_commas(path: Path) -> str:
    return message(
        "{name} has one column in its header, but its rows contain commas, so every line is read as one text "
        "(data.delimiter is a tab); if it has several columns, list them all in the header",
        name=path.name,
    )


def _describe_encoding(paths: list[Path], fix: Fix) -> str:
    """The encoding of non-UTF-8 files, as the `data` section has it, with a sample line of the first to judge by."""
    example = next((line for line in fix.preview if not line.isascii()), "")
    return plural(
        "{names} is not UTF-8; as Windows-1252 it reads “{example}”, so data.encoding is set to that; if that "
        "text is wrong, change {changes} to the encoding of the file, or save it again as UTF-8",
        "{names} are not UTF-8; as Windows-1252 the first reads “{example}”, so data.encoding is set to that; if that "
        "text is wrong, change {changes} to the encoding of the files, or save them again as UTF-8",
        len(paths),
        names=", ".join(path.name for path in paths),
        example=example,
        changes=fix.changes["data.encoding"],
    )


def _describe(found: _Found) -> str:
    places, packer = _describe_places(found.data, found.folder), _packer(found.data)
    packed = message(", unpacked from {packer}", packer=packer) if packer else ""
    return (
        message("This is {what}: {places}{packed}.", what=found.what, places=places, packed=packed)
        if places
        else message("This is {what}{packed}.", what=found.what, packed=packed)
    )


def _describe_places(data: dict[str, Any], folder: Path | None) -> str:
    parts = [
        message("{data} for {split}", data=_short_name(data[split], folder), split=words)
        for split, words in _SPLITS.items()
        if isinstance(data.get(split), str | list)
    ]
    return join(", ", parts)


def _short_name(value: str | list[str], folder: Path | None) -> str:
    if isinstance(value, list):
        if folder is not None:
            return message("the folder {name} with {count} files", name=folder.name, count=len(value))
        return message("{name} and {value} more", name=Path(value[0]).name, value=len(value) - 1)
    return Path(value).name


def _packer(data: dict[str, Any]) -> str:
    first = data.get("train")
    path = Path(first if isinstance(first, str) else first[0]) if first else None
    return packer_of(path) if path is not None and path.is_file() else ""


def _decoding_warnings(path: Path, piece: RowChunk) -> Iterator[str]:
    table = pa.Table.from_batches([piece.batch])
    return mojibake.warnings(table, lambda row: f"{path.name}:{piece.lines[row]}", "auto")
