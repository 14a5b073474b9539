"""Owns how the two files of parallel text are found: beside each other, gzipped or not, or as the Tatoeba Challenge has them."""

import re
from collections.abc import Sequence
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.safe_files import check_inside
from backend.contract.spec import DataSection
from backend.data.formats.detect import is_data_file
from backend.data.rows import Rows
from backend.data.sources._parallel_text import Directions, Pair, read_pairs
from backend.data.sources.files import Files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import Reading

Endings = tuple[tuple[str, str], ...]
"""Endings of source and target files that may belong together."""
ENDINGS: Endings = (("source", "target"), ("src", "trg"), ("src", "tgt"))
STEMS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev", "eval"), "test": ("test",)}
"""What the files of a split are called in a folder."""
_LANGUAGE = re.compile(r"(?!md|py|js|gz|db|sh|h|c)[a-z]{2}([_-][A-Za-z]{2,4})?")
"""An ending that names a language, as Moses has them."""
_CHALLENGE = ("train", "dev", "test")


def find_pair(path: Path, stems: tuple[str, ...], endings: Endings) -> Pair:
    """The two files that a folder (with these stems), a common beginning or one of the files names. Raises InputError."""
    if path.is_dir():
        found = [pair for stem in stems if (pair := _pair_of(path / stem, endings))]
        if not found:
            raise InputError(f"{path} holds no pair of files such as {_example(path / stems[0], endings)}; {_WAY_OUT}")
        return found[0]
    if path.is_file() and _is_half(path, endings):
        partner = _partner(path, endings)
        if partner is None:
            raise InputError(f"{path} is there, but the file beside it that it belongs to is not; {_WAY_OUT}")
        return (path, partner) if _ending(path) in {first for first, _ in endings} else (partner, path)
    if pair := _pair_of(path, endings):
        return pair
    raise InputError(f"there is no pair of files such as {_example(path, endings)}; {_WAY_OUT}")


def read_one(path: Path, directions: Directions, endings: Endings, data: DataSection, reading: Reading) -> Rows:
    """What a person names to be predicted: a pair, sources alone in a file without partner, or a table."""
    half = _is_half(path, endings)
    if path.is_file() and not half and is_data_file(path) and path.suffix != ".txt":
        return Files(FileSettings()).read_file(path, data, reading)
    alone = path.is_file() and (not half or _partner(path, endings) is None)
    every = tuple(stem for stems in STEMS.values() for stem in stems)
    pair: Pair = (path, None) if alone else find_pair(path, every, endings)
    return read_pairs([pair], directions, None, reading)


def pairs_among(paths: Sequence[Path]) -> tuple[tuple[str, str], dict[str, str]] | None:
    """The two endings and split → common beginning of files that are all pairs of the same endings; None otherwise."""
    files = [path for one in paths for path in (sorted(one.iterdir()) if one.is_dir() else [one]) if path.is_file()]
    files = [path for path in files if _is_half(path, ENDINGS) or _LANGUAGE.fullmatch(_ending(path))]
    for path in files:
        if path.parent in paths:
            check_inside(path, path.parent)
    endings = sorted({_ending(path) for path in files})
    known = next((pair for pair in ENDINGS if sorted(pair) == endings), None)
    if len(endings) != 2 or len(files) % 2:
        return None
    beginnings = {_plain(path).with_suffix("") for path in files}
    if 2 * len(beginnings) != len(files):
        return None
    first, second = known or endings
    splits = {split: str(one) for one in sorted(beginnings) for split, stems in STEMS.items() if one.name in stems}
    if len(beginnings) == 1:
        splits = {"train": str(next(iter(beginnings)))}
    return ((first, second), splits) if "train" in splits else None


def challenge_pair(folder: Path, stem: str) -> Pair:
    """`train`, `dev` or `test` of a folder of the Tatoeba Challenge. Raises InputError naming what is there."""
    if pair := _pair_of(folder / stem, (("src", "trg"),)):
        return pair
    there = [one for one in _CHALLENGE if _pair_of(folder / one, (("src", "trg"),))]
    has = (
        f"it has {', '.join(there)}"
        if there
        else "a pair of the challenge has train.src, train.trg, test.src, test.trg"
    )
    raise InputError(f"{folder} has no {stem}.src with {stem}.trg; {has}")


def has_dev(folder: Path) -> bool:
    """Whether a folder of the Tatoeba Challenge has a development set; small languages have none."""
    return _pair_of(folder / "dev", (("src", "trg"),)) is not None


_WAY_OUT = "name their folder or common beginning, and data.source_ending and data.target_ending for other endings"


def _pair_of(beginning: Path, endings: Endings) -> tuple[Path, Path] | None:
    for first, second in endings:
        source, target = _existing(beginning, first), _existing(beginning, second)
        if source and target:
            return source, target
    return None


def _partner(path: Path, endings: Endings) -> Path | None:
    """The other file of the pair that this one belongs to."""
    ending, beginning = _ending(path), _plain(path).with_suffix("")
    others = [first if ending == second else second for first, second in endings if ending in (first, second)]
    return next((found for other in others if (found := _existing(beginning, other))), None)


def _is_half(path: Path, endings: Endings) -> bool:
    return any(_ending(path) in pair for pair in endings)


def _ending(path: Path) -> str:
    return _plain(path).suffix[1:]


def _existing(beginning: Path, ending: str) -> Path | None:
    names = [f"{beginning.name}.{ending}{zipped}" for zipped in ("", ".gz")]
    return next((path for name in names if (path := beginning.with_name(name)).is_file()), None)


def _plain(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def _example(beginning: Path, endings: Endings) -> str:
    first, second = endings[0]
    return f"{beginning}.{first} and {beginning.name}.{second}"
