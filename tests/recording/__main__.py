"""`python -m tests.recording record FOLDER` and `… compare FOLDER [OTHER]`: one line for each difference, then exit code 1."""

import argparse
import difflib
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path

from tests.recording.cases import ROOT
from tests.recording.recorder import record

SHOWN = 8
"""Differences of one file that are printed; further ones are counted."""
ABOUT = "about.txt"


def main() -> int:
    options = parse()
    if options.action == "record":
        if options.folder.exists() and any(options.folder.iterdir()):
            sys.exit(f"{options.folder} is not empty: choose a new folder for the recording")
        options.folder.mkdir(parents=True, exist_ok=True)
        failures = record(options.folder, options.only, options.runs)
        (options.folder / ABOUT).write_text(about(), encoding="utf-8")
        print(*failures, sep="\n", end="\n" if failures else "")
        return int(bool(failures))
    for folder in (options.folder, options.other or options.folder):
        if not (folder / ABOUT).is_file():
            sys.exit(f"{folder} is not a recording: make one with `record`")
    if options.other:
        return report(options.folder, options.other, options.only)
    with tempfile.TemporaryDirectory(prefix="burnish-compared-") as name:
        failures = record(Path(name), options.only)
        (Path(name) / ABOUT).write_text(about(), encoding="utf-8")
        print(*failures, sep="\n", end="\n" if failures else "")
        return max(int(bool(failures)), report(options.folder, Path(name), options.only))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.recording", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for action, words in (
        ("record", "make a recording of this tree"),
        ("compare", "compare this tree with a recording"),
    ):
        one = actions.add_parser(action, help=words, description=words)
        one.add_argument("folder", metavar="FOLDER", type=Path, help="the recording")
        one.add_argument(
            "--only",
            metavar="PATTERN",
            default="*",
            help="only what matches: runs/*-jax, runs/lora-*, help, describe, settings",
        )
        if action == "record":
            one.add_argument("--runs", metavar="DIR", type=Path, help="a new folder for the run folders themselves")
        else:
            one.add_argument(
                "other", metavar="OTHER", type=Path, nargs="?", help="another recording instead of this tree"
            )
    return parser.parse_args()  # fmt: skip


def report(old: Path, new: Path, only: str) -> int:
    """Print what differs; 1 if anything does."""
    before, after = (contents(folder, only) for folder in (old, new))
    count = 0
    for name in sorted(before.keys() | after.keys()):
        found = list(differences(name, before.get(name), after.get(name)))
        print(*found[:SHOWN], sep="\n", end="\n" if found else "")
        if len(found) > SHOWN:
            print(f"{name}: {len(found) - SHOWN} more lines differ")
        count += len(found)
    machines = [(folder / ABOUT).read_text(encoding="utf-8").splitlines()[1:] for folder in (old, new)]
    if machines[0] != machines[1]:
        print(f"note: recorded elsewhere, or with other libraries: see {old / ABOUT}", file=sys.stderr)
    print(f"{count} lines of {len(before)} files differ" if count else f"{len(before)} files are identical")
    return int(count > 0)


def contents(folder: Path, only: str) -> dict[str, list[str]]:
    """The lines of every recorded file whose name matches."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    chosen = {name: path for name, path in files.items() if name != ABOUT and matches(name, only)}
    return {name: path.read_text(encoding="utf-8").splitlines() for name, path in chosen.items()}


def matches(name: str, only: str) -> bool:
    """Whether the file belongs to what `--only` chose: `runs/lora-jax`, `help`, `describe`, `settings`."""
    return any(fnmatch(part, only) for part in (name.rpartition("/")[0], name.rpartition(".")[0]))


def differences(name: str, before: list[str] | None, after: list[str] | None) -> Iterator[str]:
    """A line for each that was changed, lost or added."""
    if before is None or after is None:
        yield f"{name}: {'new' if before is None else 'missing'}"
        return
    for tag, start, end, from_, to in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if tag != "equal":
            pairs = zip_longest(before[start:end], after[from_:to], fillvalue="(nothing)")
            yield from (f"{name}:{start + number}: {old} → {new}" for number, (old, new) in enumerate(pairs, 1))


def about() -> str:
    """Which commit this is, then the machine and the libraries: what decides the last bits."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True).stdout
    cpus = Path("/proc/cpuinfo")
    words = cpus.read_text(encoding="utf-8").splitlines() if cpus.exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in words if line.startswith("model name")), platform.processor()
    )
    libraries = [
        f"{name} {version(name)}" for name in ("torch", "transformers", "tokenizers", "jax", "jaxlib", "numpy")
    ]
    lines = [f"commit {commit}{' and changes' if changed else ''}", f"{platform.system()} {platform.machine()} {model}"]
    return "".join(f"{line}\n" for line in [*lines, *libraries])


if __name__ == "__main__":
    sys.exit(main())
