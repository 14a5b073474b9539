"""Creates the two tables of the mT5 example from a language pair: both directions, each row with its prefix."""

import csv
import os
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.data.sources._parallel_text import Direction, LinePairs, challenge_pair
from backend.data.sources.source import Report

TABLES = {"train": "train.tsv", "test": "eval.tsv"}
"""Stem of the challenge's files → the table made of them."""
_HEADER = ("", "prefix", "input_text", "target_text")
_NAMES = {
    "afr": "afrikaans", "ara": "arabic", "ben": "bengali", "bul": "bulgarian", "cat": "catalan", "ces": "czech",
    "cym": "welsh", "dan": "danish", "deu": "german", "ell": "greek", "eng": "english", "epo": "esperanto",
    "est": "estonian", "eus": "basque", "fas": "persian", "fin": "finnish", "fra": "french", "gle": "irish",
    "glg": "galician", "guj": "gujarati", "heb": "hebrew", "hin": "hindi", "hrv": "croatian", "hun": "hungarian",
    "hye": "armenian", "ind": "indonesian", "isl": "icelandic", "ita": "italian", "jpn": "japanese", "kan": "kannada",
    "kat": "georgian", "kaz": "kazakh", "khm": "khmer", "kor": "korean", "lat": "latin", "lav": "latvian",
    "lit": "lithuanian", "mal": "malayalam", "mar": "marathi", "mkd": "macedonian", "mlt": "maltese",
    "mon": "mongolian", "msa": "malay", "mya": "burmese", "nep": "nepali", "nld": "dutch", "nor": "norwegian",
    "pan": "punjabi", "pol": "polish", "por": "portuguese", "ron": "romanian", "rus": "russian", "sin": "sinhala",
    "slk": "slovak", "slv": "slovenian", "som": "somali", "spa": "spanish", "sqi": "albanian", "srp": "serbian",
    "swa": "swahili", "swe": "swedish", "tam": "tamil", "tel": "telugu", "tgl": "tagalog", "tha": "thai",
    "tur": "turkish", "ukr": "ukrainian", "urd": "urdu", "uzb": "uzbek", "vie": "vietnamese", "yor": "yoruba",
    "zho": "chinese", "zul": "zulu",
}  # fmt: skip


def language_names(given: str | None, folder_name: str) -> tuple[str, str]:
    """Source and target language, as given (`english,sinhala`) or by folder name (`eng-sin`). Raises InputError."""
    parts = given.split(",") if given else [_NAMES.get(code, "") for code in folder_name.split("-")]
    names = [part.strip() for part in parts]
    if len(names) != 2 or not all(names):
        raise InputError(
            "--languages: specify the language of the .src files and the language of the .trg files, "
            "for example english,sinhala"
        )
    return names[0], names[1]


def write_tables(folder: Path, output: Path, languages: tuple[str, str], report: Report) -> dict[Path, int | None]:
    """`train.tsv` and `eval.tsv` from the challenge's train and test; each row count, None if it existed already.

    Two rows per sentence pair, the backward one first, in the reference's columns: a number without a name,
    prefix, input_text, target_text. Raises InputError without leaving a half-written table.
    """
    source, target = languages
    directions = Direction(
        direction="both",
        prefix_forward=message("translate {source} to {target}", source=source, target=target),
        prefix_backward=message("translate {target} to {source}", target=target, source=source),
    )
    written: dict[Path, int | None] = {}
    for stem, name in TABLES.items():
        path = output / name
        first, second = challenge_pair(folder, stem)
        written[path] = None if path.exists() else _write(LinePairs(first, second, directions), path, report)
    return written


def _write(pairs: LinePairs, path: Path, report: Report) -> int:
    beside, number = path.with_name(f".{path.name}.{os.getpid()}"), 0
    try:
        with beside.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(_HEADER)
            for piece in pairs.pieces(pairs.schema()):
                rows = zip(*(piece.batch[name].to_pylist() for name in ("prefix", "source", "target")), strict=True)
                table.writerows((number + place, *row) for place, row in enumerate(rows))
                number += piece.batch.num_rows
                report(number, 0, "rows")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return number
