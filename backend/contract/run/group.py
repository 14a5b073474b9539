"""A group: runs that differ in nothing but their seed, and the folder that names them (stdlib only).

The folder holds `group.json` alone, with the spec from which its runs are made. Its runs are ordinary run folders beside it,
`GROUP-seed-1` for seed 1, so that they share the queue with all others; which they are follows from the group's name and seeds.
"""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.folder import RunFolder, slug, write_json
from backend.contract.safe_files import MAX_SPEC, check_folder, read_unlinked, user_path
from backend.contract.safe_text import parse_json

MOST_SEEDS = 100
LARGEST_SEED = 2**32 - 1
_SEED = "-seed-"
_STATES = ("queued", "failed", "lost", "interrupted", "paused", "stopped")
"""What a group is called if any of its runs is that and none is running, the most important first."""


class RunGroup:
    """A group on disk. Whoever makes it writes `group.json`, before any of its runs; nobody changes it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self.file = self.path / "group.json"

    def __repr__(self) -> str:
        return f"RunGroup({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The folder's name, by which commands find the group."""
        return self.path.name

    def exists(self) -> bool:
        """Whether this is the folder of a group at all."""
        return os.path.isfile(self.file)  # noqa: PTH113 (Path.is_file fails in a folder that is closed to this user)

    def read(self) -> tuple[dict[str, Any], list[str]]:
        """The spec from which the runs are made, and why its automatic values are what they are. Raises InputError."""
        check_folder(self.path)
        try:
            found = parse_json(read_unlinked(self.file, MAX_SPEC))
            spec, reasons = found["spec"], found["reasons"]
            seeds = spec["training"]["seeds"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged() from error
        if not (isinstance(reasons, list) and isinstance(seeds, list) and _are_seeds(seeds)):
            raise self._damaged()
        return spec, [str(reason) for reason in reasons]

    def settings(self) -> dict[str, Any]:
        """The spec without the seed that no run of the group need have. Raises InputError."""
        spec = self.read()[0]
        return {**spec, "training": {name: value for name, value in spec["training"].items() if name != "seed"}}

    def _damaged(self) -> InputError:
        return InputError(
            "{path}: this file of a group is damaged; its runs can still be used one by one, or train them as a new group",
            path=self.file,
        )

    def write(self, spec: dict[str, Any], reasons: Iterable[str]) -> None:
        """Make this folder a group. Raises OSError."""
        write_json(self.file, {"spec": spec, "reasons": list(reasons)})

    def seeds(self) -> tuple[int, ...]:
        """The seeds in the order in which they were asked for. Raises InputError."""
        return tuple(self.read()[0]["training"]["seeds"])

    def run(self, seed: int) -> RunFolder:
        """The run with this seed; its folder may not be made yet, or be deleted."""
        return RunFolder(self.path.with_name(f"{self.name}{_SEED}{seed}"))

    def runs(self) -> list[RunFolder]:
        """The run of each seed, made or not. Raises InputError."""
        return [self.run(seed) for seed in self.seeds()]

    def made_runs(self) -> list[RunFolder]:
        """The runs that are there. Raises InputError."""
        return [run for run in self.runs() if run.exists()]


def _are_seeds(seeds: list[Any]) -> bool:
    numbers = [seed for seed in seeds if type(seed) is int and 0 <= seed <= LARGEST_SEED]
    return 0 < len(seeds) <= MOST_SEEDS and len(set(numbers)) == len(seeds)


def new_group_folder(root: Path, name: str, seeds: Iterable[int], when: datetime | None = None) -> RunGroup:
    """Make the folder `2026-11-21-1530-name` under `root`, or with `-2`, so that neither it nor any of its runs exists yet."""
    stem = f"{(when or datetime.now()):%Y-%m-%d-%H%M}-{slug(name)}"
    root.mkdir(parents=True, exist_ok=True)
    wanted = list(seeds)
    for number in range(1, 10_000):
        group = RunGroup(root / (stem if number == 1 else f"{stem}-{number}"))
        if any(os.path.lexists(group.run(seed).path) for seed in wanted):
            continue
        try:
            group.path.mkdir()
        except FileExistsError:
            continue
        return group
    raise RuntimeError(message("{root} already contains ten thousand runs named {stem}", root=root, stem=stem))


def run_groups(root: Path) -> list[RunGroup]:
    """Every group under `root`, newest name first."""
    try:
        paths = sorted((path for path in root.iterdir() if path.is_dir()), reverse=True)
    except OSError:
        return []
    return [group for group in map(RunGroup, paths) if group.exists()]


def find_group(name_or_path: str, root: Path) -> RunGroup | None:
    """The group with that name under `root`, or in the folder at that path. Raises InputError if it is damaged."""
    for path in (root / name_or_path, user_path(name_or_path)):
        group = RunGroup(path)
        if group.exists():
            group.read()
            return group
    return None


def group_of(run: RunFolder) -> RunGroup | None:
    """The group that a run belongs to."""
    name, _, seed = run.name.rpartition(_SEED)
    if not name or not seed.isdecimal():
        return None
    group = RunGroup(run.path.with_name(name))
    try:
        return group if group.exists() and run.name in {other.name for other in group.runs()} else None
    except InputError:
        return None


def state_of(states: Iterable[str]) -> str:
    """The state of a group whose runs are in these; a run that is not made, or no longer there, counts as `lost`."""
    there = list(states)
    if any(state in ("running", "starting") for state in there):
        return "running"
    return next((state for state in _STATES if state in there), "finished")
