"""Measures how true the measured time of a run is: for each task and engine what was said before beside what it then took.

    python tests/benchmarks/time_estimate.py [TASK:ENGINE ...] [--seconds 60] [--again]

In a cache of its own each training is first measured (`burnish plan --measure`), then run (`burnish train`) for as many
epochs as shall take about `--seconds`. What counts is the time from the start of the run's process to its last event,
and, part by part, what the events say. With `--again` the plan is made once more after the run, which has told the
same, and another run is held against it. Other work on the machine changes both sides.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent / "task_rates")]

from task_data import made  # noqa: E402  (found by the line above)

from backend.contract import spec_file  # noqa: E402
from backend.contract.run import events  # noqa: E402
from backend.contract.run.event_summary import landmarks  # noqa: E402
from backend.contract.run.folder import RunFolder  # noqa: E402

CASES = (
    "text_classification:torch",
    "text_classification:jax",
    "token_classification:torch",
    "causal_lm:torch",
    "seq2seq_lm:torch",
)
TRAINING = {"training.checkpoint_every": "epoch", "evaluation.every": "epoch", "hardware.micro_batch_size": None}


def main() -> None:
    """Measure the named cases, or all; print the parts and the ratio of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="TASK:ENGINE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="about how long each run shall train")
    parser.add_argument("--again", action="store_true", help="also plan by the run that was, and run once more")
    arguments = parser.parse_args()
    for case in arguments.cases or CASES:
        with tempfile.TemporaryDirectory(prefix="burnish-time-") as folder:
            _case(case, Path(folder), arguments.seconds, again=arguments.again)


def _case(case: str, folder: Path, seconds: float, *, again: bool) -> None:
    task, _, engine = case.partition(":")
    material = made(task, folder / "material")
    spec = spec_file.set_values(material.spec, {**TRAINING, "hardware.engine": engine})
    path = folder / "spec.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    environment = {"BURNISH_CACHE": str(folder / "cache"), "BURNISH_RUNS": str(folder / "runs")}
    measured = _json(["plan", str(path), "--measure", "--json"], environment)
    epochs = max(1, round(seconds / next(one["seconds"] for one in measured["time"] if one["name"] == "Training")))
    wanted = ["--set", f"training.epochs={epochs}"]
    _side_by_side(case, path, wanted, environment)
    if again:
        _side_by_side(f"{case}, by the run that was", path, wanted, environment)


def _side_by_side(case: str, path: Path, wanted: list[str], environment: dict[str, str]) -> None:
    plan = _json(["plan", str(path), *wanted, "--json"], environment)
    run = RunFolder(_json(["train", str(path), *wanted, "--json"], environment)["run"])
    told = landmarks(run.events)
    process = run.process_record()
    assert process is not None
    taken = told[-1].time - process.started
    low, high = plan["least_seconds"], plan["most_seconds"]
    within = "within" if low <= taken <= high else "beyond"
    print(
        f"{case}: said {plan['seconds']:.1f} s ({low:.1f} to {high:.1f}), took {taken:.1f} s, "
        f"ratio {plan['seconds'] / taken:.2f}, {within} the span"
    )
    parts = _parts(told, process.started)
    for one in plan["time"]:
        real = parts.get(one["name"])
        beside = "" if real is None else f"{real:8.1f} s  ratio {one['seconds'] / real:.2f}" if real else "     0.0 s"
        print(f"    {one['name']:<12} {one['seconds']:8.1f} s {beside:<26} {one['words']}", flush=True)


def _parts(told: list[events.AnyEvent], started: float) -> dict[str, float]:
    """What each part of the estimate took, by the run's events."""
    found: dict[str, float] = {}
    stage, since = "Startup", started
    for event in told:
        if isinstance(event, events.StageStarted | events.RunFinished):
            found[stage] = found.get(stage, 0.0) + event.time - since
            stage, since = _STAGES.get(getattr(event, "stage", ""), "Startup"), event.time
        elif isinstance(event, events.CheckpointSaved):
            found["Checkpoints"] = found.get("Checkpoints", 0.0) + event.seconds
            found[stage] = found.get(stage, 0.0) - event.seconds
        elif isinstance(event, events.ProgramCompiled):
            found["Compiling"] = found.get("Compiling", 0.0) + event.seconds
            found[stage] = found.get(stage, 0.0) - (event.seconds if stage != "Compiling" else 0.0)
    return found


_STAGES = {
    "tokenising": "Tokenizing",
    "training": "Training",
    "evaluating": "Evaluations",
    "saving": "Saving",
    "predicting": "Predictions",
}


def _json(arguments: list[str], environment: dict[str, str]) -> Any:
    """The last line of a command's output, as the value that it is."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "backend", *arguments], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace"))
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
