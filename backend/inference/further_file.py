"""Owns where a run's predictions of one more file lie: in the run's folder, under a name that was free."""

import re
import unicodedata
from pathlib import Path

from backend.contract.run.folder import RunFolder

OWN = ("validation", "test")
LONGEST = 60


def free_name(folder: RunFolder, data: Path) -> str:
    """The file's name as a name of predictions that no file bears yet: `reviews`, then `reviews-2`."""
    plain = unicodedata.normalize("NFC", data.name.partition(".")[0])
    stem = re.sub(r"[^\w-]+", "-", plain).strip("-_")[:LONGEST] or "file"
    for number in range(1, 10_000):
        name = stem if number == 1 else f"{stem}-{number}"
        taken = name in OWN or any(folder.predictions(name, suffix).exists() for suffix in ("csv", "parquet"))
        if not taken:
            return name
    raise RuntimeError(f"{folder.path} holds ten thousand predictions named {stem}")
