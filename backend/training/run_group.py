"""Makes a group and its runs: folders with one spec that differ in nothing but the seed."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup, new_group_folder
from backend.contract.safe_files import write_whole
from backend.contract.safe_text import one_line
from backend.contract.spec import RunSpec
from backend.preflight import resolve, task_facts
from backend.preflight.checks import Checked


def make_group(prepared: Checked, path: Path | None = None) -> RunGroup:
    """Make the group that a checked spec with `training.seeds` asks for, and its runs; at `path`, or under the runs folder.

    Whatever interrupts this, `make_runs` completes what was begun. Raises InputError.
    """
    spec = prepared.spec
    seeds = spec.training.group_seeds
    assert seeds, "the spec asks for one run"
    place = path or runs_folder()
    with output_errors(place, "--run-folder" if path else "", *place.parents):
        if path is None:
            group = new_group_folder(place, spec.name, seeds)
        else:
            check_free(path, seeds)
            path.mkdir(parents=True)
            group = RunGroup(path)
    training = spec.training.model_copy(update={"seeds": list(seeds)})
    reasons = [setting.reason for setting in prepared.auto if setting.reason]
    with output_errors(group.path, "--run-folder" if path else "", group.path):
        try:
            group.write(spec.model_copy(update={"training": training}).model_dump(mode="json"), reasons)
        except OSError:
            with suppress(OSError):
                group.path.rmdir()
            raise
    make_runs(group, prepared.fitted)
    return group


def check_free(path: Path, seeds: Iterable[int]) -> None:
    """Raise InputError unless a group with these seeds can be made at `path`."""
    group = RunGroup(path)
    for one in (path, *(group.run(seed).path for seed in seeds)):
        if one.exists() or one.is_symlink():
            raise InputError(
                "--run-folder {path} already exists; choose a new folder, or resume the run in it", path=one
            )
    check_output_folder(path, "--run-folder")


def make_runs(group: RunGroup, fitted: task_facts.FittedFacts | None = None) -> list[RunFolder]:
    """Make the runs of a group that are not there yet; returns all of them, in the order of the seeds.

    `fitted` is what the task learned from their rows, if that is known. Raises InputError.
    """
    values, reasons = group.read()
    missing = [seed for seed in group.seeds() if not group.run(seed).exists()]
    spec = resolve.resolve(values, group.path) if missing else None
    for seed in missing:
        run = group.run(seed)
        if fault := run.fault():
            raise InputError(fault)
        if run.path.is_symlink():  # a stranger's group would have a run written wherever it leads
            raise InputError("{path}: this is a link; remove it, and resume the group again", path=run.path)
        assert spec is not None
        comments = "".join(f"# {one_line(reason)}\n" for reason in reasons)
        with output_errors(run.path, "", run.path):
            run.path.mkdir(exist_ok=True)
            if fitted is not None:
                task_facts.keep(run, fitted)
            # A folder is a run as soon as its complete spec exists.
            write_whole(
                run.spec, (comments + spec_file.dump(spec_of_seed(spec, seed).model_dump(mode="json"))).encode()
            )
    return group.runs()


def spec_of_seed(spec: RunSpec, seed: int) -> RunSpec:
    """The spec of a group's run; the seed does not change which rows are held out for validation."""
    training = spec.training.model_copy(update={"seed": seed, "seeds": None})
    data = spec.data
    if isinstance(data.validation, float) and data.split_seed is None:
        data = data.model_copy(update={"split_seed": spec.training.seed})
    return spec.model_copy(update={"training": training, "data": data})
