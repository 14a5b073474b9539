"""Measures what people wait for: `burnish --help`, `runs` and `plan`, and `burnish train` until its first step is on record.

    python tests/benchmarks/start_to_step.py MODEL ... [--before TREE] [--times 3]

MODEL is the folder of a model that classifies text; the embedded data trains it. Each is measured with an empty cache
(`cold`) and with one that has seen it (`warm`). `--before` names another checkout with its own `.venv`: both are measured
in turn, so that other work on the machine slows down both. CPU time is what the processes used until that moment (user and
system), the wall time is what a person waits. Printed is the least of all times, as anything else on the machine only adds.
Linux only, where a process tells its CPU time while it runs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.01
SPEC = """\
name: start
task: {{type: text_classification}}
model: {{name_or_path: {model}}}
data: {{source: demo, name: sentiment}}
training: {{max_steps: 1, batch_size: 16, checkpoint_every: never}}
evaluation: {{every: never}}
"""
Times = dict[str, float]
"""What was measured → seconds."""


def main() -> None:
    """Measure and print a line for each process, tree and state of the cache."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", metavar="MODEL", nargs="+", type=Path)
    parser.add_argument("--before", metavar="TREE", type=Path)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    trees = {"now": ROOT} if arguments.before is None else {"before": arguments.before.resolve(), "now": ROOT}
    least: dict[str, dict[str, Times]] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as place:
        for number in range(arguments.times):
            for name, tree in trees.items():
                for what, times in _measure(tree, arguments.models, Path(place) / f"{name}-{number}"):
                    print(f"{number + 1} {name}: {what}, {times['wall']:.2f} s", file=sys.stderr)
                    known = least[what].get(name, times)
                    least[what][name] = {part: min(known[part], seconds) for part, seconds in times.items()}
    _print(least, list(trees))


def _measure(tree: Path, models: list[Path], place: Path) -> Iterator[tuple[str, Times]]:
    """Everything once, in folders of its own."""
    runs = place / "runs"
    environment = {**os.environ, "BURNISH_RUNS": str(runs), "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # no user compiles Burnish anew in every process
    yield "burnish --help", _run(tree, ["--help"], environment)
    yield "burnish runs", _run(tree, ["runs"], environment)
    for model in models:
        spec = place / f"{model.name}.yaml"
        place.mkdir(parents=True, exist_ok=True)
        spec.write_text(SPEC.format(model=model.absolute()), encoding="utf-8")
        for number, state in enumerate(("cold", "warm")):
            cached = {**environment, "BURNISH_CACHE": str(place / "cache" / model.name)}
            yield f"burnish train, {model.name}, {state}", _train(tree, spec, runs / f"{model.name}-{number}", cached)
        for state in ("cold", "warm"):
            cached = {**environment, "BURNISH_CACHE": str(place / "plan" / model.name)}
            yield f"burnish plan, {model.name}, {state}", _run(tree, ["plan", str(spec)], cached)


def _command(tree: Path, words: list[str]) -> list[str]:
    return [
        str(tree / ".venv" / "bin" / "python"),
        "-P",
        str(tree / "backend" / "contract" / "processes.py"),
        "backend",
        *words,
    ]


def _run(tree: Path, words: list[str], environment: Mapping[str, str]) -> Times:
    """A command with all that it starts, to its end."""
    started = time.monotonic()
    process = subprocess.Popen(
        _command(tree, words), env=environment, cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return {"wall": time.monotonic() - started, "CPU": used.ru_utime + used.ru_stime}


def _train(tree: Path, spec: Path, run: Path, environment: Mapping[str, str]) -> Times:
    """A training until its first step, process by process; then it is ended."""
    started = time.monotonic()
    command = _command(tree, ["train", str(spec), "--run-folder", str(run)])
    process = subprocess.Popen(command, env=environment, cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    events = run / "events.jsonl"
    while not (events.exists() and b'"StepFinished"' in events.read_bytes()):
        assert process.poll() is None, f"{spec.name}: it ended before its first step; see {run}"
        time.sleep(POLL_SECONDS)
    times = {"wall": time.monotonic() - started}
    times |= dict(zip(("command", "supervisor", "engine"), map(_cpu, _line(process.pid)), strict=False))
    times["CPU"] = sum(seconds for part, seconds in times.items() if part != "wall")
    assert process.wait() == 0
    return times


def _line(pid: int) -> list[psutil.Process]:
    """A process, the first that it started, and so on."""
    line = [psutil.Process(pid)]
    while children := line[-1].children():
        line.append(children[0])
    return line


def _cpu(process: psutil.Process) -> float:
    """Of the process and of those that it has waited for, such as one that lists devices."""
    return sum(process.cpu_times()[:4])


def _print(least: Mapping[str, Mapping[str, Times]], trees: list[str]) -> None:
    for what, by_tree in least.items():
        print(what)
        for part in by_tree[trees[0]]:
            seconds = [by_tree[name][part] for name in trees]
            ratio = f"  x {seconds[0] / seconds[-1]:.2f}" if len(seconds) > 1 and seconds[-1] > 0.005 else ""
            print(f"  {part:<12}" + "".join(f"{one:9.2f} s" for one in seconds) + ratio)


if __name__ == "__main__":
    main()
