"""Owns the names of runs that were made from each other: the next free number, and what sets one apart from the last."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from app.core.draft.draft import Draft, Values, read_draft
from app.core.draft.draft_settings import differences
from app.core.runs.run_library import RunSummary
from backend.contract.errors import InputError

LONGEST = 100
"""What a spec allows."""
MAX_DIFFERENCES = 6
_NO_DIFFERENCES = ("version", "name")


def stem(name: str) -> str:
    """`reviews` of `reviews 2`."""
    return re.sub(r"(?<=\S) \d+$", "", name)


def next_name(name: str, taken: Iterable[str]) -> str:
    """`reviews 2` of `reviews`, and `reviews 3` of either, where 2 is taken."""
    known, number = set(taken), 2
    while (found := f"{stem(name)[: LONGEST - 1 - len(str(number))]} {number}") in known:
        number += 1
    return found


def copy_of(run: Path, runs: Iterable[RunSummary]) -> Values:
    """The spec in a run's folder under the next free name. Raises InputError where it cannot be read."""
    values = read_draft(run / "spec.yaml").values()
    return {**values, "name": next_name(str(values.get("name", "run")), (one.title for one in runs))}


def one_before(run: RunSummary, runs: Sequence[RunSummary]) -> RunSummary | None:
    """The latest run of the same name, but for its number, that was started before this one."""
    if run.started is None:
        return None
    earlier = [
        one
        for one in runs
        if one.path != run.path and one.started is not None and one.started < run.started
        and stem(one.title) == stem(run.title)
    ]  # fmt: skip
    return max(earlier, key=lambda one: one.started or 0.0, default=None)


def what_differs(run: RunSummary, before: RunSummary) -> list[str]:
    """`Learning rate: 2e-5 → 0.0002` for each setting that is another; none where a spec cannot be read."""
    try:
        found = differences({}, _spec(before.path), _spec(run.path))
    except (InputError, OSError):
        return []
    told = [one for one in found if one.setting.key not in _NO_DIFFERENCES]
    words = [one.words for one in told[:MAX_DIFFERENCES]]
    return words + (["…"] if len(told) > MAX_DIFFERENCES else [])


def _spec(run: Path) -> Draft:
    path = run / "spec.yaml"
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(256)
def _read(path: Path, changed: int) -> Draft:
    return read_draft(path)
