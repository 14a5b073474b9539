"""Measures every task's rows per second, trained and predicted, beside plain transformers: `python tests/benchmarks/task_rates`.

With `--engine jax` training alone, by the JAX engine, beside the torch engine and plain transformers; what was compiled
is told apart, of the first run (nothing compiled before) and of later ones (all in the cache).

Alternated pairs, each side in a process of its own, with the same model, rows, batch size, learning rate, dtype and
threads. Beside Trainer with its defaults also one that is tuned: lengths grouped, optimizer fused. Tasks with a size are
trained only, with random weights. Training: rows between the first and the last step over their seconds. Prediction: the
test rows from text to answer, tokenizing included, against the pipeline (or, where transformers 5 has none, the loop of its
examples) at its best batch size. The median of the pairs is what counts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from task_data import BATCH, ROOT, Material, made, tasks


def main() -> None:
    """Measure the named tasks, or all; print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--engine", choices=["torch", "jax"], default="torch")
    parser.add_argument("--two", action="store_true", help="train in two processes beside one, of --threads each")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(SIDES[arguments.side](arguments.tasks[0], arguments.folder, arguments.threads)))
        return
    for task in arguments.tasks or tasks():
        with tempfile.TemporaryDirectory(prefix="burnish-rates-") as folder:
            measure = _measure_engines if arguments.engine == "jax" else _measure_two if arguments.two else _measure
            measure(task, Path(folder), arguments.pairs, arguments.threads)


def _kept(task: str, folder: Path) -> None:
    material = made(task, folder)
    kept = {"spec": material.spec, "train": str(material.train), "test": str(material.test)}
    (folder / "material.json").write_text(json.dumps(kept), encoding="utf-8")


def _measure_engines(task: str, folder: Path, pairs: int, threads: int) -> None:
    _kept(task, folder)
    sides = ("jax", "burnish", "trainer")
    found: dict[str, list[dict]] = {side: [] for side in sides}
    for number in range(pairs):
        for side in sides if number % 2 == 0 else reversed(sides):
            found[side].append(_run(side, task, folder, threads))
    for other, name in (("burnish", "the torch engine"), ("trainer", "Trainer")):
        _tell(task, f"training by JAX beside {name}", found["jax"], found[other])
    cold, *warm = found["jax"]
    for one, state in ((cold, "nothing compiled before"), *((one, "in the cache") for one in warm[-1:])):
        print(
            f"{task}, {state}: first step after {one['first']:.1f} s, "
            f"{one['programs']} programs compiled in {one['compiling']:.1f} s",
            flush=True,
        )


def _measure(task: str, folder: Path, pairs: int, threads: int) -> None:
    _kept(task, folder)
    found: dict[str, list[dict]] = {side: [] for side in SIDES}
    groups = [("burnish", "trainer", "tuned"), ("predict", "pipeline")]  # the first run leaves the model that is asked
    for number in range(pairs):
        for group in groups[:1] if "-" in task else groups:
            for side in group if number % 2 == 0 else reversed(group):
                found[side].append(_run(side, task, folder, threads))
    _tell(task, "training beside Trainer", found["burnish"], found["trainer"])
    _tell(task, "training beside Trainer tuned", found["burnish"], found["tuned"])
    _tell_products(task, "training", found["burnish"], _run("products", task, folder, threads))
    if found["pipeline"] and "rate" in found["pipeline"][0]:
        _tell(task, "prediction", found["predict"], found["pipeline"])
        _tell_products(task, "prediction", found["predict"], _run("predict_products", task, folder, threads))


def _measure_two(task: str, folder: Path, pairs: int, threads: int) -> None:
    _kept(task, folder)
    found: dict[str, list[dict]] = {"two": [], "burnish": []}
    for number in range(pairs):
        for side in found if number % 2 == 0 else reversed(found):
            found[side].append(_run(side, task, folder, threads))
    _tell(task, "training in two processes beside one", found["two"], found["burnish"])


def _tell(task: str, what: str, ours: list[dict], theirs: list[dict]) -> None:
    ratios = [one["rate"] / other["rate"] for one, other in zip(ours, theirs, strict=True)]
    middle = [statistics.median(one["rate"] for one in side) for side in (ours, theirs)]
    beside = f", its batch {theirs[0]['batch']}" if "batch" in theirs[0] else f", batch {BATCH}"
    print(
        f"{task} {what}: {middle[0]:.0f} against {middle[1]:.0f} rows/s, ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}){beside}",
        flush=True,
    )


def _tell_products(task: str, what: str, ours: list[dict], products: dict) -> None:
    share = statistics.median(one["rate"] for one in ours) / products["rate"]
    print(
        f"{task} {what}: {share:.0%} of the rate of its matrix products alone, {products['rate']:.0f} rows/s",
        flush=True,
    )


def _run(side: str, task: str, folder: Path, threads: int) -> dict:
    command = [
        sys.executable,
        str(Path(__file__).parent),
        task,
        "--side",
        side,
        "--folder",
        str(folder),
        "--threads",
        str(threads),
    ]
    environment = {
        **os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": str(threads),
        "BURNISH_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{task}, {side}: {ended.stderr[-2000:]}")
    return json.loads(ended.stdout.splitlines()[-1])


def _again(folder: Path) -> Material:
    kept = json.loads((folder / "material.json").read_text(encoding="utf-8"))
    return Material(kept["spec"], Path(kept["train"]), Path(kept["test"]))


def _burnish(task: str, folder: Path, threads: int) -> dict:
    return _trained(folder, {"threads": threads})


def _products(task: str, folder: Path, threads: int) -> dict:
    from matmul_recorder import MatmulRecorder

    with MatmulRecorder(training=True) as matmuls:
        rows = _trained(folder, {"threads": threads})["rows"]
    return {"rate": rows / matmuls.seconds()}


def _two(task: str, folder: Path, threads: int) -> dict:
    return _trained(folder, {"threads": threads, "processes": 2})


def _jax(task: str, folder: Path, threads: int) -> dict:
    return _trained(folder, {"engine": "jax"})


def _trained(folder: Path, hardware: dict) -> dict:
    from backend.contract import spec_file
    from backend.contract.run.folder import RunFolder
    from backend.preflight.resolve import resolve
    from backend.training.processes import run

    material, number = _again(folder), len(list(folder.glob("run-*")))
    spec = {**material.spec, "hardware": {**material.spec["hardware"], **hardware}}
    path = folder / f"run-{number}"
    path.mkdir()
    target = RunFolder(path)
    target.spec.write_text(spec_file.dump(resolve(spec, folder).model_dump(mode="json")), encoding="utf-8")
    if run(target):
        raise SystemExit(target.events.read_text()[-2000:])
    events = [json.loads(line) for line in target.events.read_text(encoding="utf-8").splitlines()]
    first, *steps = [event for event in events if event["event"] == "StepFinished"]
    began = next(event for event in events if event.get("stage") == "training")
    programs = [event for event in events if event["event"] == "ProgramCompiled"]
    return {
        "rows": sum(step["rows"] for step in (first, *steps)),
        "rate": sum(step["rows"] for step in steps) / sum(step["seconds"] for step in steps),
        "first": first["time"] - began["time"],
        "programs": len(programs),
        "compiling": sum(event["seconds"] for event in programs),
    }


def _trainer(task: str, folder: Path, threads: int) -> dict:
    from plain import train

    return {"rate": train(task, _again(folder), threads, tuned=False)}


def _tuned(task: str, folder: Path, threads: int) -> dict:
    from plain import train

    return {"rate": train(task, _again(folder), threads, tuned=True)}


def _predict(task: str, folder: Path, threads: int) -> dict:
    """From rows to answers, tokenizing included: the features' cache is emptied before."""
    import shutil

    rows, score = _opened(folder, threads)
    score()  # whatever is done once is done now
    shutil.rmtree(folder / "cache" / "features")
    started = time.perf_counter()
    score()
    return {"rate": rows / (time.perf_counter() - started)}


def _predict_products(task: str, folder: Path, threads: int) -> dict:
    from matmul_recorder import MatmulRecorder

    rows, score = _opened(folder, threads)
    with MatmulRecorder(training=False) as matmuls:
        score()
    return {"rate": rows / matmuls.seconds()}


def _opened(folder: Path, threads: int) -> tuple[int, Callable[[], object]]:
    """The number of test rows, and what predicts them with the first run's model."""
    from dataclasses import replace

    from backend.inference.model import open_model
    from backend.inference.spec import spec_of
    from backend.preflight.datasets import choose_columns, drop_unusable, make_source, reading
    from backend.tasks.task import used_columns

    material = _again(folder)
    spec = spec_of(str(folder / "run-0"), None, [f"hardware.threads={threads}"])
    session = open_model(spec).session
    rows = make_source(spec).read_file(material.test, spec.data, reading())
    columns = choose_columns(session.task, dict(spec.data.columns), rows, to_predict=True)
    asked = {column.name for column in used_columns(session.task) if column.needed_to_predict}
    columns = {role: name for role, name in columns.items() if role in asked}  # no labels: nothing is scored
    session = replace(session, columns=columns)
    rows = drop_unusable(session.task, rows, columns, "--data", "predicting")
    return len(rows), lambda: session.score(rows, session.features(rows), 64)


def _pipeline(task: str, folder: Path, threads: int) -> dict:
    from plain import is_asked, predict

    if not is_asked(task):
        return {}
    rate, batch = predict(task, _again(folder), folder / "run-0" / "model", threads)
    return {"rate": rate, "batch": batch}


SIDES = {
    "burnish": _burnish, "two": _two, "jax": _jax, "trainer": _trainer, "tuned": _tuned, "predict": _predict, "pipeline": _pipeline,
    "products": _products, "predict_products": _predict_products,
}  # fmt: skip

if __name__ == "__main__":
    main()
